"""Delivery: takes finished requests from the recorder and gets them to the receiver.

Pipeline: recorder -> [delivery: queue -> worker -> transport] -> receiver
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from dataclasses import replace

from ragotel.delivery import ending
from ragotel.delivery.identity import SCOPE_NAME, resource_attributes, scope_version
from ragotel.delivery.ledger import QUEUE_FULL, SHUTDOWN, TOO_LARGE, Counters, Ledger, LossCallback
from ragotel.delivery.otlp import Envelope
from ragotel.delivery.queue import ByteQueue
from ragotel.delivery.replay import Replay
from ragotel.delivery.spool import Spool, holds_messages
from ragotel.delivery.transport import Transport, choose_transport
from ragotel.delivery.worker import Worker, start
from ragotel.model import Pending
from ragotel.settings import Settings

log = logging.getLogger("ragotel")

_NO_SPOOL = "a spool needs OTLP over HTTP or gRPC, and locks as POSIX systems have them"


def _is_on_event_loop() -> bool:
    asyncio = sys.modules.get("asyncio.events")
    return asyncio is not None and asyncio._get_running_loop() is not None


class Line:
    """The delivery of one process: a forked child gets its own, with nothing of its parent's."""

    def __init__(self, settings: Settings, callbacks: list[LossCallback]) -> None:
        self.pid = os.getpid()
        self.queue = ByteQueue(settings.queue_bytes)
        self.ledger = Ledger(callbacks)
        self._settings = settings
        self._transport = choose_transport(settings)
        replay = _replay(settings, self.ledger)
        self.worker = Worker(settings, self.queue, self.ledger, self._make_transport, replay)
        self._thread: threading.Thread | None = None
        self._starting = threading.RLock()
        self._is_closed = False

    def _make_transport(self) -> Transport:
        resource = resource_attributes(self._settings)
        return self._transport(self._settings, Envelope(resource, SCOPE_NAME, scope_version()))

    def submit(self, pending: Pending) -> bool:
        self.ledger.offer(pending.span_count)
        if self._is_closed:
            self.ledger.lose(SHUTDOWN, pending.span_count, 1)
            return False
        if not self.queue.offer(pending):
            is_alone = pending.size_bytes > self.queue.limit_bytes
            self.ledger.lose(TOO_LARGE if is_alone else QUEUE_FULL, pending.span_count, 1)
            return False
        if self._thread is None:
            self._start()
        self.worker.nudge()
        if self.worker.is_crowded() and not _is_on_event_loop():
            # Never for a slow receiver, and never on an event loop.
            self.worker.make_way()
        return True

    def _start(self) -> None:
        with self._starting:
            if self._thread is not None:
                return
            ending.watch_this_process()
            try:
                self._thread = start(self.worker)
            except RuntimeError:
                # The interpreter is ending: `shutdown` does the work on its own thread.
                log.debug("ragotel: no thread can be started any more")

    def flush(self, timeout_s: float) -> bool:
        if threading.current_thread() is self._thread:
            return False
        target, lost = self.queue.accepted, self.ledger.lost_requests()
        self.worker.flush(target)
        until = time.monotonic() + timeout_s
        is_settled = self.queue.wait_settled(target, timeout_s) and self.worker.wait_for_disk(until)
        return is_settled and self.ledger.lost_requests() == lost

    def resume(self) -> None:
        """Begin at once where processes that have ended left something to be sent."""
        folder = self._settings.spool
        if folder and Spool.is_possible() and holds_messages(folder):
            self._start()

    def shutdown(self, timeout_s: float) -> None:
        """Drain; a second call, perhaps of a signal in the middle of the first, waits with it."""
        is_first, self._is_closed = not self._is_closed, True
        if self._thread is None and not len(self.queue):
            return
        if is_first:
            self.worker.stop(timeout_s)
        if self._thread is None:
            self.worker.run()
        elif threading.current_thread() is not self._thread:
            self._thread.join(timeout_s / 2)
            if self._thread.is_alive():
                self.worker.interrupt()
            # A little longer than the worker's own limit, so that it can count what it gives up.
            self._thread.join(timeout_s / 2 + 0.5)
        if is_first:
            self._account_for_the_rest()

    def _account_for_the_rest(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            self.worker.abandon()
        if lost := self.ledger.counters().lost.get(SHUTDOWN):
            log.warning(
                "ragotel: %d requests (%d spans) were not delivered before the end: %s",
                lost.requests,
                lost.spans,
                self.worker.last_failure or "the time ran out",
            )


def _replay(settings: Settings, ledger: Ledger) -> Replay | None:
    """Make the spool that *settings* ask for; nothing is written before something has to wait."""
    if not settings.spool:
        return None
    if settings.exporter is not None or not Spool.is_possible():
        log.warning("ragotel: %s; nothing is kept in %s", _NO_SPOOL, settings.spool)
        return None
    spool = Spool(settings.spool, settings.spool_max_bytes, ledger)
    return Replay(spool, ledger, settings.retry_s, settings.batch_bytes)


class Delivery:
    """Sends what the recorder hands over; none of its methods raises."""

    def __init__(self, settings: Settings) -> None:
        if settings.spool:
            # A process may change its folder, and one spool named in two ways must stay one.
            settings = replace(settings, spool=os.path.realpath(settings.spool))
        self.settings = settings
        self._callbacks: list[LossCallback] = []
        self._line = Line(settings, self._callbacks)
        self._line.resume()
        ending.register(self, on_sigterm=settings.drain_on_sigterm)

    def submit(self, pending: Pending) -> bool:
        """Queue a finished request and return at once; False: it was dropped and counted."""
        try:
            line = self._line
            if line.pid != os.getpid():
                line = self.renew()
            return line.submit(pending)
        except Exception:
            log.exception("ragotel could not queue a request")
            return False

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Wait until all that was submitted before has left.

        False: the time ran out, or something was lost meanwhile.
        """
        return self._current().flush(timeout_s)

    def shutdown(self, timeout_s: float | None = None) -> None:
        """Deliver what waits, count the rest as lost; *timeout_s* defaults to `exit_timeout_s`."""
        self._current().shutdown(self.settings.exit_timeout_s if timeout_s is None else timeout_s)

    def on_loss(self, callback: LossCallback) -> None:
        """Have *callback* called with cause, spans and requests after every loss."""
        self._callbacks.append(callback)

    def counters(self) -> Counters:
        """Tell what was offered, delivered and lost in this process."""
        return self._current().ledger.counters()

    def renew(self) -> Line:
        """Start afresh in a forked child: what the parent queued is the parent's to send."""
        before, self._line = self._line, Line(self.settings, self._callbacks)
        if "gevent" in sys.modules:
            before.worker.leave_to_parent()
        return self._line

    def _current(self) -> Line:
        return self._line if self._line.pid == os.getpid() else self.renew()
