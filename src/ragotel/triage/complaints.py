"""Complaints: what a user said about an answer, kept with the request it is about.

Pipeline: person -> [triage] -> rag_complaints -> triage views
"""

from __future__ import annotations

import uuid
from datetime import datetime, timezone

from ragotel.store import Store
from ragotel.triage.references import RequestKey

COLUMNS = (
    *("complaint_id", "trace_id", "request_id", "label_id", "text", "grade", "reported_by"),
    "complained_at",
)


def write_complaint(
    store: Store,
    key: RequestKey,
    *,
    text: str,
    grade: str = "",
    label_id: str = "",
    reported_by: str = "",
    complained_at: datetime | None = None,
) -> str:
    """Record a complaint; its id. A *grade* given with it counts as a person's."""
    complaint_id = uuid.uuid4().hex
    moment = complained_at or datetime.now(timezone.utc)
    row = (complaint_id, *key, label_id, text, grade, reported_by, moment)
    store.insert("rag_complaints", [row], COLUMNS)
    return complaint_id


def attach_label(store: Store, key: RequestKey, label_id: str, *, attached_by: str = "") -> None:
    """Say that the request *key* is to be judged by *label_id*, whatever its question was."""
    columns = ("trace_id", "request_id", "label_id", "attached_by")
    store.insert("rag_label_attachments", [(*key, label_id, attached_by)], columns)
