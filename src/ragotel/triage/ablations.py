"""Ablations: was the answer right with the gold passage alone, or with it at another position?

Pipeline: file -> [triage] -> rag_ablations -> triage views (state 2b or 3)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from ragotel.store import Store
from ragotel.triage.fields import (
    FieldError,
    choice_of,
    count_of,
    flag_of,
    id_of,
    require,
    text_of,
)
from ragotel.triage.grades import parse_key
from ragotel.triage.lines import Progress, Report, no_progress, read_lines
from ragotel.triage.references import complete_references, strange_requests

MODES = ("gold_only", "position", "full")
COLUMNS = (
    *("trace_id", "request_id", "label_id", "mode", "position", "of", "correct", "answer"),
    "ablated_at",
)


def load_ablations(store: Store, paths: Iterable[str], progress: Progress = no_progress) -> Report:
    """Load ablations files; a later line is newer than an earlier one."""
    report, keys, values = Report(), [], []
    for line in read_lines(paths, report, progress):
        try:
            value = _values(line.value)
            keys.append(parse_key(line.value))
            values.append(value)
        except FieldError as error:
            report.refuse(line, str(error))
    now = datetime.now(timezone.utc)
    rows = [
        (*key, *value, now + timedelta(microseconds=at))
        for at, (key, value) in enumerate(
            zip(complete_references(store, keys), values, strict=True)
        )
    ]
    store.insert("rag_ablations", rows, COLUMNS)
    report.loaded = len(rows)
    report.notes += strange_requests(store, keys, "ablations")
    return report


def _values(record: Mapping[str, Any]) -> tuple[Any, ...]:
    mode = choice_of(record, "mode", MODES)
    position, of = count_of(record, "position"), count_of(record, "of") or 0
    if mode == "position" and not position:
        raise FieldError("position is missing or 0: it is what this mode varies, from 1 on")
    if position and of and position > of:
        raise FieldError(f"position {position} lies beyond the {of} passages of the prompt")
    return (
        *(require(id_of(record, "label_id"), "label_id"), mode, position or 0),
        *(of, flag_of(record, "correct"), text_of(record, "answer")),
    )
