"""Record: what is kept of a running request: references, times and copies of ids and scores.

Pipeline: decorators -> recorder -> [record] -> encoding (on the worker's thread)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ragotel import clock
from ragotel.columns import Candidates

if TYPE_CHECKING:
    from ragotel.encoding import Encoder
    from ragotel.lists import Told
    from ragotel.model import SpanData
    from ragotel.spec import Spec

OK, ERROR, CANCELLED = "ok", "error", "cancelled"
STOPPED_EARLY, ABANDONED = "stopped_early", "abandoned"

_SPAN_BYTES = 600
_CANDIDATE_BYTES = 120


class Trace:
    """One request, or one stage outside of any, with all that happened inside.

    Stages may end on any thread: `finished` is a queue that each appends to. Once the trace is
    closed, a stage that ends late hands itself to the delivery.
    """

    __slots__ = (
        "finished", "foreign_parent_id", "frontier", "is_closed", "offset_ns", "request_number",
        "root", "seen", "size_bytes", "span_count", "told", "trace_id", "withheld",
    )  # fmt: skip

    def __init__(self, trace_id: int, foreign_parent_id: int, request_number: int) -> None:
        self.trace_id = trace_id
        self.foreign_parent_id = foreign_parent_id
        """Span of the application's own trace; 0: none."""
        self.request_number = request_number
        """0: a stage outside of any request."""
        self.offset_ns = clock.wall_ns() - clock.tick_ns()
        self.root: Stage | None = None
        self.finished: deque[Stage] = deque()
        self.is_closed = False
        self.seen: dict[int, Candidates] = {}
        """Lists that stages returned, by identity of the service's own object."""
        self.frontier: list[Candidates] = []
        """Lists that no later stage has taken yet."""
        self.size_bytes = 0
        self.span_count = 0
        self.told: Told | None = None
        """What the lists of this trace have said so far; once encoded."""
        self.withheld: frozenset[str] = frozenset()
        """Hashes of texts that a permission filter dropped; known once encoded."""

    @property
    def request_id(self) -> str | None:
        return f"{self.request_number:016x}" if self.request_number else None

    def keep(self, found: Candidates) -> None:
        """Remember a list that a stage returned."""
        self.size_bytes += len(found) * _CANDIDATE_BYTES
        if not found.shared_texts:
            self.size_bytes += text_chars(found.texts)
        self.frontier.append(found)
        if found.source is not None:
            self.seen[id(found.source)] = found

    def close(self) -> None:
        """Let go of the service's objects; what ends from now on is late."""
        self.is_closed = True
        for found in self.seen.values():
            found.forget()
        self.seen = {}
        self.frontier = []


def text_chars(texts: list[Any]) -> int:
    """Count the characters of a column of texts, which may have gaps."""
    try:
        return sum(map(len, texts))
    except Exception:
        # A gap, or an object of the service's whose length raises what it likes.
        return sum(len(text) for text in texts if isinstance(text, str))


class Stage:
    """One step of a request while it runs, and its record afterwards.

    What most stages never set stands on the class: a stage is made on the service's thread.
    """

    name: str | None = None
    span_id: int = 0
    outcome: str | None = None
    """None: still running."""
    error_type: str | None = None
    values: dict[str, Any] | None = None
    """Attributes that only this run has, as found; cast when encoded."""
    query: Any = None
    inputs: list[Candidates] | None = None
    output: Candidates | None = None
    dropped: list[tuple[Any, str]] | None = None
    """Ids and reasons that the service itself named."""
    prompt: str | None = None
    sent: Candidates | None = None
    """The passages that the service says it sent, in prompt order."""
    answer: str | None = None
    parts: list[Any] | None = None
    """Chunks of a stream, joined when encoded."""
    reply: dict[str, Any] | None = None
    """What is known of a model's reply: usage, finish reasons, citations."""
    first_chunk_ns: int = 0
    faults: int = 0
    is_late: bool = False
    is_aside: bool = False
    """A model's call after the one that gave the answer; known once encoded."""
    end_ns: int = 0
    nested: list[Stage] | None = None
    """Records of the same step that hooks further inside made; merged into this one at its end."""
    on_close: Callable[[Stage, str], bool] | None = None
    """Asked before the stage is closed; True: another stage has taken it, it is none of its own."""
    read_chunk: Callable[[Any], dict[str, Any] | None] | None = None
    """Reads usage and finish reasons of one chunk of a stream, where its library is known."""
    read_part: Callable[[Any], str | None] | None = None
    """Reads the whole answer so far from one part of a stream, where its library is known."""

    def __init__(self, spec: Spec, trace: Trace, parent: Stage | None) -> None:
        self.spec = spec
        self.kind = spec.kind
        self.trace = trace
        self.parent = parent
        self.start_ns = clock.tick_ns()

    def put(self, key: str, value: Any) -> None:
        """Keep one attribute of this run."""
        if self.values is None:
            self.values = {}
        self.values[key] = value


class PendingTrace:
    """A closed trace, or stages that ended after it, on the way to the delivery."""

    __slots__ = ("_encoder", "_trace", "size_bytes", "span_count")

    def __init__(self, trace: Trace, encoder: Encoder) -> None:
        self._trace = trace
        self._encoder = encoder
        self.span_count = len(trace.finished)
        self.size_bytes = trace.size_bytes + self.span_count * _SPAN_BYTES
        trace.size_bytes = 0

    @property
    def stages(self) -> list[Stage]:
        """What has ended and is not encoded yet, for a reader in the same process."""
        return list(self._trace.finished)

    def finish(self) -> Iterator[SpanData]:
        """Encode what has ended, span by span."""
        return self._encoder.encode_trace(self._trace)
