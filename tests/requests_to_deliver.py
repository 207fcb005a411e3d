"""Finished requests as the delivery sees them, for tests that need no recorder."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ragotel.model import SpanData


class FakeRequest:
    """A pending request of *span_count* spans with *text* on each, numbered *n*."""

    def __init__(
        self,
        n: int,
        text: str = "",
        span_count: int = 1,
        fails: bool = False,
        encoding_s: float = 0.0,
    ) -> None:
        self.n = n
        self.text = text
        self.span_count = span_count
        self.size_bytes = len(text) * span_count + 200
        self.fails = fails
        self.encoding_s = encoding_s

    def finish(self) -> Iterator[SpanData]:
        for part in range(self.span_count):
            if self.fails:
                raise LookupError("no such candidate")
            time.sleep(self.encoding_s)
            now = time.time_ns()
            attributes = {"n": self.n, "rag.prompt.text": self.text}
            yield SpanData(self.n + 1, part + 1, 0, "rag.request", 1, now, now, attributes)
