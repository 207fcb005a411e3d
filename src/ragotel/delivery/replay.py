"""Replay: sends what lies in the spool, oldest first, as soon as the receiver takes it again.

Pipeline: spool -> [replay] -> transport -> receiver

In an outage a message is written every second; they are joined again, as one answer for each would
take longer than the outage did.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from ragotel.delivery.frames import Meta
from ragotel.delivery.ledger import EXPORT_FAILED, REJECTED, Ledger
from ragotel.delivery.otlp import halve_message
from ragotel.delivery.spool import Spool, Stored
from ragotel.delivery.transport import Answer, Storable, backoff_s, gunzip, gzip

log = logging.getLogger("ragotel")

_LOOK_EVERY_S = 10.0
_MOST_JOINED = 500


class Replay:
    """When to try the spool's oldest message, and what its answer means."""

    def __init__(self, spool: Spool, ledger: Ledger, retry_s: float, batch_bytes: int) -> None:
        self.spool = spool
        self._ledger = ledger
        self._retry_s = retry_s
        self._batch_bytes = batch_bytes
        self._most = self._usual = _MOST_JOINED
        """How many messages may go as one: after a failure as many as before, or one alone."""
        self._look_at = 0.0
        self._try_at = 0.0
        self._attempt = 0
        self._doubted_since: float | None = None

    def hurry(self) -> None:
        """Try at once: somebody waits for it."""
        self._try_at = 0.0

    def due_in_s(self) -> float:
        """Tell how long there is nothing to do."""
        now = time.monotonic()
        due = self._look_at if not self.spool.has_messages() else min(self._look_at, self._try_at)
        return max(0.0, due - now)

    def step(self, transport: Storable, send: Callable[[Any], Answer]) -> bool:
        """Send one message if it is time; True: one was sent, whatever came of it."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + _LOOK_EVERY_S
            self.spool.adopt()
        if now < self._try_at:
            return False
        stored = self.spool.oldest()
        if stored is None:
            return False
        try:
            group, body = self._join(stored)
            message = transport.unpack(body)
        except Exception as error:
            self._lose(stored, f"{type(error).__name__}: {error}")
            return True
        self._judge(group, send(message))
        return True

    def _join(self, first: Stored) -> tuple[list[Stored], bytes]:
        """Give the messages that go as one, with their bytes: OTLP messages end to end are one."""
        raw = gunzip(first.body)
        group, raws, size_bytes = [first], [raw], len(raw)
        while len(group) < self._most and size_bytes < self._batch_bytes:
            stored = self.spool.following(first, len(group))
            if stored is None:
                break
            raw = gunzip(stored.body)
            size_bytes += len(raw)
            if size_bytes > self._batch_bytes:
                break
            group.append(stored)
            raws.append(raw)
        return group, first.body if len(group) == 1 else gzip(b"".join(raws))

    def wait(self, answer: Answer) -> None:
        """Leave the receiver alone for a while, longer each time."""
        self._attempt += 1
        self._try_at = time.monotonic() + backoff_s(self._attempt, answer.retry_after_s)

    def _judge(self, group: list[Stored], answer: Answer) -> None:
        if answer.verdict == "ok":
            self._settle(group, answer.rejected_spans)
        elif answer.verdict == "retry":
            # The same bytes again: a receiver that has them already can tell.
            self._most = len(group)
            self.wait(answer)
        elif len(group) > 1:
            # One of them may be the reason, and must not cost the others.
            self._most = 1
            if answer.verdict == "too_large":
                self._usual = len(group) // 2
        elif answer.verdict == "too_large":
            self._split(group[0], answer)
        else:
            # A wrong token or a broken gateway must not cost the whole spool: it may be mended.
            since = self._doubted_since = self._doubted_since or time.monotonic()
            if time.monotonic() - since >= self._retry_s:
                self._lose(group[0], answer.detail)
            else:
                self.wait(answer)

    def _settle(self, group: list[Stored], rejected_spans: int) -> None:
        spans = sum(stored.meta.spans for stored in group)
        rejected = min(max(rejected_spans, 0), spans)
        if rejected:
            # The answer does not say which spans, so no message can be named.
            self._ledger.lose(REJECTED, rejected, 0)
        for stored in group:
            meta = stored.meta
            thrown = min(rejected, meta.spans)
            rejected -= thrown
            self._ledger.replay(meta.spans - thrown, meta.requests, stored.is_own)
            self._remove(stored)
        self._most = self._usual

    def _split(self, stored: Stored, answer: Answer) -> None:
        """Put the two halves at the end: the receiver takes less than it did."""
        self._most = self._usual = 1
        halves = halve_message(gunzip(stored.body))
        if not halves:
            self._lose(stored, answer.detail)
            return
        meta, first = stored.meta, min(stored.meta.spans, halves[0][1])
        metas = Meta(first), Meta(meta.spans - first, meta.requests, meta.losses)
        for (body, _), half in zip(halves, metas, strict=True):
            cause = self.spool.append(gzip(body), half, force=True)
            if cause:
                self._ledger.give_back(dict(half.losses))
                self._ledger.lose(cause, half.spans, half.requests)
        self._remove(stored)

    def _lose(self, stored: Stored, detail: str) -> None:
        log.warning("ragotel gave up a message of %d spans: %s", stored.meta.spans, detail)
        self._ledger.give_back(dict(stored.meta.losses))
        self._ledger.lose(EXPORT_FAILED, stored.meta.spans, stored.meta.requests)
        self._remove(stored)

    def _remove(self, stored: Stored) -> None:
        self._attempt = 0
        self._doubted_since = None
        self._try_at = 0.0
        self.spool.remove(stored)
