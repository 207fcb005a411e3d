"""Resolve: from a claim to the chunks whose text states it, which makes a label's gold chunks.

Pipeline: rag_chunks, rag_index_members | rag_candidates -> [triage] -> labels
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ragotel.errors import InputError
from ragotel.model import CANARY_SERVICE
from ragotel.store import Store
from ragotel.text import normalise
from ragotel.triage.evidence import texts_of
from ragotel.triage.labels import Label, Passage, read_label, read_labels, write_labels
from ragotel.triage.lines import Progress, no_progress
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
    """The chunks that state a claim; *searched_texts* counts those that were looked through.

    *is_cut*: a claim stands in more places than the limit lists. Of labels: *written_ids* were
    added to them, *nowhere* are those of which a passage's claim stands in no text, *claimless*
    those of which a passage has none to look for.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    searched_texts: int = 0
    is_cut: bool = False
    written_ids: list[str] = field(default_factory=list)
    labels: int = 0
    written_labels: int = 0
    nowhere: list[str] = field(default_factory=list)
    claimless: list[str] = field(default_factory=list)


def search_claim(store: Store, claim: str, place: Place) -> Resolved:
    """The chunks whose text states *claim* as a whole word or phrase, by id.

    Chunks of manifests first; where no manifest has any, those that requests have brought.

    Raises:
        InputError: The claim is blank.
    """
    if not normalise(claim).strip():
        raise InputError("The claim is empty.")
    rows, is_cut = _stating(store, claim, place)
    return Resolved(rows, _searched_texts(store, place), is_cut)


def _stating(store: Store, claim: str, place: Place) -> tuple[list[dict[str, Any]], bool]:
    """The chunks that state *claim*, up to the limit, and whether there are more."""
    rows: list[dict[str, Any]] = []
    for source in _sources(place):
        rows = claim_question(source, claim, place).ask(store)
        if rows:
            break
    is_cut = len(rows) > place.limit
    rows = rows[: place.limit]
    texts = texts_of(store, [row["text_sha"] for row in rows])
    for row in rows:
        row["claim"] = claim
        row["sentence"] = _sentence(texts.get(row.pop("text_sha"), ""), claim)
    return rows, is_cut


def _searched_texts(store: Store, place: Place) -> int:
    return max(
        int(_count_question(name, place).ask(store)[0]["texts"])
        # A whole history of versions times chunks is long, and has no text more.
        for name in _sources(replace(place, all_versions=False))
    )


def resolve_label(store: Store, label_id: str, place: Place, *, write: bool) -> Resolved:
    """The chunks that state each passage's claims; *write* adds them to the passage's chunk ids.

    Raises:
        NotFoundError: There is no such label.
        InputError: None of its passages has a claim.
    """
    label = read_label(store, label_id)
    if not any(_claims(passage) for passage in label.passages):
        raise InputError(f"The label {label.label_id!r} has no span and no text to look for.")
    return _resolve(store, [label], place, no_progress, write=write)


def resolve_set(
    store: Store, label_set: str, place: Place, progress: Progress = no_progress, *, write: bool
) -> Resolved:
    """`resolve_label` for every label of a set that asks for a passage; written as one load.

    Raises:
        NotFoundError: No label is in the set.
        InputError: No label of it has a claim.
    """
    labels = [label for label in read_labels(store, label_set) if label.passages]
    if not any(_claims(passage) for label in labels for passage in label.passages):
        raise InputError(f"No label of the set {label_set!r} has a span or a text to look for.")
    return _resolve(store, labels, place, progress, write=write)


def _resolve(
    store: Store, labels: Sequence[Label], place: Place, progress: Progress, *, write: bool
) -> Resolved:
    found = Resolved(searched_texts=_searched_texts(store, place), labels=len(labels))
    changed = []
    for count, label in enumerate(labels, 1):
        resolved = _resolved(store, label, place, found)
        if write and resolved != label:
            changed.append(resolved)
        progress(count)
    if changed:
        write_labels(store, changed)
        found.written_labels = len(changed)
    else:
        found.written_ids.clear()
    return found


def _resolved(store: Store, label: Label, place: Place, found: Resolved) -> Label:
    """*label* with the chunks that state its claims; what was found goes into *found*."""
    passages = []
    for number, passage in enumerate(label.passages, 1):
        rows = []
        for claim in _claims(passage):
            stating, is_cut = _stating(store, claim, place)
            rows += stating
            found.is_cut |= is_cut
        found.rows += [{"label_id": label.label_id, "passage": number, **row} for row in rows]
        if not rows:
            bad = found.nowhere if _claims(passage) else found.claimless
            bad += [] if label.label_id in bad else [label.label_id]
        ids = list(dict.fromkeys(row["chunk_id"] for row in rows))
        new = [chunk_id for chunk_id in ids if chunk_id not in passage.chunk_ids]
        found.written_ids += new
        passages.append(replace(passage, chunk_ids=[*passage.chunk_ids, *new]))
    return replace(label, passages=tuple(passages))


def _claims(passage: Passage) -> list[str]:
    """The wordings to look for; the passage's own text where it has none."""
    return [text for text in passage.spans or [passage.text] if normalise(text).strip()]


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
    where.parameters["limit"] = place.limit + 1
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
