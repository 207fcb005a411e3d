"""Probe bands: how far down the missed passages are, and what a reranker could reach of them.

Pipeline: dist_deep_ranks -> [triage] -> cli | server
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragotel.triage.probe_targets import MISSED
from ragotel.triage.question import Conditions, Question

REACHES = (20, 50, 100, 200)
"""Depths of a reranker that the view counts."""
COUNTS = (
    *("passages", "within_k", "near_misses", "distant", "k_unknown", "not_found", "not_probed"),
    *(f"reachable_within_{reach}" for reach in REACHES),
    "beyond",
)


def bands_question(label_set: str, versions: Sequence[str], *, is_all: bool) -> Question:
    """One row of counts over the set's passages, of requests that *versions* served (none: all).

    Args:
        is_all: Passages of every bucket, not only those that retrieval missed.
    """
    where = Conditions()
    where.equal("label_set", label_set)
    if not is_all:
        where.add("bucket in {missed:Array(String)}", missed=list(MISSED))
    if versions:
        where.add(
            "hasAny(splitByString(', ', index_version), {versions:Array(String)})",
            versions=list(versions),
        )
    sums = ",\n".join(f"    sum(ranks.{name}) as {name}" for name in COUNTS)
    return Question(f"select\n{sums}\nfrom dist_deep_ranks as ranks\n{where}", where.parameters)


def reach_sentence(bands: Mapping[str, Any]) -> str:
    """What a reranker can do for the passages of `bands_question`'s row, and what it cannot."""
    count = bands["passages"]
    best = max(bands[f"reachable_within_{reach}"] for reach in REACHES)
    unknown = bands["not_probed"]
    rest = f" Of {unknown:,} nothing is known: they were not probed." if unknown else ""
    beyond = count - best - unknown
    if not best:
        return (
            f"No reranker over the top {REACHES[-1]} can reach any of the {beyond:,} passages: "
            f"none is handed to it.{rest}"
        )
    depth = next(reach for reach in REACHES if bands[f"reachable_within_{reach}"] == best)
    others = f" {beyond:,} lie beyond what any such reranker is handed." if beyond else ""
    return (
        f"A reranker over the top {depth} can reach {best:,} of {count:,} passages.{others}{rest}"
    )
