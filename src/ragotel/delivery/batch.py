"""Batch: encoded spans on their way, each tied to the request that it belongs to.

Pipeline: queue -> worker -> [batch] -> transport
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ragotel.delivery.frames import Meta
from ragotel.delivery.ledger import REJECTED, Ledger, Tally
from ragotel.delivery.queue import ByteQueue


@dataclass(slots=True)
class Ticket:
    """One request that left the queue, until the last of its spans is delivered or lost."""

    size_bytes: int
    open_parts: int = 0
    is_whole: bool = False
    """All of its spans have been encoded."""
    lost_cause: str = ""


class Part(NamedTuple):
    """Spans of one request in the transport's own form; a ticket of None marks a loss report."""

    ticket: Ticket | None
    pieces: list[Any]
    """One for each span."""
    size_bytes: int

    @property
    def span_count(self) -> int:
        return 0 if self.ticket is None else len(self.pieces)


@dataclass(slots=True)
class Batch:
    """What one message will hold."""

    parts: list[Part] = field(default_factory=list)
    size_bytes: int = 0
    losses: dict[str, Tally] = field(default_factory=dict)
    """The losses that this batch reports."""

    def add(self, part: Part) -> None:
        if part.ticket is not None:
            part.ticket.open_parts += 1
        self.parts.append(part)
        self.size_bytes += part.size_bytes

    @property
    def pieces(self) -> list[Any]:
        """All spans, in order."""
        return [piece for part in self.parts for piece in part.pieces]

    def halves(self) -> tuple[Batch, Batch]:
        """Split in two, for a receiver that takes less than expected."""
        if len(self.parts) == 1:
            ticket, pieces, size = self.parts[0]
            middle = len(pieces) // 2
            self.parts = [
                Part(ticket, some, size * len(some) // len(pieces))
                for some in (pieces[:middle], pieces[middle:])
            ]
            if ticket is not None:
                ticket.open_parts += 1
        middle = len(self.parts) // 2
        halves = Batch(losses=self.losses), Batch()
        for half, parts in zip(halves, (self.parts[:middle], self.parts[middle:]), strict=True):
            half.parts = parts
            half.size_bytes = sum(part.size_bytes for part in parts)
        return halves


class Accounts:
    """Settles parts and tickets exactly once: frees the queue's bytes, counts in the ledger."""

    def __init__(self, queue: ByteQueue, ledger: Ledger) -> None:
        self._queue = queue
        self._ledger = ledger

    def delivered(self, batch: Batch, rejected_spans: int) -> None:
        """Count *batch* as arrived, but for the spans that the receiver says it threw away."""
        spans = sum(part.span_count for part in batch.parts)
        rejected = min(max(rejected_spans, 0), spans)
        if rejected:
            # The answer does not say which spans, so no request can be named.
            self._ledger.lose(REJECTED, rejected, 0)
        self._ledger.deliver(spans - rejected, 0)
        self._close_parts(batch)

    def lost(self, batch: Batch, cause: str) -> None:
        """Count *batch* as lost; the losses that it would have told stay to be told."""
        self._ledger.give_back(batch.losses)
        self._ledger.lose(cause, sum(part.span_count for part in batch.parts), 0)
        for part in batch.parts:
            if part.ticket is not None:
                part.ticket.lost_cause = part.ticket.lost_cause or cause
        self._close_parts(batch)

    def put_aside(self, batch: Batch) -> None:
        """Count *batch* as written to the disk; its memory is free."""
        meta = self.meta_of(batch)
        self._ledger.spool(meta.spans, meta.requests)
        self._close_parts(batch, is_on_disk=True)

    def meta_of(self, batch: Batch) -> Meta:
        """Tell what *batch* holds; a request counts where its last span is."""
        ending: dict[int, int] = {}
        for part in batch.parts:
            if part.ticket is not None:
                ending[id(part.ticket)] = ending.get(id(part.ticket), 0) + 1
        tickets = {id(part.ticket): part.ticket for part in batch.parts if part.ticket is not None}
        requests = sum(
            ticket.is_whole and ticket.open_parts == ending[key] and not ticket.lost_cause
            for key, ticket in tickets.items()
        )
        return Meta(sum(part.span_count for part in batch.parts), requests, batch.losses)

    def _close_parts(self, batch: Batch, is_on_disk: bool = False) -> None:
        for part in batch.parts:
            if part.ticket is not None:
                part.ticket.open_parts -= 1
                self.close_if_done(part.ticket, is_on_disk)

    def close_if_done(self, ticket: Ticket, is_on_disk: bool = False) -> None:
        """Settle a request whose spans have all left the memory."""
        if not ticket.is_whole or ticket.open_parts:
            return
        if ticket.lost_cause:
            self._ledger.lose(ticket.lost_cause, 0, 1)
        elif not is_on_disk:
            self._ledger.deliver(0, 1)
        self._queue.release(ticket.size_bytes)
