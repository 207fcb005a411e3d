"""Probes: the rank at which a deep search of the same index finds a gold passage.

Pipeline: file -> [triage] -> rag_probes -> triage views (deep_rank, near_miss)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from ragotel.store import Store
from ragotel.triage.fields import FieldError, count_of, id_of, number_of, require, text_of
from ragotel.triage.grades import parse_key
from ragotel.triage.lines import Progress, Report, no_progress, read_lines
from ragotel.triage.references import complete_references, strange_requests

COLUMNS = (
    *("trace_id", "request_id", "label_id", "passage", "leg", "principal", "k", "deep_rank"),
    *("score", "index_version", "probed_at"),
)


def load_probes(store: Store, paths: Iterable[str], progress: Progress = no_progress) -> Report:
    """Load probes files; `deep_rank` null means: not within k. A later line is newer."""
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
    store.insert("rag_probes", rows, COLUMNS)
    report.loaded = len(rows)
    report.notes += strange_requests(store, keys, "probes")
    return report


def _values(record: Mapping[str, Any]) -> tuple[Any, ...]:
    passage = count_of(record, "passage", least=1)
    k, deep_rank = count_of(record, "k") or 0, count_of(record, "deep_rank", least=1)
    if passage is not None and passage >= 2**16:
        raise FieldError(f"passage is {passage}, no label has so many")
    if deep_rank is not None and k and deep_rank > k:
        raise FieldError(f"deep_rank {deep_rank} lies beyond k {k}")
    if deep_rank is None and not k:
        raise FieldError("k is missing or 0: how deep was the passage looked for in vain?")
    return (
        *(require(id_of(record, "label_id"), "label_id"), passage or 1, text_of(record, "leg")),
        *(id_of(record, "principal"), k, deep_rank, number_of(record, "score")),
        id_of(record, "index_version"),
    )
