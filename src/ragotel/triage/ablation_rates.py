"""Ablation rates: what gold-only and position runs say of a label set.

Pipeline: dist_ablations, dist_positions -> [triage] -> cli | server
"""

from __future__ import annotations

from ragotel.store import Store
from ragotel.triage.question import Question

_COUNTS = (
    *("cases", "gold_only_correct", "full_context_correct", "distraction", "misuse"),
    *("right_in_full_context_only", "full_runs"),
)


def ablations_question(label_set: str) -> Question:
    """Distraction and misuse by service and template, over all days and index versions."""
    sums = "".join(f"    sum(dist.{name}) as {name},\n" for name in _COUNTS)
    return Question(
        "select\n    service_name,\n    template_name,\n    template_version,\n"
        f"{sums}"
        "    gold_only_correct / cases as gold_only_accuracy,\n"
        "    full_context_correct / cases as full_context_accuracy,\n"
        "    (toInt64(gold_only_correct) - toInt64(full_context_correct)) / cases\n"
        "        as distraction_delta\n"
        "from dist_ablations as dist\nwhere label_set = {label_set:String}\n"
        "group by service_name, template_name, template_version\n"
        "order by service_name, template_name, template_version",
        {"label_set": label_set},
    )


def positions_question(label_set: str, against: tuple[int, int] | None = None) -> Question:
    """The table of positions; *against* (position, of passages) is the row that points are lost to.

    Without it, or where the service has no such row, points_lost is null.
    """
    position, of = against or (0, 0)
    return Question(
        "select\n    service_name,\n    position,\n    of,\n    correct,\n    cases,\n    share,\n"
        "    points_lost_by_length,\n    points_lost_by_position,\n"
        "    if(\n"
        "        countIf(position = {position:UInt32} and of = {of:UInt32})\n"
        "            over (partition by service_name) = 0,\n"
        "        null,\n"
        "        100 * (maxIf(share, position = {position:UInt32} and of = {of:UInt32})\n"
        "            over (partition by service_name) - share)\n"
        "    ) as points_lost\n"
        "from dist_positions\nwhere label_set = {label_set:String}\n"
        "order by service_name, of, position",
        {"label_set": label_set, "position": position, "of": of},
    )


def stored_places(store: Store, label_set: str) -> list[tuple[int, int]]:
    """The rows that the set's table of positions has: position, of passages."""
    rows = store.query(
        "select distinct position, of from dist_positions where label_set = {label_set:String}\n"
        "order by of, position",
        {"label_set": label_set},
    ).result_rows
    return [(position, of) for position, of in rows]
