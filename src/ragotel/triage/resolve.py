"""Resolve: from a claim to the chunks whose text states it, which makes a label's gold chunks.

Pipeline: rag_chunks, rag_index_members | rag_candidates -> [triage] -> labels
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from ragotel.errors import InputError
from ragotel.model import CANARY_SERVICE
from ragotel.store import Store
from ragotel.text import normalise
from ragotel.triage.evidence import texts_of
from ragotel.triage.labels import Label, read_label, write_labels
from ragotel.triage.question import Conditions, Question

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|[\r\n]+")  # noqa: RUF001 (full-width ends count)
_SHOWN_CHARS = 300


@dataclass(frozen=True)
class Place:
    """Where to look: everywhere, or in one index, at one version, under one beginning of ids.

    *all_versions* gives a row for each index version that holds the chunk so: what was cut anew
    has other ids, and the same words.
    """

    index_name: str | None = None
    version: str | None = None
    under: str = ""
    limit: int = 50
    all_versions: bool = False


@dataclass
class Resolved:
    """The chunks that state a claim; *searched_texts* counts those that were looked through."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    searched_texts: int = 0
    written_ids: list[str] = field(default_factory=list)


def search_claim(store: Store, claim: str, place: Place) -> Resolved:
    """The chunks whose text states *claim* as a whole word or phrase, by id.

    Chunks of manifests first; where no manifest has any, those that requests have brought.

    Raises:
        InputError: The claim is blank.
    """
    if not normalise(claim).strip():
        raise InputError("The claim is empty.")
    for source in _sources(place):
        rows = claim_question(source, claim, place).ask(store)
        if rows:
            break
    searched = max(
        int(_count_question(name, place).ask(store)[0]["texts"])
        # A whole history of versions times chunks is long, and has no text more.
        for name in _sources(replace(place, all_versions=False))
    )
    texts = texts_of(store, [row["text_sha"] for row in rows])
    for row in rows:
        row["claim"] = claim
        row["sentence"] = _sentence(texts.get(row.pop("text_sha"), ""), claim)
    return Resolved(rows, searched)


def resolve_label(store: Store, label_id: str, place: Place, *, write: bool) -> Resolved:
    """The chunks that state each passage's claims; *write* adds them to the passage's chunk ids.

    Raises:
        NotFoundError: There is no such label.
        InputError: None of its passages has a claim.
    """
    label = read_label(store, label_id)
    found, passages = Resolved(), []
    for number, passage in enumerate(label.passages, 1):
        ids: list[str] = []
        for claim in passage.spans or ([passage.text] if passage.text.strip() else []):
            part = search_claim(store, claim, place)
            found.rows += [{"passage": number, **row} for row in part.rows]
            found.searched_texts = max(found.searched_texts, part.searched_texts)
            ids += [row["chunk_id"] for row in part.rows]
        new = [entry for entry in dict.fromkeys(ids) if entry not in passage.chunk_ids]
        passages.append(replace(passage, chunk_ids=[*passage.chunk_ids, *new]))
        found.written_ids += new if write else []
    _check_has_claims(label)
    if found.written_ids:
        write_labels(store, [replace(label, passages=tuple(passages))])
    return found


def _check_has_claims(label: Label) -> None:
    if not any(passage.spans or passage.text.strip() for passage in label.passages):
        raise InputError(f"The label {label.label_id!r} has no span and no text to look for.")


def _sources(place: Place) -> list[str]:
    if place.version is not None or place.all_versions:
        return ["rag_index_members"]
    return ["rag_index_chunks", "rag_candidates"]


def claim_question(source: str, claim: str, place: Place) -> Question:
    """The SELECT of the chunks in *source* whose text states *claim*."""
    where = _in_place(source, place)
    where.add(
        "source.chunk_sha in (\n"
        "        select chunk_sha from rag_chunks\n"
        "        where rag_contains(text_norm, trimBoth(rag_normalise({claim:String})))\n"
        "    )",
        claim=claim,
    )
    where.parameters["limit"] = place.limit
    if place.all_versions:
        # Only the histories of the chunks that ever had such a text, not whole versions.
        where.add(
            "source.chunk_id in (\n"
            "        select chunk_id from rag_index_chunks\n"
            "        where chunk_sha in (\n"
            "            select chunk_sha from rag_chunks\n"
            "            where rag_contains(text_norm, trimBoth(rag_normalise({claim:String})))\n"
            "        )\n    )"
        )
        return Question(
            "select index_name, version, chunk_id, doc_id, chunk_sha as text_sha\n"
            f"from {source} as source\n{where}\n"
            "order by index_name, version, chunk_id\nlimit {limit:UInt32}",
            where.parameters,
        )
    return Question(
        "select chunk_id, any(doc_id) as doc_id, any(chunk_sha) as text_sha,\n"
        "    arraySort(groupUniqArray(index_name)) as index_names\n"
        f"from {source} as source\n{where}\n"
        "group by chunk_id\norder by chunk_id\nlimit {limit:UInt32}",
        where.parameters,
    )


def _count_question(source: str, place: Place) -> Question:
    where = _in_place(source, place)
    sql = f"select uniqExact(chunk_id) as texts\nfrom {source} as source\n{where}"
    return Question(sql, where.parameters)


def _in_place(source: str, place: Place) -> Conditions:
    where = Conditions()
    where.add("source.chunk_sha != ''")
    where.add("ifNull(chunk_id, '') != ''")
    if source == "rag_index_chunks":
        where.add("deleted = 0")
    if source == "rag_candidates":
        where.add("service_name != {canary:String}", canary=CANARY_SERVICE)
    where.equal("index_name", place.index_name)
    where.equal("version", place.version)
    if place.under:
        where.add(
            "(startsWith(ifNull(chunk_id, ''), {under:String})\n"
            "        or startsWith(source.doc_id, {under:String}))",
            under=place.under,
        )
    return where


def _sentence(text: str, claim: str) -> str:
    """The sentence or line of *text* that holds *claim*; its start where that spans several."""
    wanted = normalise(claim).strip()
    sentences = [part.strip() for part in _SENTENCE_END.split(text)]
    found = next((part for part in sentences if wanted in normalise(part)), text.strip())
    return found if len(found) <= _SHOWN_CHARS else found[: _SHOWN_CHARS - 1] + "…"
