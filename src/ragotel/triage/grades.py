"""Grades: whether an answer was right, said by a person, an exact match or a judge.

Pipeline: person | file -> [triage] -> rag_grades -> rag_request_grades -> triage views
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from ragotel.store import Store
from ragotel.triage.fields import FieldError, choice_of, id_of, text_of
from ragotel.triage.lines import Progress, Report, no_progress, read_lines
from ragotel.triage.references import (
    RequestKey,
    complete_references,
    not_there,
    strange_requests,
    strangers,
)

GRADES = ("correct", "wrong", "abstained")
SOURCES = ("human", "exact", "judge")
"""In the order of precedence; within one source the newest grade counts."""

COLUMNS = (
    *("trace_id", "request_id", "label_id", "grade", "source", "graded_by", "note", "graded_at"),
)


@dataclass(frozen=True)
class Grade:
    """A grade of one request; *label_id* '' where it names no label."""

    key: RequestKey
    grade: str
    source: str = "human"
    label_id: str = ""
    graded_by: str = ""
    note: str = ""


def parse_key(record: Mapping[str, Any]) -> RequestKey:
    """The request that a line of a grades, probes or ablations file means.

    Raises:
        FieldError: It names neither a trace nor a request.
    """
    key = RequestKey(id_of(record, "trace_id"), id_of(record, "request_id"))
    if not (key.trace_id or key.request_id):
        raise FieldError("neither trace_id nor request_id is given")
    return key


def parse_grade(record: Mapping[str, Any]) -> Grade:
    """Read one object of a grades file.

    Raises:
        FieldError: A value has the wrong type or is none of the allowed ones.
    """
    return Grade(
        key=parse_key(record),
        grade=choice_of(record, "grade", GRADES),
        source=choice_of(record, "source", SOURCES, "human"),
        label_id=id_of(record, "label_id"),
        graded_by=id_of(record, "by"),
        note=text_of(record, "note"),
    )


def load_grades(store: Store, paths: Iterable[str], progress: Progress = no_progress) -> Report:
    """Load grades files; a later line is newer than an earlier one."""
    report, grades = Report(), []
    for line in read_lines(paths, report, progress):
        try:
            grades.append(parse_grade(line.value))
        except FieldError as error:
            report.refuse(line, str(error))
    write_grades(store, grades)
    report.loaded = len(grades)
    report.notes += _strangers(store, grades)
    return report


def _strangers(store: Store, grades: list[Grade]) -> list[str]:
    """Say which labels and requests are not there: such grades judge nothing yet."""
    names = strangers(
        store,
        "select distinct label_id from rag_labels where label_id in {ids:Array(String)}",
        (grade.label_id for grade in grades),
    )
    notes = [not_there("label", names, "grades")] if names else []
    return notes + strange_requests(store, (grade.key for grade in grades), "grades")


def write_grades(store: Store, grades: list[Grade]) -> None:
    """Write *grades*, each a microsecond newer than the one before it."""
    now = datetime.now(timezone.utc)
    keys = complete_references(store, [grade.key for grade in grades])
    rows = [
        (
            *(*key, grade.label_id, grade.grade, grade.source, grade.graded_by, grade.note),
            now + timedelta(microseconds=at),
        )
        for at, (key, grade) in enumerate(zip(keys, grades, strict=True))
    ]
    store.insert("rag_grades", rows, COLUMNS)
