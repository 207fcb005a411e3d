"""Decisions: what a person holds of a miss: is the label at fault, or the search?

Pipeline: person -> [triage] -> rag_label_decisions -> triage_losses, triage_label_doubts
"""

from __future__ import annotations

from typing import Any

from ragotel.errors import InputError
from ragotel.store import Store
from ragotel.triage.labels import check_label
from ragotel.triage.question import Conditions, Question
from ragotel.triage.references import RequestKey

_SHOWN = 5
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
        InputError: It does not judge that request.
    """
    check_label(store, label_id)
    if key is not None:
        _check_judges(store, label_id, key)
    columns = ("trace_id", "request_id", "label_id", "defect", "note", "decided_by")
    row = (*(key or RequestKey("", "")), label_id, defect, note, decided_by)
    store.insert("rag_label_decisions", [row], columns)


def _check_judges(store: Store, label_id: str, key: RequestKey) -> None:
    rows = store.query(
        "select trace_id, request_id from rag_request_labels where label_id = {label_id:String}\n"
        "order by trace_id, request_id",
        {"label_id": label_id},
    ).result_rows
    judged = [RequestKey(*row) for row in rows]
    if key in judged:
        return
    names = ", ".join(repr(one.request_id or one.trace_id) for one in judged[:_SHOWN])
    more = f" and {len(judged) - _SHOWN:,} more" if len(judged) > _SHOWN else ""
    name = key.request_id or key.trace_id
    raise InputError(
        f"The label {label_id!r} does not judge the request {name!r}; it judges "
        f"{names or 'none'}{more}. `ragotel labels attach REQUEST LABEL` adds one."
    )


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
