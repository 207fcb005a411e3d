"""Courier: gets one batch to the receiver, or counts it as lost, and says how the receiver fares.

Pipeline: worker -> [courier] -> transport -> receiver
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from ragotel.delivery.batch import Accounts, Batch
from ragotel.delivery.frames import Meta
from ragotel.delivery.ledger import EXPORT_FAILED, SHUTDOWN, SPOOL_FAILED, Ledger, Tally
from ragotel.delivery.replay import Replay
from ragotel.delivery.transport import Answer, Storable, Transport, backoff_s
from ragotel.model import SpanData
from ragotel.settings import Settings

log = logging.getLogger("ragotel")

_DOUBTFUL_TRIES = 5
_POLL_S = 0.05
_LAST_BACKOFF_S = 0.2
_SHORTEST_TIMEOUT_S = 0.05
_SLOW_S = 0.25
_WARN_EVERY_S = 300.0
_DETAIL_CHARS = 500


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
        replay: Replay | None = None,
    ) -> None:
        self._settings = settings
        self._pid = os.getpid()
        self._replay = replay
        self._spool_cause = ""
        """Why the spool did not take the last message that it was given."""
        self._accounts = accounts
        self._ledger = ledger
        self._alarm = alarm
        self._make_transport = make_transport
        self._transport: Transport | None = None
        self._sending_since: float | None = None
        self._is_slow = False
        self._failures = 0
        """In a row."""
        self._warned_at = float("-inf")
        self.is_reachable = True
        """Whether the last message was taken."""
        self.is_away = False
        """Whether the receiver is down or busy: what comes goes to the spool, if there is one."""
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
        if self.is_away and self._put_aside(batch, message):
            return
        give_up_at = time.monotonic() + self._settings.retry_s
        attempt = 0
        while True:
            if self._pid != os.getpid():
                # A greenlet that a fork copied: the message is the parent's to send.
                return
            attempt += 1
            answer = self._send(message)
            if answer.verdict == "ok":
                self._accounts.delivered(batch, answer.rejected_spans)
                return
            self.last_failure = answer.detail
            if answer.verdict == "too_large" and len(batch.pieces) > 1:
                for half in batch.halves():
                    self._deliver(half)
                return
            is_final = _is_final(answer, attempt)
            if _is_hopeful(answer, is_final) and self._put_aside(batch, message, answer):
                return
            if is_final or not self._pause(attempt, answer, give_up_at):
                self._give_up(batch, answer)
                return

    def _send(self, message: Any) -> Answer:
        timeout_s = self._settings.timeout_s
        if self._alarm.stop_by is not None:
            left_s = self._alarm.stop_by - time.monotonic()
            if self._replay is not None:
                # The other half is for the disk.
                left_s /= 2
            timeout_s = max(_SHORTEST_TIMEOUT_S, min(timeout_s, left_s))
        began = self._sending_since = time.monotonic()
        try:
            answer = self.transport.send(message, timeout_s)
        except Exception as error:
            answer = Answer("doubtful", f"{type(error).__name__}: {error}")
        finally:
            self._sending_since = None
            self._is_slow = time.monotonic() - began > _SLOW_S
        answer = answer._replace(detail=_one_line(answer.detail))
        self.is_reachable = answer.verdict == "ok"
        self.is_away = answer.verdict == "retry"
        self._note(answer)
        return answer

    def _note(self, answer: Answer) -> None:
        """Say in the log that the receiver is away: not for one hiccup, and not at every try."""
        self._failures = 0 if self.is_reachable else self._failures + 1
        is_news = time.monotonic() - self._warned_at >= _WARN_EVERY_S
        if self._failures > 1 and is_news and answer.verdict in ("retry", "doubtful"):
            self._warned_at = time.monotonic()
            log.warning("ragotel: the receiver takes nothing, trying again: %s", answer.detail)

    # With a spool.

    def put_aside_what_hangs(self) -> None:
        """Write the message under way to the disk, for a thread that cannot wait for it.

        Should the receiver take it after all, it has it twice, which it can tell.
        """
        batch = self.under_way
        if batch.parts:
            self._put_aside(batch, self.transport.message(batch.pieces))

    def _put_aside(self, batch: Batch, message: Any, answer: Answer | None = None) -> bool:
        """Write *batch* to the disk; False where there is no spool, or it does not take it."""
        transport = self.transport
        if self._replay is None or not isinstance(transport, Storable):
            return False
        meta = self._accounts.meta_of(batch)
        try:
            self._spool_cause = self._replay.spool.append(transport.pack(message), meta)
        except Exception:
            # Whatever is wrong with the disk, the message is still here.
            log.exception("ragotel: the spool failed")
            self._spool_cause = SPOOL_FAILED
        if self._spool_cause:
            return False
        if answer is not None:
            log.info("ragotel: a message waits on the disk for the receiver: %s", answer.detail)
            self._replay.wait(answer)
        self._accounts.put_aside(batch)
        return True

    def give_up(self, batch: Batch) -> None:
        """Write *batch* to the disk, or count it as lost: the process ends."""
        if not self._put_aside(batch, self.transport.message(batch.pieces)):
            self._accounts.lost(batch, self._spool_cause or SHUTDOWN)

    def keep_losses(self, spans: list[SpanData], losses: dict[str, Tally]) -> bool:
        """Write the losses to the disk that no message has told; True: the next process does."""
        transport = self.transport
        if self._replay is None or not isinstance(transport, Storable):
            return False
        body = transport.pack(transport.message([self.encode(span)[0] for span in spans]))
        return not self._replay.spool.append(body, Meta(losses=losses), force=True)

    def replay(self) -> bool:
        """Send the oldest message of the spool if it is time; True: one was sent."""
        if self._replay is None or self._alarm.is_over():
            return False
        if self._alarm.stop_by is not None and self.is_away:
            return False
        transport = self.transport
        return isinstance(transport, Storable) and self._replay.step(transport, self._send)

    def replay_in_s(self) -> float | None:
        """Tell how long there is nothing to do with the spool; None: there is none."""
        return None if self._replay is None else self._replay.due_in_s()

    def is_replaying(self) -> bool:
        """Whether something on the disk can be sent now."""
        if self._replay is None or self.is_away:
            return False
        return self._replay.spool.has_messages() and self._replay.due_in_s() == 0.0

    def hurry(self) -> None:
        """Try the spool at once: somebody waits for it."""
        if self._replay is not None:
            self._replay.hurry()

    def has_own_on_disk(self) -> bool:
        """Whether some of this process's own messages wait on the disk."""
        return self._replay is not None and self._replay.spool.has_own_messages()

    def interrupt(self) -> None:
        """Have a send fail that has waited long, on another thread: the process is to end."""
        if self._replay is not None and self._transport is not None and self._sending_since:
            self._transport.interrupt()

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
        if _is_hopeful(answer, True):
            cause = self._spool_cause or cause
        log.warning("ragotel gave up a message of %d spans: %s", len(batch.pieces), answer.detail)
        self._accounts.lost(batch, cause)

    def disconnect(self) -> None:
        """Close this process's end of a connection that a fork copied."""
        transport = self._transport
        if transport is not None and transport.can_close_after_fork:
            transport.close()

    def close(self) -> None:
        if self._replay is not None:
            self._replay.spool.close()
        if self._transport is not None:
            self._transport.close()


def _one_line(words: str) -> str:
    """What somebody else says, fit for a line of the log."""
    printable = "".join(c if c.isprintable() else " " for c in words[:_DETAIL_CHARS])
    return " ".join(printable.split())


def _is_hopeful(answer: Answer, is_final: bool) -> bool:
    """Whether the receiver may take the same message later: a time that is spent on the disk."""
    return answer.verdict == "retry" or (answer.verdict == "doubtful" and is_final)


def _is_final(answer: Answer, attempt: int) -> bool:
    """Whether another try of the same message would be in vain."""
    if answer.verdict == "doubtful":
        return attempt >= _DOUBTFUL_TRIES
    return answer.verdict != "retry"
