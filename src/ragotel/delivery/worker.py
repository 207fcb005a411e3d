"""Worker: the one thread that turns finished requests into batches and has them sent.

Pipeline: queue -> [worker] -> courier -> transport -> receiver

It works in short slices and steps aside between them, so that the service's own threads, which
share the interpreter with it, do not wait. Every exception ends at the request or message it met.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from opentelemetry import context

from ragotel import pacing
from ragotel.delivery.batch import Accounts, Batch, Part, Ticket
from ragotel.delivery.courier import Alarm, Courier
from ragotel.delivery.ledger import ENCODE_FAILED, SHUTDOWN, TOO_LARGE, Ledger, loss_span
from ragotel.delivery.queue import ByteQueue
from ragotel.delivery.replay import Replay
from ragotel.delivery.transport import Transport
from ragotel.model import Pending, SpanData
from ragotel.settings import Settings

log = logging.getLogger("ragotel")

_POLL_S = 0.05
_LINGER_S = 5.0
_MAKE_WAY_S = 0.005
_MIB = 1024 * 1024


class Worker:
    """Owns the open batch; `run` is its thread's whole life."""

    def __init__(
        self,
        settings: Settings,
        queue: ByteQueue,
        ledger: Ledger,
        make_transport: Callable[[], Transport],
        replay: Replay | None = None,
    ) -> None:
        self._settings = settings
        self._queue = queue
        self._ledger = ledger
        self._accounts = Accounts(queue, ledger)
        self._alarm = Alarm()
        self._pid = os.getpid()
        self._courier = Courier(
            settings, self._accounts, ledger, self._alarm, make_transport, replay
        )
        self._batch = Batch()
        self._batch_due = 0.0
        self._is_asleep = False
        self._is_resting = False
        self._idle_since = 0.0
        self._flush_up_to = 0
        self._encoded = 0
        self._high_bytes = min(queue.limit_bytes // 4, 8 * _MIB)

    # What other threads call.

    def nudge(self) -> None:
        """Tell that something was queued; costs nothing while the worker is awake."""
        if self._is_asleep:
            self._is_asleep = False
            self._alarm.ring()
        elif self._is_resting and self._queue.waiting_bytes >= self._high_bytes // 2:
            self._is_resting = False
            self._alarm.ring()

    def flush(self, up_to: int) -> None:
        """Send what was accepted as number *up_to* or earlier without waiting for more."""
        self._flush_up_to = max(self._flush_up_to, up_to)
        self._courier.hurry()
        self._alarm.ring()

    def stop(self, timeout_s: float) -> None:
        """Deliver what waits within *timeout_s*, count the rest as lost, then end."""
        self._alarm.stop(timeout_s)

    def interrupt(self) -> None:
        """Have what hangs fail, so that there is time to write the rest to the disk."""
        self._courier.interrupt()

    def wait_for_disk(self, until: float) -> bool:
        """Wait until nothing of this process waits on the disk; False: it does, or time is up."""
        while self._courier.has_own_on_disk():
            if self._courier.is_away or time.monotonic() >= until:
                return False
            time.sleep(_POLL_S)
        return True

    def is_crowded(self) -> bool:
        """Whether requests come faster than they are encoded, the receiver not being the cause."""
        queue = self._queue
        is_behind = queue.waiting_bytes >= self._high_bytes or queue.is_nearly_full()
        return is_behind and not self._is_resting and not self._courier.is_waiting()

    def make_way(self) -> None:
        """Let a crowded worker encode one request; for the thread that submits, for 5 ms at most.

        A loop that never waits keeps the interpreter to itself, and would fill the queue however
        fast the worker is. A thread that waits for the interpreter waits as long.
        """
        encoded, until = self._encoded, time.monotonic() + _MAKE_WAY_S
        while self._encoded == encoded and self.is_crowded() and time.monotonic() < until:
            time.sleep(_MAKE_WAY_S / 50)

    def abandon(self) -> None:
        """Count all as lost: the process ends while the receiver has not answered."""
        spans = sum(part.span_count for part in self._courier.under_way.parts)
        before = self._ledger.counters().spooled.spans
        self._courier.put_aside_what_hangs()
        spans -= self._ledger.counters().spooled.spans - before
        self._discard()
        self._ledger.lose(SHUTDOWN, spans, self._queue.accepted - self._queue.settled)
        self._keep_losses()
        self._ledger.announce()

    @property
    def last_failure(self) -> str:
        return self._courier.last_failure

    # The worker's own thread.

    def run(self) -> None:
        """Work until stopped; never raises."""
        token = context.attach(_suppressed())
        self._idle_since = time.monotonic()
        try:
            while not self._is_over():
                try:
                    self._step()
                except Exception:
                    log.exception("ragotel: the delivery goes on after an error of its own")
                    time.sleep(_POLL_S)
            if self._pid == os.getpid():
                self._end()
        finally:
            context.detach(token)

    def leave_to_parent(self) -> None:
        """Let go of the parent's connection, in a child that a fork gave a copy of this worker.

        Threads end with a fork, but greenlets go on in both processes.
        """
        self._courier.disconnect()

    def _is_over(self) -> bool:
        if self._pid != os.getpid():
            return True
        if self._alarm.stop_by is None:
            return False
        is_idle = not len(self._queue) and not self._batch.parts
        if is_idle and not self._courier.is_replaying():
            return True
        return self._alarm.is_over()

    def _step(self) -> None:
        pending = self._queue.pop()
        if pending is not None:
            self._encode(pending)
        if self._batch.parts and self._is_due():
            self._ship()
            self._courier.replay()
        elif pending is None and not self._courier.replay():
            self._is_resting = True
            self._rest()
            self._is_resting = False
            pacing.begin()
        self._ledger.announce()

    def _is_due(self) -> bool:
        if len(self._queue):
            # What piled up during a slow answer fills messages: one for each would never catch up.
            # Yet a batch takes room in the queue too, and may be all that a small one holds.
            is_most = self._batch.size_bytes >= self._queue.limit_bytes // 4
            return is_most and self._queue.is_nearly_full()
        if time.monotonic() >= self._batch_due or self._queue.is_nearly_full():
            return True
        return self._alarm.stop_by is not None or self._flush_up_to > self._queue.settled

    def _rest(self) -> None:
        """Wait for work: by polling while the service is busy, else until woken."""
        now = time.monotonic()
        if self._batch.parts:
            self._idle_since = now
            self._alarm.wait(min(_POLL_S, max(0.0, self._batch_due - now)))
        elif self._ledger.has_unreported() and self._courier.is_reachable:
            self._open_batch()
        elif now - self._idle_since < _LINGER_S:
            # A busy service then never pays for waking the worker.
            self._alarm.wait(_POLL_S)
        else:
            self._is_asleep = True
            if not len(self._queue) and self._alarm.stop_by is None:
                self._alarm.wait(self._courier.replay_in_s())
            self._is_asleep = False
            self._idle_since = time.monotonic()

    def _encode(self, pending: Pending) -> None:
        """Put the spans of one request into batches; its failure costs itself alone."""
        ticket = Ticket(pending.size_bytes)
        encoded: list[tuple[Any, int]] = []
        pacing.is_hurried = self.is_crowded()
        pace = pacing.Pace()
        count = 0
        try:
            for span in pending.finish():
                count += 1
                self._encode_span(ticket, span, encoded)
                pace.step()
        except Exception as error:
            log.warning("ragotel could not encode a request: %s: %s", type(error).__name__, error)
            ticket.lost_cause = ENCODE_FAILED
            self._ledger.lose(ENCODE_FAILED, max(0, pending.span_count - count), 0)
        ticket.size_bytes = sum(size for _, size in encoded)
        self._queue.recharge(pending.size_bytes, ticket.size_bytes)
        self._encoded += 1
        self._add(ticket, encoded)

    def _encode_span(self, ticket: Ticket, span: SpanData, encoded: list[tuple[Any, int]]) -> None:
        try:
            encoded.append(self._courier.encode(span))
        except ValueError as error:
            log.warning("ragotel: %s", error)
            ticket.lost_cause = TOO_LARGE
            self._ledger.lose(TOO_LARGE, 1, 0)

    def _add(self, ticket: Ticket, encoded: list[tuple[Any, int]]) -> None:
        """Add a request to the open batch, whole if a message can hold it."""
        room = self._courier.room_bytes
        if self._batch.parts and self._batch.size_bytes + ticket.size_bytes > room:
            self._ship()
        pieces: list[Any] = []
        size_bytes = 0
        for piece, size in encoded:
            if pieces and size_bytes + size > room:
                self._add_part(Part(ticket, pieces, size_bytes))
                self._ship()
                pieces, size_bytes = [], 0
            pieces.append(piece)
            size_bytes += size
        if pieces:
            self._add_part(Part(ticket, pieces, size_bytes))
        ticket.is_whole = True
        self._accounts.close_if_done(ticket)

    def _add_part(self, part: Part) -> None:
        if not self._batch.parts:
            self._open_batch()
        self._batch.add(part)

    def _open_batch(self) -> None:
        """Begin a batch, with the losses that no delivered one has told yet."""
        self._batch_due = time.monotonic() + self._settings.batch_interval_s
        if not self._ledger.has_unreported():
            return
        self._batch.losses = self._ledger.take_unreported()
        for cause, tally in self._batch.losses.items():
            piece, size = self._courier.encode(loss_span(cause, tally))
            self._batch.add(Part(None, [piece], size))

    def _ship(self) -> None:
        """Send the open batch; it is delivered or lost when this returns."""
        batch, self._batch = self._batch, Batch()
        self._courier.deliver(batch)

    def _end(self) -> None:
        """Tell the last losses if there is time, and count what is left as lost."""
        if self._batch.parts:
            batch, self._batch = self._batch, Batch()
            self._courier.give_up(batch)
        elif self._ledger.has_unreported() and self._courier.is_reachable:
            self._open_batch()
            self._ship()
        self._discard()
        self._keep_losses()
        self._courier.close()

    def _keep_losses(self) -> None:
        """Leave the losses that nobody was told of to the next process, where there is a spool."""
        losses = self._ledger.take_unreported()
        spans = [loss_span(cause, tally) for cause, tally in losses.items()]
        if not spans or not self._courier.keep_losses(spans, losses):
            self._ledger.give_back(losses)

    def _discard(self) -> None:
        while (pending := self._queue.pop()) is not None:
            self._ledger.lose(SHUTDOWN, pending.span_count, 1)
            self._queue.release(pending.size_bytes)
        self._ledger.announce()


def _suppressed() -> context.Context:
    """Keep auto-instrumentation of HTTP and gRPC clients from recording our own calls."""
    quiet = context.get_current()
    # The keys of the API, and the one that instrumentations older than it still ask for.
    for key in (
        context._SUPPRESS_INSTRUMENTATION_KEY,
        context._SUPPRESS_HTTP_INSTRUMENTATION_KEY,
        "suppress_instrumentation",
    ):
        quiet = context.set_value(key, True, quiet)
    return quiet


def start(worker: Worker) -> threading.Thread:
    """Run *worker* on a daemon thread."""
    thread = threading.Thread(target=worker.run, name="ragotel-delivery", daemon=True)
    thread.start()
    return thread
