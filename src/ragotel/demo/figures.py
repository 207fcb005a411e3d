"""After the demo's pipeline: the figures of a run, read from the product's own views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
select toString(day) as day, index_version, bucket, toUInt64(sum(requests)) as requests
from dist_buckets
group by day, index_version, bucket
"""

_EXAMPLES = """
select
    request_id, trace_id, started_at, user_id, question, answer, bucket, state, attribution,
    loss_stage, index_version, gold_rank, competing_chunk_ids, missing, why
from triage_requests
order by
    arrayExists(chunk_id -> startsWith(chunk_id, 'archive/'), competing_chunk_ids) desc,
    started_at,
    request_id
limit 1 by bucket
"""


@dataclass(frozen=True)
class Distribution:
    """Labelled requests per bucket, counted per day and per index version."""

    by_day: dict[str, dict[str, int]]
    by_version: dict[str, dict[str, int]]


def distribution(store: Store) -> Distribution:
    """Ask for the distribution over buckets once, for both grains."""
    counted = Distribution({}, {})
    for row in store.rows(_COUNTS):
        for counts, grain in (
            (counted.by_day, row["day"]),
            (counted.by_version, row["index_version"]),
        ):
            of_grain = counts.setdefault(grain, {})
            of_grain[row["bucket"]] = of_grain.get(row["bucket"], 0) + int(row["requests"])
    return counted


def totals(counts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Add up counts over their grain; every bucket of `BUCKETS` has a number."""
    return {
        bucket: sum(buckets.get(bucket, 0) for buckets in counts.values()) for bucket in BUCKETS
    }


def one_of_each(store: Store) -> list[dict[str, Any]]:
    """Return one verdict of each bucket that occurs, in the order of `BUCKETS`."""
    found = {row["bucket"]: row for row in store.rows(_EXAMPLES)}
    return [found[bucket] for bucket in BUCKETS if bucket in found]


def verdict_of(store: Store, request_id: str) -> dict[str, Any] | None:
    """Return the verdict of one request; None while no label meets it."""
    rows = store.rows(
        "select label_id, matched_by, bucket, state, attribution, loss_stage, index_version, "
        "grade, why from triage_requests where request_id = {request_id:String}",
        {"request_id": request_id},
    )
    return rows[0] if rows else None
