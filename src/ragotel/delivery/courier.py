"""Courier: gets one batch to the receiver, or counts it as lost, and says how the receiver fares.

Pipeline: worker -> [courier] -> transport -> receiver
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from ragotel.delivery.batch import Accounts, Batch
from ragotel.delivery.ledger import EXPORT_FAILED, SHUTDOWN, Ledger
from ragotel.delivery.transport import Answer, Transport, backoff_s
from ragotel.model import SpanData
from ragotel.settings import Settings

log = logging.getLogger("ragotel")

_DOUBTFUL_TRIES = 5
_POLL_S = 0.05
_LAST_BACKOFF_S = 0.2
_SHORTEST_TIMEOUT_S = 0.05
_SLOW_S = 0.25


class Alarm:
    """What may cut a wait short: a wake-up call, and the time by which all must end."""

    def __init__(self) -> None:
        # Not an Event: its lock would stick if the garbage collector ran a caller inside of it.
        self._calls: SimpleQueue[None] = SimpleQueue()
        self.stop_by: float | None = None
        """Monotonic seconds; None: nobody has asked to stop."""

    def ring(self) -> None:
        self._calls.put(None)

    def stop(self, timeout_s: float) -> None:
        self.stop_by = time.monotonic() + timeout_s
        self.ring()

    def is_over(self) -> bool:
        return self.stop_by is not None and time.monotonic() >= self.stop_by

    def wait(self, timeout_s: float | None) -> bool:
        """Wait for a ring; False when the time ran out."""
        try:
            self._calls.get(timeout=timeout_s)
        except Empty:
            return False
        return True


class Courier:
    """Owns the transport; used by the worker's thread alone."""

    def __init__(
        self,
        settings: Settings,
        accounts: Accounts,
        ledger: Ledger,
        alarm: Alarm,
        make_transport: Callable[[], Transport],
    ) -> None:
        self._settings = settings
        self._accounts = accounts
        self._ledger = ledger
        self._alarm = alarm
        self._make_transport = make_transport
        self._transport: Transport | None = None
        self._sending_since: float | None = None
        self._is_slow = False
        self.is_reachable = True
        """Whether the last message was taken."""
        self.last_failure = ""
        self.under_way = Batch()

    @property
    def transport(self) -> Transport:
        """The transport, made on this thread when first needed."""
        if self._transport is None:
            self._transport = self._make_transport()
        return self._transport

    def encode(self, span: SpanData) -> tuple[Any, int]:
        """Encode *span* so that a message can hold it; give the piece and its size in bytes."""
        piece, size, was_cut = self.transport.encode(span, self.room_bytes)
        if was_cut:
            log.info("ragotel cut the texts of span %s to %d bytes", span.name, size)
        return piece, size

    @property
    def room_bytes(self) -> int:
        """What the spans of one message may take."""
        return self._settings.batch_bytes - self.transport.overhead_bytes

    def is_waiting(self) -> bool:
        """Whether the receiver, not the worker, is what holds up the delivery."""
        since = self._sending_since
        is_stuck = since is not None and time.monotonic() - since > _SLOW_S
        return is_stuck or self._is_slow or not self.is_reachable

    def deliver(self, batch: Batch) -> None:
        """Send *batch* until it is delivered or lost."""
        self.under_way = batch
        try:
            self._deliver(batch)
        finally:
            self.under_way = Batch()

    def _deliver(self, batch: Batch) -> None:
        message = self.transport.message(batch.pieces)
        give_up_at = time.monotonic() + self._settings.retry_s
        attempt = 0
        while True:
            attempt += 1
            answer = self._send(message)
            self.is_reachable = answer.verdict == "ok"
            if answer.verdict == "ok":
                self._accounts.delivered(batch, answer.rejected_spans)
                return
            self.last_failure = answer.detail
            if answer.verdict == "too_large" and len(batch.pieces) > 1:
                for half in batch.halves():
                    self._deliver(half)
                return
            if _is_final(answer, attempt) or not self._pause(attempt, answer, give_up_at):
                self._give_up(batch, answer)
                return

    def _send(self, message: Any) -> Answer:
        timeout_s = self._settings.timeout_s
        if self._alarm.stop_by is not None:
            left_s = self._alarm.stop_by - time.monotonic()
            timeout_s = max(_SHORTEST_TIMEOUT_S, min(timeout_s, left_s))
        began = self._sending_since = time.monotonic()
        try:
            return self.transport.send(message, timeout_s)
        except Exception as error:
            return Answer("doubtful", f"{type(error).__name__}: {error}")
        finally:
            self._sending_since = None
            self._is_slow = time.monotonic() - began > _SLOW_S

    def _pause(self, attempt: int, answer: Answer, give_up_at: float) -> bool:
        """Wait before the next try; False when there shall be none."""
        if attempt == 1:
            log.info("ragotel: the receiver does not answer well, trying again: %s", answer.detail)
        until = min(give_up_at, time.monotonic() + backoff_s(attempt, answer.retry_after_s))
        while (now := time.monotonic()) < until:
            self._ledger.announce()
            if self._alarm.stop_by is None:
                self._alarm.wait(min(1.0, until - now))
            elif now >= self._alarm.stop_by:
                return False
            else:
                # Little time is left: it is better spent trying than waiting.
                until = min(until, now + _LAST_BACKOFF_S)
                time.sleep(min(_POLL_S, until - now))
        return now < give_up_at

    def _give_up(self, batch: Batch, answer: Answer) -> None:
        cause = SHUTDOWN if self._alarm.is_over() else EXPORT_FAILED
        log.warning("ragotel gave up a message of %d spans: %s", len(batch.pieces), answer.detail)
        self._accounts.lost(batch, cause)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def _is_final(answer: Answer, attempt: int) -> bool:
    """Whether another try of the same message would be in vain."""
    if answer.verdict == "doubtful":
        return attempt >= _DOUBTFUL_TRIES
    return answer.verdict != "retry"
