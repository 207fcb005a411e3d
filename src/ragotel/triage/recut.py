"""Recut: labels whose chunk is in no index, while the version that served states the claim.

Pipeline: triage_requests, rag_index_members, rag_chunks -> [triage] -> show, triage

A corpus that was cut anew has the same words under other ids. That is no gap of the corpus: the
label is behind, and `labels resolve --all-versions --write` brings it up to date.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ragotel.store import Store

_MOST_LABELS = 100

Served = tuple[str, str]
"""Index names and versions of one request, as triage_requests joins them."""


def restated_in(
    store: Store, rows: Sequence[Mapping[str, Any]]
) -> dict[tuple[str, Served], list[str]]:
    """Chunks of the served version that state the claim of a passage held to be in no index.

    By (label_id, (index_name, index_version)) of the rows of triage_requests, the newest
    `_MOST_LABELS` gaps alone; at most three ids each.
    """
    gaps: dict[Served, dict[str, int]] = {}
    count = 0
    for row in rows:
        if row["bucket"] != "corpus_gap" or not row["index_version"]:
            continue
        passages = gaps.setdefault((row["index_name"], row["index_version"]), {})
        if row["label_id"] not in passages and count < _MOST_LABELS:
            passages[row["label_id"]] = row["deciding_passage"]
            count += 1
    found: dict[tuple[str, Served], list[str]] = {}
    for (names, versions), passages in gaps.items():
        parameters = {
            "index_names": names.split(", "),
            "versions": versions.split(", "),
            "passages": [f"{passage} {label_id}" for label_id, passage in passages.items()],
        }
        for row in store.rows(_STATING, parameters) if passages else ():
            found[row["label_id"], (names, versions)] = list(row["chunk_ids"])
    return found


def resolve_advice(label_ids: Sequence[str], label_sets: Sequence[str], chunk_id: str) -> list[str]:
    """What to do about labels that are behind: a command for the one, or for their sets."""
    if len(label_ids) == 1:
        stands = f"{chunk_id} of the version that served states the claim: if it answers, bring"
        what = "the label"
        named = [f"--label {shlex.quote(label_ids[0])}"]
    else:
        stands = f"chunks of the version that served ({chunk_id}, ...) state the claims: if they"
        stands, what = f"{stands} answer, bring", "the labels"
        named = [f"--set {shlex.quote(name)}" for name in label_sets]
    return [
        *(
            f"{stands} {what} up to date: ragotel labels resolve {which} --all-versions --write"
            for which in named
        ),
        "if not: find the ingest run that lost the passage, and what else that run lost",
    ]


_STATING = """\
with
    wanted as (
        select label_id, claims
        from rag_label_passages
        where concat(toString(passage), ' ', label_id) in {passages:Array(String)}
            and notEmpty(claims)
    ),
    members as (
        select chunk_id, chunk_sha
        from rag_index_members
        where index_name in {index_names:Array(String)} and version in {versions:Array(String)}
            and chunk_sha != ''
    ),
    stating as (
        select wanted.label_id as label_id, texts.chunk_sha as chunk_sha
        from (
            select chunk_sha, any(text_norm) as text_norm
            from rag_chunks
            where chunk_sha in (select chunk_sha from members)
            group by chunk_sha
        ) as texts
        cross join wanted
        where arrayExists(
            claim -> position(text_norm, claim) > 0 and rag_contains(text_norm, claim), claims
        )
    )
select stating.label_id as label_id,
    arraySlice(arraySort(groupUniqArray(members.chunk_id)), 1, 3) as chunk_ids
from stating
inner join members on members.chunk_sha = stating.chunk_sha
group by label_id
order by label_id
settings join_use_nulls = 0"""
