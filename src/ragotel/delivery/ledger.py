"""Ledger: how many spans and requests were offered, delivered and lost, and by which cause.

Pipeline: queue, worker -> [ledger] -> counters(), on_loss callbacks, spans named `ragotel.loss`
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import SystemRandom
from typing import TypeAlias

from ragotel.model import KIND_INTERNAL, SpanData

log = logging.getLogger("ragotel")

QUEUE_FULL = "queue_full"
TOO_LARGE = "too_large"
EXPORT_FAILED = "export_failed"
ENCODE_FAILED = "encode_failed"
REJECTED = "rejected"
SHUTDOWN = "shutdown"
SPOOL_FULL = "spool_full"
SPOOL_FAILED = "spool_failed"
SPOOL_DAMAGED = "spool_damaged"

LossCallback: TypeAlias = Callable[[str, int, int], None]
"""Called with cause, spans and requests, never on a request's thread; its errors are logged."""

# Not the module's functions: a service that seeds them would make ids that repeat.
_ids = SystemRandom()
_LOG_EVERY_S = 60.0


@dataclass(frozen=True)
class Tally:
    """A number of spans and the number of requests that they belong to."""

    spans: int = 0
    requests: int = 0

    def plus(self, spans: int, requests: int) -> Tally:
        return Tally(self.spans + spans, self.requests + requests)


@dataclass(frozen=True)
class Counters:
    """Since the start of the process (a forked child starts at zero)."""

    offered: Tally = Tally()
    delivered: Tally = Tally()
    """Of those offered, straight or by way of the spool."""
    lost: dict[str, Tally] = field(default_factory=dict)
    """By cause. A request that lost any of its spans counts as lost, its others as delivered."""
    spooled: Tally = Tally()
    """Of those offered, ever written to the disk: delivered or lost later, or still there."""
    replayed: Tally = Tally()
    """Delivered from the disk, also for processes that have ended."""


class Ledger:
    """Thread-safe counts; a loss stays unreported until a batch that tells it has arrived."""

    def __init__(self, callbacks: list[LossCallback]) -> None:
        # Re-entrant: a generator closed by the garbage collector may submit inside of any call.
        self._lock = threading.RLock()
        self._offered = [0, 0]
        self._delivered = [0, 0]
        self._spooled = [0, 0]
        self._replayed = [0, 0]
        self._lost: dict[str, Tally] = {}
        self._unreported: dict[str, Tally] = {}
        self._unannounced: dict[str, Tally] = {}
        self._callbacks = callbacks
        self._logged_at: dict[str, float] = {}

    def offer(self, spans: int) -> None:
        with self._lock:
            self._offered[0] += spans
            self._offered[1] += 1

    def deliver(self, spans: int, requests: int) -> None:
        with self._lock:
            self._delivered[0] += spans
            self._delivered[1] += requests

    def spool(self, spans: int, requests: int) -> None:
        """Count what was written to the disk."""
        with self._lock:
            self._spooled[0] += spans
            self._spooled[1] += requests

    def replay(self, spans: int, requests: int, is_own: bool) -> None:
        """Count what arrived from the disk; *is_own* False: another process was offered it."""
        with self._lock:
            self._replayed[0] += spans
            self._replayed[1] += requests
            if is_own:
                self._delivered[0] += spans
                self._delivered[1] += requests

    def lose(self, cause: str, spans: int, requests: int) -> None:
        """Count a loss; cheap, so that the request's own thread can do it."""
        with self._lock:
            for book in (self._lost, self._unreported, self._unannounced):
                book[cause] = book.get(cause, Tally()).plus(spans, requests)

    def announce(self) -> None:
        """Tell the callbacks and the log of the losses since the last call; never raises."""
        if not self._unannounced:
            return
        with self._lock:
            news, self._unannounced = self._unannounced, {}
        for cause, tally in news.items():
            for callback in self._callbacks:
                try:
                    callback(cause, tally.spans, tally.requests)
                except Exception:
                    log.exception("ragotel: a callback of on_loss failed")
            self._complain(cause)

    def _complain(self, cause: str) -> None:
        """Log a cause at most once a minute: the queue of a dead receiver loses thousands."""
        now = time.monotonic()
        if cause == SHUTDOWN:
            # Told once at the very end, with all that the end cost.
            return
        if now - self._logged_at.get(cause, float("-inf")) < _LOG_EVERY_S:
            return
        self._logged_at[cause] = now
        total = self._lost[cause]
        log.warning(
            "ragotel lost %d requests (%d spans) so far, cause %s; they are counted in rag_losses",
            total.requests,
            total.spans,
            cause,
        )

    def lost_requests(self) -> int:
        with self._lock:
            return sum(tally.requests for tally in self._lost.values())

    def has_unreported(self) -> bool:
        return bool(self._unreported)

    def take_unreported(self) -> dict[str, Tally]:
        """Hand over what no delivered batch has told yet; give it back if that batch is lost."""
        with self._lock:
            taken, self._unreported = self._unreported, {}
            return taken

    def give_back(self, taken: dict[str, Tally]) -> None:
        with self._lock:
            for cause, tally in taken.items():
                now = self._unreported.get(cause, Tally())
                self._unreported[cause] = now.plus(tally.spans, tally.requests)

    def counters(self) -> Counters:
        with self._lock:
            return Counters(
                Tally(*self._offered),
                Tally(*self._delivered),
                dict(self._lost),
                Tally(*self._spooled),
                Tally(*self._replayed),
            )


def loss_span(cause: str, tally: Tally) -> SpanData:
    """Write a loss as a span that the store's table rag_losses understands."""
    now = time.time_ns()
    return SpanData(
        trace_id=_ids.getrandbits(128) or 1,
        span_id=_ids.getrandbits(64) or 1,
        parent_span_id=0,
        name="ragotel.loss",
        kind=KIND_INTERNAL,
        start_ns=now,
        end_ns=now,
        attributes={
            "rag.schema": 1,
            "rag.loss.cause": cause,
            "rag.loss.spans": tally.spans,
            "rag.loss.requests": tally.requests,
        },
    )
