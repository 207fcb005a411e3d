"""Neighbours: the gold chunk with the chunks before and after it, and a claim cut between two.

Pipeline: rag_index_chunks, rag_chunks -> [triage] -> show

A claim that stands in no chunk, but across two neighbours, ranks for nothing: a fault of the
chunker that is reported at retrieval, or at assembly where a half was found. triage_split_claims
says the same for all labels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ragotel.store import Store
from ragotel.text import normalise
from ragotel.triage.claims import states
from ragotel.triage.resolve import Place, search_claim

_NUMBER = re.compile(r"(\d+)\D*$")
_MOST_OVERLAP_CHARS = 300
_MOST_DOCUMENTS = 3
_MOST_SHOWN = 5


def gold_neighbours(
    store: Store,
    searched: Sequence[Sequence[str]],
    passages: Sequence[dict[str, Any]],
) -> list[dict[str, Any]]:
    """One dict per passage, index version and document of the gold.

    Keys: label_id, passage, index_name, index_version, doc_id, order_by (chunk_id: the number at
    its end; manifest: as its lines stand; None: no order is known, so there are no neighbours),
    chunks (place: previous, gold or next; chunk_id, text, states_claim), and split (claim,
    first_chunk_id, second_chunk_id) or None.
    """
    found = []
    for index_name, version in searched:
        for passage in passages if version else ():
            for rows in _documents(store, index_name, version, passage)[:_MOST_DOCUMENTS]:
                place = {
                    "label_id": passage["label_id"],
                    "passage": passage["passage"],
                    "index_name": index_name,
                    "index_version": version,
                }
                found.append({**place, **_around(rows, passage)})
    return found


def _documents(
    store: Store, index_name: str, version: str, passage: dict[str, Any]
) -> list[list[dict[str, Any]]]:
    """The chunks of each document that should hold the gold, in the version that served."""
    ids, doc_ids = list(passage["chunk_ids"]), list(passage["known_doc_ids"])
    if not ids and not doc_ids:
        place = Place(index_name, version, limit=_MOST_DOCUMENTS)
        for claim in passage["claims"][:1]:
            rows = search_claim(store, claim, place).rows
            ids = [row["chunk_id"] for row in rows]
            doc_ids = [row["doc_id"] for row in rows if row["doc_id"]]
    roots = [chunk_id.rpartition("#")[0] for chunk_id in ids if "#" in chunk_id]
    rows = store.rows(
        _CHUNKS,
        {
            "index_name": index_name,
            "version": version,
            "ids": ids,
            "doc_ids": doc_ids,
            "roots": [f"{root}#" for root in roots if not doc_ids],
        },
    )
    documents: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        documents.setdefault(row["doc_id"] or row["chunk_id"].rpartition("#")[0], []).append(row)
    return [[{**row, "doc_id": doc_id} for row in part] for doc_id, part in documents.items()]


def _around(rows: list[dict[str, Any]], passage: dict[str, Any]) -> dict[str, Any]:
    ordered, order_by = _in_order(rows)
    claims = passage["claims"]
    for row in ordered:
        row["norm"] = normalise(row["text"])
        row["states_claim"] = (
            any(states(row["norm"], claim) for claim in claims) if row["is_read"] else None
        )
    split = None
    if order_by and not any(row["states_claim"] is not False for row in ordered):
        split = _split(ordered, claims)
    at = [
        place
        for place, row in enumerate(ordered)
        if row["chunk_id"] in passage["chunk_ids"]
        or (not passage["chunk_ids"] and row["states_claim"])
    ]
    if split and not at:
        at = [
            place
            for place, row in enumerate(ordered)
            if row["chunk_id"] in (split["first_chunk_id"], split["second_chunk_id"])
        ]
    return {
        "doc_id": rows[0]["doc_id"],
        "order_by": order_by,
        "chunks": _shown(ordered, at[:_MOST_SHOWN], has_order=order_by is not None),
        "split": split,
    }


def _in_order(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], str | None]:
    found = [_NUMBER.search(row["chunk_id"]) for row in rows]
    numbers = [int(match[1]) for match in found if match]
    if len(set(numbers)) == len(rows):
        return [row for _, row in sorted(zip(numbers, rows, strict=True), key=_first)], "chunk_id"
    ordered = sorted(rows, key=lambda row: row["position"])
    return ordered, "manifest" if len({row["loaded_in"] for row in rows}) == 1 else None


def _first(pair: tuple[int, dict[str, Any]]) -> int:
    return pair[0]


def _split(rows: Sequence[dict[str, Any]], claims: Sequence[str]) -> dict[str, Any] | None:
    for first, second in pairwise(rows):
        for claim in claims:
            if any(states(body, claim) for body in _joined(first["norm"], second["norm"])):
                return {
                    "claim": claim,
                    "first_chunk_id": first["chunk_id"],
                    "second_chunk_id": second["chunk_id"],
                }
    return None


def _joined(first: str, second: str) -> tuple[str, str]:
    """Two neighbours as one text: what both hold at the seam once, or with a blank between."""
    longest = min(_MOST_OVERLAP_CHARS, len(first), len(second))
    overlap = next((size for size in range(longest, 0, -1) if first.endswith(second[:size])), 0)
    return first + second[overlap:], f"{first.rstrip()} {second.lstrip()}"


def _shown(
    rows: Sequence[dict[str, Any]], gold: Sequence[int], *, has_order: bool
) -> list[dict[str, Any]]:
    places: dict[int, str] = {}
    for at in gold if has_order else ():
        for near, place in ((at - 1, "previous"), (at + 1, "next")):
            if 0 <= near < len(rows):
                places[near] = place
    places.update(dict.fromkeys(gold, "gold"))
    names = ("chunk_id", "text", "states_claim")
    return [
        {"place": place, **{name: rows[at][name] for name in names}}
        for at, place in sorted(places.items())
    ]


_CHUNKS = """\
with
    links as (
        select link.1 as loaded_version, link.2 as distance
        from rag_index_chains
        array join arrayZip(chain, arrayEnumerate(chain)) as link
        where index_name = {index_name:String} and version = {version:String}
    ),
    of_document as (
        select distinct chunk_id
        from rag_index_chunks
        where index_name = {index_name:String} and (
            chunk_id in {ids:Array(String)}
            or (doc_id != '' and doc_id in {doc_ids:Array(String)})
            or arrayExists(root -> startsWith(chunk_id, root), {roots:Array(String)})
        )
    ),
    members as (
        select
            chunks.chunk_id as chunk_id,
            argMin(chunks.doc_id, links.distance) as doc_id,
            argMin(chunks.chunk_sha, links.distance) as chunk_sha,
            argMin(chunks.position, links.distance) as position,
            argMin(chunks.version, links.distance) as loaded_in
        from (
            select *
            from rag_index_chunks final
            where index_name = {index_name:String}
                and chunk_id in (select chunk_id from of_document)
        ) as chunks
        inner join links on links.loaded_version = chunks.version
        inner join (
            select version, load_id
            from rag_index_versions final
            where index_name = {index_name:String}
        ) as versions on versions.version = chunks.version and versions.load_id = chunks.load_id
        group by chunk_id
        having argMin(chunks.deleted, links.distance) = 0
    )
select
    members.chunk_id as chunk_id,
    members.doc_id as doc_id,
    members.position as position,
    members.loaded_in as loaded_in,
    texts.text as text,
    texts.chunk_sha != '' as is_read
from members
left join (
    select chunk_sha, text
    from rag_chunks
    where chunk_sha in (select chunk_sha from members)
    limit 1 by chunk_sha
) as texts on texts.chunk_sha = members.chunk_sha
order by position, chunk_id
settings join_use_nulls = 0"""
