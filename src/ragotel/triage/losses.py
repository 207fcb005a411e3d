"""Losses: at which stage answers were lost, and how near the misses were, by population.

Pipeline: triage_losses -> [triage] -> cli | server
"""

from __future__ import annotations

from ragotel.triage.question import Question
from ragotel.triage.verdicts import Slice, conditions_by_day

CUTOFFS = (*range(1, 11), 12, 15, 20, 25, 30, 50, 100)
"""The cut-offs that triage_losses has beside each request's own k (0)."""

STAGES = (
    *("not_indexed", "not_retrieved_by_any_leg", "retrieved_beyond_cutoff", "fusion_limit"),
    *("fused_beyond_cutoff", "filtered", "rerank_demoted", "blend_demoted", "assemble"),
    *("unknown", "none"),
)
"""In the order in which they happen."""

_COUNTS = (
    *("requests", "near_misses", "right_document_other_chunk", "nothing_of_the_document"),
    "beyond_rerank_window",
)


def losses_question(part: Slice, *, cutoff: int = 0, population: str | None = None) -> Question:
    """Requests per population, outcome and loss stage at one *cutoff* (0: each request's own k)."""
    where = conditions_by_day(part)
    where.add("cutoff = {cutoff:UInt32}", cutoff=cutoff)
    where.equal("population", population)
    sums = ",\n".join(f"    sum(losses.{name}) as {name}" for name in _COUNTS)
    return Question(
        "select\n    label_set, population, outcome, defect, loss_stage,\n"
        f"{sums},\n"
        "    min(losses.example_trace_id) as example_trace_id\n"
        f"from triage_losses as losses\n{where}\n"
        "group by label_set, population, outcome, defect, loss_stage\n"
        "order by label_set, population, outcome, indexOf({stages:Array(String)}, loss_stage), "
        "defect",
        {**where.parameters, "stages": list(STAGES)},
    )
