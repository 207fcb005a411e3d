"""Worker: the one thread that turns finished requests into messages and sends them.

Pipeline: queue -> [worker] -> transport -> receiver

It works in short slices and steps aside between them, so that the service's own threads, which
share the interpreter with it, do not wait. Every exception ends at the request or message it met.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

from opentelemetry import context

from ragotel.delivery.batch import Accounts, Batch, Part, Ticket
from ragotel.delivery.ledger import (
    ENCODE_FAILED,
    EXPORT_FAILED,
    SHUTDOWN,
    TOO_LARGE,
    Ledger,
    Tally,
    loss_span,
)
from ragotel.delivery.queue import ByteQueue
from ragotel.delivery.transport import Answer, Transport, backoff_s
from ragotel.model import Pending, SpanData
from ragotel.settings import Settings

log = logging.getLogger("ragotel")

SLICE_NS = 100_000
"""Longest stretch of work without stepping aside, but for one span's own encoding."""
# Below the timer's slack of 50 us; 0 would give the interpreter back before others can take it.
_STEP_ASIDE_S = 1e-5
_POLL_S = 0.05
_DOUBTFUL_TRIES = 5
_LAST_BACKOFF_S = 0.2
_STUCK_S = 0.25


class Worker:
    """Owns the transport and the open batch; `run` is its thread's whole life."""

    def __init__(
        self,
        settings: Settings,
        queue: ByteQueue,
        ledger: Ledger,
        make_transport: Callable[[], Transport],
    ) -> None:
        self._settings = settings
        self._queue = queue
        self._ledger = ledger
        self._accounts = Accounts(queue, ledger)
        self._make_transport = make_transport
        self._transport: Transport | None = None
        self._batch = Batch()
        self._under_way = Batch()
        self._batch_due = 0.0
        self._wakes: SimpleQueue[None] = SimpleQueue()
        self._is_asleep = False
        self._flush_up_to = 0
        self._stop_by: float | None = None
        self._sending_since: float | None = None
        self._is_reachable = True
        self.last_failure = ""
        self.high_bytes = min(queue.limit_bytes // 4, 8 * 1024 * 1024)

    # What other threads call.

    def nudge(self) -> None:
        """Tell that something was queued; costs nothing while the worker is awake."""
        if self._is_asleep:
            self._is_asleep = False
            self._wakes.put(None)

    def flush(self, up_to: int) -> None:
        """Send what was accepted as number *up_to* or earlier without waiting for more."""
        self._flush_up_to = max(self._flush_up_to, up_to)
        self._wakes.put(None)

    def stop(self, timeout_s: float) -> None:
        """Deliver what waits within *timeout_s*, count the rest as lost, then end."""
        self._stop_by = time.monotonic() + timeout_s
        self._wakes.put(None)

    def is_crowded(self) -> bool:
        """Whether requests come faster than they are encoded, the receiver not being the cause."""
        if self._queue.used_bytes < self.high_bytes or not self._is_reachable:
            return False
        since = self._sending_since
        return since is None or time.monotonic() - since < _STUCK_S

    # The worker's own thread.

    def run(self) -> None:
        """Work until stopped; never raises."""
        token = context.attach(_suppressed())
        try:
            while not self._is_over():
                try:
                    self._step()
                except Exception:
                    log.exception("ragotel: the delivery goes on after an error of its own")
                    time.sleep(_POLL_S)
            self._end()
        finally:
            context.detach(token)

    def _is_over(self) -> bool:
        if self._stop_by is None:
            return False
        is_idle = not len(self._queue) and not self._batch.parts
        return is_idle or time.monotonic() >= self._stop_by

    def _step(self) -> None:
        pending = self._queue.pop()
        if pending is not None:
            self._encode(pending)
        is_empty = not len(self._queue)
        if self._batch.parts and ((is_empty and self._must_flush()) or self._is_due()):
            self._ship()
        elif pending is None:
            self._rest()
        self._ledger.announce()

    def _must_flush(self) -> bool:
        return self._stop_by is not None or self._flush_up_to > self._queue.settled

    def _is_due(self) -> bool:
        return time.monotonic() >= self._batch_due

    def _rest(self) -> None:
        """Wait for work: with an open batch until it is due, else until woken."""
        if self._batch.parts:
            self._wait(min(_POLL_S, max(0.0, self._batch_due - time.monotonic())))
            return
        if self._ledger.has_unreported() and self._is_reachable:
            self._open_batch()
            self._ship()
            return
        # One more short wait: a busy service then never pays for waking the worker.
        if self._wait(_POLL_S) or len(self._queue):
            return
        self._is_asleep = True
        if not len(self._queue) and self._stop_by is None:
            self._wait(None)
        self._is_asleep = False

    def _wait(self, timeout_s: float | None) -> bool:
        """Wait for a call of nudge, flush or stop; False when the time ran out."""
        try:
            self._wakes.get(timeout=timeout_s)
        except Empty:
            return False
        return True

    def _encode(self, pending: Pending) -> None:
        """Put the spans of one request into the open batch; its failure costs itself alone."""
        ticket = Ticket(pending.size_bytes)
        added = 0
        began = time.perf_counter_ns()
        try:
            for span in pending.finish():
                if self._add(ticket, span):
                    added += 1
                now = time.perf_counter_ns()
                if now - began > SLICE_NS and self._queue.used_bytes < self.high_bytes:
                    time.sleep(_STEP_ASIDE_S)
                    began = time.perf_counter_ns()
        except Exception as error:
            log.warning("ragotel could not encode a request: %s: %s", type(error).__name__, error)
            ticket.lost_cause = ENCODE_FAILED
            self._ledger.lose(ENCODE_FAILED, max(0, pending.span_count - added), 0)
        ticket.is_whole = True
        self._accounts.close_if_done(ticket)

    def _add(self, ticket: Ticket, span: SpanData) -> bool:
        transport = self._open_transport()
        limit = self._settings.batch_bytes - transport.overhead_bytes
        try:
            piece, size, was_cut = transport.encode(span, limit)
        except ValueError as error:
            self.last_failure = str(error)
            ticket.lost_cause = TOO_LARGE
            self._ledger.lose(TOO_LARGE, 1, 0)
            return True
        if was_cut:
            log.info("ragotel cut the texts of span %s to %d bytes", span.name, size)
        if self._batch.parts and self._batch.size_bytes + size > limit:
            self._ship()
        if not self._batch.parts:
            self._open_batch()
        self._batch.add(Part(ticket, piece, size, 1))
        return True

    def _open_batch(self) -> None:
        self._batch_due = time.monotonic() + self._settings.batch_interval_s
        if self._ledger.has_unreported():
            self._report(self._batch, self._ledger.take_unreported())

    def _report(self, batch: Batch, losses: dict[str, Tally]) -> None:
        batch.losses = losses
        for cause, tally in losses.items():
            span = loss_span(cause, tally)
            piece, size, _ = self._open_transport().encode(span, self._settings.batch_bytes)
            batch.add(Part(None, piece, size, 0))

    def _open_transport(self) -> Transport:
        if self._transport is None:
            self._transport = self._make_transport()
        return self._transport

    def _ship(self) -> None:
        """Send the open batch; it is delivered or lost when this returns."""
        self._under_way, self._batch = self._batch, Batch()
        self._deliver(self._under_way)
        self._under_way = Batch()

    def _deliver(self, batch: Batch) -> None:
        message = self._open_transport().message([part.piece for part in batch.parts])
        give_up_at = time.monotonic() + self._settings.retry_s
        attempt = 0
        while True:
            attempt += 1
            answer = self._send(message)
            self._is_reachable = answer.verdict == "ok"
            if answer.verdict == "ok":
                self._accounts.delivered(batch, answer.rejected_spans)
                return
            self.last_failure = answer.detail
            if answer.verdict == "too_large" and len(batch.parts) > 1:
                for half in batch.halves():
                    self._deliver(half)
                return
            is_final = answer.verdict in ("refused", "too_large") or (
                answer.verdict == "doubtful" and attempt >= _DOUBTFUL_TRIES
            )
            if is_final or not self._pause(attempt, answer, give_up_at):
                self._give_up(batch, answer)
                return

    def _send(self, message: object) -> Answer:
        timeout_s = self._settings.timeout_s
        if self._stop_by is not None:
            timeout_s = max(0.05, min(timeout_s, self._stop_by - time.monotonic()))
        self._sending_since = time.monotonic()
        try:
            return self._open_transport().send(message, timeout_s)
        except Exception as error:
            return Answer("doubtful", f"{type(error).__name__}: {error}")
        finally:
            self._sending_since = None

    def _pause(self, attempt: int, answer: Answer, give_up_at: float) -> bool:
        """Wait before the next try; False when there shall be none."""
        self._ledger.announce()
        if attempt == 1:
            log.info("ragotel: the receiver does not answer well, trying again: %s", answer.detail)
        until = min(give_up_at, time.monotonic() + backoff_s(attempt, answer.retry_after_s))
        while (now := time.monotonic()) < until:
            if self._stop_by is not None:
                until = min(until, now + _LAST_BACKOFF_S)
                if now >= self._stop_by:
                    return False
                time.sleep(min(_POLL_S, until - now))
            else:
                self._wait(min(1.0, until - now))
                self._ledger.announce()
        return now < give_up_at

    def _give_up(self, batch: Batch, answer: Answer) -> None:
        is_end = self._stop_by is not None and time.monotonic() >= self._stop_by
        cause = SHUTDOWN if is_end else EXPORT_FAILED
        log.warning("ragotel gave up a message of %d spans: %s", len(batch.parts), answer.detail)
        self._accounts.lost(batch, cause)

    def _end(self) -> None:
        """Tell the last losses if there is time, and count what is left as lost."""
        if self._stop_by is not None and time.monotonic() < self._stop_by:
            if self._ledger.has_unreported() and self._is_reachable:
                self._open_batch()
                self._ship()
        elif self._batch.parts:
            batch, self._batch = self._batch, Batch()
            self._accounts.lost(batch, SHUTDOWN)
        self.discard()
        if self._transport is not None:
            self._transport.close()

    def abandon(self) -> None:
        """Count what is under way too: the process ends while the receiver has not answered."""
        spans = sum(part.span_count for part in self._under_way.parts)
        self.discard()
        self._ledger.lose(SHUTDOWN, spans, self._queue.accepted - self._queue.settled)
        self._ledger.announce()

    def discard(self) -> None:
        """Count everything that still waits as lost to the end of the process."""
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
