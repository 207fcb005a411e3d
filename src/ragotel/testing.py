"""Testing: a pytest fixture that shows what a service records, with fixed ids and clock.

Pipeline: recorder -> [testing] in place of the delivery

Use it by ``pytest_plugins = ["ragotel.testing"]`` or ``from ragotel.testing import recorded``.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ragotel import attributes as at
from ragotel import clock, recorder
from ragotel.model import Pending, SpanData
from ragotel.settings import resolve_settings

FIRST_NS = 1_700_000_000_000_000_000
"""Time at which the fixed clock starts: 2023-11-14 22:13:20 UTC."""
TICK_NS = 1_000_000
"""How much later each reading of the fixed clock is: one millisecond."""
LISTS = (
    at.DOCUMENTS,
    at.CANDIDATES,
    at.DROPPED,
    at.CHUNKS,
    at.TAGS,
    at.FINISH_REASONS,
    at.CITATIONS,
)


class Recorded:
    """What was recorded so far; a sink that encodes at once, on the thread that asks."""

    def __init__(self) -> None:
        self._pending: list[Pending] = []
        self._spans: list[SpanData] = []
        self._lock = threading.RLock()

    def submit(self, pending: Pending) -> bool:
        self._pending.append(pending)
        return True

    def flush(self, timeout_s: float = 0.0) -> bool:
        with self._lock:
            while self._pending:
                self._spans.extend(self._pending.pop(0).finish())
        return True

    def shutdown(self, timeout_s: float | None = None) -> None:
        self.flush()

    def clear(self) -> None:
        """Forget what was recorded so far."""
        self.flush()
        self._spans.clear()

    @property
    def raw(self) -> list[SpanData]:
        """The spans as the delivery gets them, in the order of ending."""
        self.flush()
        return list(self._spans)

    @property
    def spans(self) -> list[dict[str, Any]]:
        """The spans as plain dicts, lists parsed, in the order of starting."""
        return [as_dict(span) for span in sorted(self.raw, key=lambda s: (s.start_ns, s.span_id))]

    def stages(self, kind: str) -> list[dict[str, Any]]:
        """The attributes of all stages of one kind, lists parsed, in the order of starting."""
        found = [span["attributes"] for span in self.spans]
        return [attributes for attributes in found if attributes.get(at.STAGE) == kind]

    def stage(self, kind: str) -> dict[str, Any]:
        """The attributes of the only stage of one kind."""
        (only,) = self.stages(kind)
        return only


def as_dict(span: SpanData) -> dict[str, Any]:
    """Show a span as plain values: ids as hex, times in nanoseconds, JSON texts parsed."""
    attributes = {
        key: json.loads(value) if key in LISTS and isinstance(value, str) else value
        for key, value in span.attributes.items()
    }
    return {
        "name": span.name,
        "trace_id": f"{span.trace_id:032x}",
        "span_id": f"{span.span_id:016x}",
        "parent_span_id": f"{span.parent_span_id:016x}" if span.parent_span_id else "",
        "kind": span.kind,
        "start_ns": span.start_ns,
        "end_ns": span.end_ns,
        "status_code": span.status_code,
        "status_message": span.status_message,
        "attributes": attributes,
    }


@contextmanager
def recording(*, fixed: bool = True, **settings: Any) -> Iterator[Recorded]:
    """Record into memory within a block; *fixed* counts ids from 1 and time in milliseconds.

    Further keywords are those of `ragotel.configure`, whose own setting is back afterwards.
    """
    sink = Recorded()
    before = recorder.active
    kept = (clock.wall_ns, clock.tick_ns, clock.random_bits)
    recorder.active = None
    if fixed:
        _fix_clock()
    recorder.configure(resolve_settings(**settings), sink)
    try:
        yield sink
        sink.flush()
    finally:
        clock.wall_ns, clock.tick_ns, clock.random_bits = kept
        recorder.shutdown()
        recorder.active = before


def _fix_clock() -> None:
    ids = itertools.count(1)
    ticks = itertools.count(0, TICK_NS)
    clock.random_bits = lambda bits: next(ids)
    clock.tick_ns = lambda: next(ticks)
    # The wall clock is only ever read beside the other one, so that it may count on its own.
    clock.wall_ns = lambda: FIRST_NS


try:
    import pytest
except ImportError:
    pass
else:

    @pytest.fixture
    def recorded() -> Iterator[Recorded]:
        """Everything that the test's service records, ids and clock fixed."""
        with recording() as sink:
            yield sink
