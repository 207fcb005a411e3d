"""Decisions: what a person holds of a miss: is the label at fault, or the search?

Pipeline: person -> [triage] -> rag_label_decisions -> triage_losses, triage_label_doubts
"""

from __future__ import annotations

from typing import Any

from ragotel.store import Store
from ragotel.triage.labels import check_label
from ragotel.triage.question import Conditions, Question
from ragotel.triage.references import RequestKey

DEFECTS = (
    *("right_document", "sibling_chunk", "several_answer", "retired_target", "other"),
    "none",
)
"""What may be wrong with a label; `none` says that it was looked at and the search is at fault."""


def write_decision(
    store: Store,
    label_id: str,
    defect: str,
    *,
    key: RequestKey | None = None,
    note: str = "",
    decided_by: str = "",
) -> None:
    """Keep that the label has *defect* (one of DEFECTS), on the request *key* or on every one.

    Raises:
        NotFoundError: There is no such label.
    """
    check_label(store, label_id)
    columns = ("trace_id", "request_id", "label_id", "defect", "note", "decided_by")
    row = (*(key or RequestKey("", "")), label_id, defect, note, decided_by)
    store.insert("rag_label_decisions", [row], columns)


def doubts_question(
    *, label_set: str | None = None, is_open: bool = False, limit: int = 50
) -> Question:
    """Misses that may be the label's fault, newest first; *is_open*: only those undecided."""
    where = Conditions()
    where.equal("label_set", label_set)
    if is_open:
        where.add("decided_defect is null")
    parameters: dict[str, Any] = {**where.parameters, "limit": limit}
    return Question(
        f"select *\nfrom triage_label_doubts\n{where}\n"
        "order by started_at desc, trace_id, request_id, label_id, passage, suspicion\n"
        "limit {limit:UInt32}",
        parameters,
    )
