"""Templates: the versions of a prompt template, and what differs between two of them.

Pipeline: rag_template_versions, rag_prompts, rag_chunks -> [triage] -> cli

A template's text is not on the record; its version and the rendered prompts are. So one prompt of
each version is taken, its question and the texts that were sent are cut out, and what is left,
the template's own words, is compared.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ragotel.errors import InputError, NotFoundError
from ragotel.store import Store
from ragotel.triage.evidence import texts_of
from ragotel.triage.prompt_parts import PartsError, Passage, take_apart
from ragotel.triage.question import Conditions, Question

PASSAGE, QUESTION = "{passage}", "{question}"
"""Stand in a skeleton for what was cut out."""
_TRIED_PROMPTS = 20


@dataclass
class Skeleton:
    """What a prompt is without its question and passages, and which prompt it was made of.

    *text* shows two passages and what stands between them, where two or more were sent;
    *lone_text* the first alone. *is_cut* is false where passages could not be cut out, so that
    they stand in it.
    """

    version: str
    request_id: str
    trace_id: str
    text: str
    lone_text: str
    is_cut: bool
    sent_count: int


@dataclass
class Difference:
    """Two versions of a template; *lines* is a unified diff, empty where nothing differs."""

    name: str
    old: Skeleton
    new: Skeleton
    lines: list[str] = field(default_factory=list)


def templates_question(name: str | None, service: str | None) -> Question:
    """The versions in use, by template, oldest first."""
    where = Conditions()
    where.equal("name", name)
    where.equal("service_name", service)
    return Question(
        "select service_name, name, version, first_seen, last_seen, requests, mean_prompt_tokens\n"
        f"from rag_template_versions\n{where}\norder by service_name, name, first_seen, version",
        where.parameters,
    )


def template_diff(store: Store, name: str, old: str, new: str) -> Difference:
    """What differs between two versions of the template *name*, from one prompt of each.

    Raises:
        NotFoundError: No prompt of such a version was recorded.
        InputError: The beginning of a version means several, or no prompt's text was recorded.
    """
    rows = templates_question(name, None).ask(store)
    versions = list(dict.fromkeys(row["version"] for row in rows))
    first = _skeleton(store, name, _meant(name, old, versions))
    second = _skeleton(store, name, _meant(name, new, versions))
    # A passage more is no other template.
    is_lone = 1 in (first.sent_count, second.sent_count)
    lines = difflib.unified_diff(
        (first.lone_text if is_lone else first.text).splitlines(),
        (second.lone_text if is_lone else second.text).splitlines(),
        f"{name} {first.version}",
        f"{name} {second.version}",
        lineterm="",
    )
    return Difference(name, first, second, list(lines))


def _meant(name: str, wanted: str, versions: list[str]) -> str:
    """The version that *wanted* is, or begins (with or without `sha256:`)."""
    if wanted in versions:
        return wanted
    found = sorted(
        {
            version
            for version in versions
            if wanted and version.startswith((wanted, f"sha256:{wanted}"))
        }
    )
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"{wanted!r} begins several versions of {name!r}: {', '.join(found)}.")
    known = f"there are {', '.join(versions)}" if versions else "none was recorded"
    raise NotFoundError(f"The template {name!r} has no version {wanted!r}: {known}.")


def _skeleton(store: Store, name: str, version: str) -> Skeleton:
    """The newest prompt of the version whose passages can be cut out; else the newest one."""
    rows = store.rows(
        "select trace_id, request_id, span_id, prompt from rag_prompts final\n"
        "where template_name = {name:String} and template_version = {version:String}\n"
        "    and prompt != '' and is_whole\n"
        "order by started_at desc limit {limit:UInt32}",
        {"name": name, "version": version, "limit": _TRIED_PROMPTS},
    )
    if not rows:
        raise InputError(
            f"No whole prompt of {name} {version} was recorded, so there is nothing to compare: "
            "content_mode full records them."
        )
    tried = (_cut(store, version, row) for row in rows)
    first = next(tried)
    return first if first.is_cut else next((one for one in tried if one.is_cut), first)


def _cut(store: Store, version: str, row: Mapping[str, Any]) -> Skeleton:
    """The skeleton of one prompt; numbered or headed passages show by what stands between them."""
    key = {"trace_id": row["trace_id"], "request_id": row["request_id"]}
    passages = _passages(store, {**key, "span_id": row["span_id"]})
    question = _question(store, key)
    texts, is_cut = [row["prompt"], row["prompt"]], not passages
    if passages and all(passage.text for passage in passages):
        try:
            parts = take_apart(row["prompt"], passages, question)
        except PartsError:
            pass
        else:
            between = parts.gaps[0] + PASSAGE if parts.gaps else ""
            texts = [f"{parts.before}{PASSAGE}{more}{parts.after}" for more in (between, "")]
            is_cut = True
            for at, passage in enumerate(passages):
                if passage.id:
                    texts = [text.replace(passage.id, f"{{id {at + 1}}}") for text in texts]
    if len(question) > 1:
        texts = [text.replace(question, QUESTION) for text in texts]
    text, lone_text = texts
    request_id, trace_id = row["request_id"], row["trace_id"]
    return Skeleton(version, request_id, trace_id, text, lone_text, is_cut, len(passages))


def _passages(store: Store, key: Mapping[str, Any]) -> list[Passage]:
    """What was sent, in prompt order, with its known texts ('' where one is not known)."""
    rows = store.rows(
        "select chunk_id, chunk_sha, kept_chars from rag_candidates\n"
        "where trace_id = {trace_id:String} and request_id = {request_id:String}\n"
        "    and span_id = {span_id:String}\norder by rank",
        dict(key),
    )
    texts = texts_of(store, {row["chunk_sha"] for row in rows if row["chunk_sha"]})
    return [
        Passage(row["chunk_id"] or "", texts.get(row["chunk_sha"], ""), row["kept_chars"])
        for row in rows
    ]


def _question(store: Store, key: Mapping[str, Any]) -> str:
    rows = store.query(
        "select query from rag_requests\n"
        "where trace_id = {trace_id:String} and request_id = {request_id:String} limit 1",
        dict(key),
    ).result_rows
    return str(rows[0][0]) if rows else ""
