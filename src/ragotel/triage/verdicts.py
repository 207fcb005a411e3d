"""Verdicts: the rows of triage_requests, and their counts over many requests.

Pipeline: triage_requests, triage_fixes, dist_buckets -> [triage] -> cli | server
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ragotel.store import Store
from ragotel.triage.question import Conditions, Question
from ragotel.triage.recut import resolve_advice, restated_in
from ragotel.triage.times import Moment, sql_time

BUCKETS = (
    *("corpus_gap", "retrieval_miss", "context_problem", "generation_error", "passed"),
    *("ungraded", "not_answerable", "unknown"),
)
"""In the order in which they are tested; the last two stand beside the others."""

GROUPINGS: Mapping[str, tuple[str, ...]] = {
    "day": ("day",),
    "service": ("service_name",),
    "index": ("index_name", "index_version"),
    "template": ("template_name", "template_version"),
    "run": ("run_id",),
    "set": ("label_set",),
}
"""What `buckets --by` offers, and the columns of dist_buckets that it groups by."""

FIXES = ("owner", "fixes_that_work", "fixes_that_cannot")
"""What triage_fixes says of a verdict."""

_OF_LABELS: Mapping[str, str] = {
    "gold": "name what answers the question in the label: chunk ids, documents or spans",
    "claim": "add to the label the words that state the fact (spans), as its chunk was trimmed",
}
"""What only the owner of the label can add, by the word in `missing`; nothing is to be recorded."""


@dataclass(frozen=True)
class Slice:
    """Which labelled requests; everything may be missing. *until* is excluded (a day: its end)."""

    since: Moment | None = None
    until: Moment | None = None
    label_set: str | None = None
    run: str | None = None
    service: str | None = None


def _by_time(part: Slice) -> Conditions:
    """The slice as conditions on triage_requests."""
    where = Conditions()
    if part.since is not None:
        since = sql_time(part.since.start)
        where.add("started_at >= {since:DateTime64(6, 'UTC')}", since=since)
    if part.until is not None:
        where.add("started_at < {until:DateTime64(6, 'UTC')}", until=sql_time(part.until.end))
    return _by_name(where, part)


def conditions_by_day(part: Slice) -> Conditions:
    """The slice as conditions on a distribution: every day that it touches, whole."""
    where = Conditions()
    if part.since is not None:
        where.add("day >= {since:Date}", since=part.since.start.date().isoformat())
    if part.until is not None:
        last = max(part.until.end - timedelta(microseconds=1), part.until.start)
        where.add("day <= {until:Date}", until=last.date().isoformat())
    return _by_name(where, part)


def _by_name(where: Conditions, part: Slice) -> Conditions:
    where.equal("label_set", part.label_set)
    where.equal("run_id", part.run)
    where.equal("service_name", part.service)
    return where


def triage_question(part: Slice, *, bucket: str | None = None, limit: int = 50) -> Question:
    """Verdicts, newest first."""
    where = _by_time(part)
    where.equal("bucket", bucket)
    where.parameters["limit"] = limit
    return Question(
        f"select *\nfrom triage_requests\n{where}\n"
        "order by started_at desc, trace_id, request_id, label_id\nlimit {limit:UInt32}",
        where.parameters,
    )


def fixes_of(store: Store) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Owner, fixes that work and fixes that cannot, by (bucket, loss_stage, attribution)."""
    rows = store.rows("select * from triage_fixes")
    return {
        (row["bucket"], row["loss_stage"], row["attribution"]): {name: row[name] for name in FIXES}
        for row in rows
    }


def with_fixes(store: Store, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of triage_requests with the columns of FIXES, and restated_in, beside their own.

    restated_in: chunks of the version that served that state the claim of a passage whose chunk
    or document it does not hold; then the label is what is behind.
    """
    fixes, restated = fixes_of(store), restated_in(store, rows)
    told = []
    for row in rows:
        chunk_ids = restated.get((row["label_id"], (row["index_name"], row["index_version"])), [])
        told.append({**row, **_fix_of(row, fixes, chunk_ids), "restated_in": chunk_ids})
    return told


def _fix_of(
    row: Mapping[str, Any],
    fixes: Mapping[tuple[str, str, str], Mapping[str, Any]],
    restated: Sequence[str],
) -> dict[str, Any]:
    nothing: dict[str, Any] = {"owner": "", "fixes_that_work": [], "fixes_that_cannot": []}
    fix = {**nothing, **fixes.get((row["bucket"], row["loss_stage"], row["attribution"]), {})}
    wanted = [_OF_LABELS[word] for word in row["missing"] if word in _OF_LABELS]
    if restated:
        advice = resolve_advice([row["label_id"]], [row["label_set"]], restated[0])
        fix.update(owner="the label's owner", fixes_that_work=advice)
    if row["bucket"] == "unknown" and wanted:
        fix.update(owner="the label's owner", fixes_that_work=wanted)
    return fix


def buckets_question(part: Slice, *, by: str | None = None) -> Question:
    """Requests per bucket, in all or per group; whole days, as the view has them."""
    where = conditions_by_day(part)
    group = GROUPINGS[by] if by else ()
    names = "".join(f"{name}, " for name in group)
    window = f"partition by {', '.join(group)}" if group else ""
    order = ", ".join([*group, "indexOf({order:Array(String)}, bucket)"])
    where.parameters["order"] = list(BUCKETS)
    return Question(
        f"select\n    {names}bucket, sum(dist.requests) as requests,\n"
        f"    sum(requests) over ({window}) as labelled_requests,\n"
        "    requests / labelled_requests as share,\n"
        "    sum(dist.right_without_gold) as right_without_gold,\n"
        "    sum(dist.abstained) as abstained\n"
        f"from dist_buckets as dist\n{where}\ngroup by {names}bucket\norder by {order}",
        where.parameters,
    )
