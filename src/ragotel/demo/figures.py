"""After the demo's pipeline: the figures of a run, read from the product's own views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragotel.store import Store

BUCKETS = (
    "corpus_gap",
    "retrieval_miss",
    "context_problem",
    "generation_error",
    "passed",
    "ungraded",
    "not_answerable",
    "unknown",
)
"""The buckets in the order in which a request can leave the test; the story shows each of them."""

_COUNTS = """
select toString({grain}) as grain, bucket, toUInt64(sum(requests)) as requests
from dist_buckets
group by grain, bucket
"""

_EXAMPLE = """
select
    request_id, trace_id, started_at, user_id, question, answer, bucket, state, attribution,
    loss_stage, index_version, gold_rank, competing_chunk_ids, missing, why
from triage_requests
where bucket = {bucket:String}
order by length(competing_chunk_ids) desc, started_at, request_id
limit 1
"""


def counts_by(store: Store, grain: str) -> dict[str, dict[str, int]]:
    """Count labelled requests per value of *grain* (``day`` or ``index_version``) and bucket."""
    if grain not in ("day", "index_version"):
        raise ValueError(f"the demo counts by day or index_version, not by {grain!r}")
    counts: dict[str, dict[str, int]] = {}
    for row in store.rows(_COUNTS.replace("{grain}", grain)):
        counts.setdefault(row["grain"], {})[row["bucket"]] = int(row["requests"])
    return counts


def totals(counts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Add up counts over their grain; every bucket of `BUCKETS` has a number."""
    return {
        bucket: sum(buckets.get(bucket, 0) for buckets in counts.values()) for bucket in BUCKETS
    }


def one_of_each(store: Store) -> list[dict[str, Any]]:
    """Return one verdict of each bucket that occurs, in the order of `BUCKETS`."""
    found: list[Sequence[dict[str, Any]]] = [
        store.rows(_EXAMPLE, {"bucket": bucket}) for bucket in BUCKETS
    ]
    return [rows[0] for rows in found if rows]


def verdict_of(store: Store, request_id: str) -> dict[str, Any] | None:
    """Return the verdict of one request; None while no label meets it."""
    rows = store.rows(
        "select label_id, matched_by, bucket, state, attribution, loss_stage, index_version, "
        "grade, why from triage_requests where request_id = {request_id:String}",
        {"request_id": request_id},
    )
    return rows[0] if rows else None
