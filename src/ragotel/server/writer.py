"""Writer: many small batches of rows become few inserts, and each learns when its rows are durable.

Pipeline: OTLP receivers -> [writer] -> otel_traces -> typed tables
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from concurrent.futures import Future
from dataclasses import dataclass, field

from ragotel.errors import StoreError
from ragotel.store.handles import Engine, EngineError, Handle
from ragotel.store.otlp_rows import FORMAT, INSERT_STATEMENT

log = logging.getLogger(__name__)

GATHER_S = 0.05
"""A batch waits at least this long for company, unless `FULL_BYTES` are waiting."""
PACE_S = 1.25
"""While batches keep coming, one insert in this time: under one part per second and table."""
BURST_INSERTS = 8
"""Inserts out of pace that a quiet time has saved up, for senders that wait for each answer."""
SIZEABLE_BYTES = 1 << 20
"""A group of this size is worth a part of its own once no more arrives."""
FULL_BYTES = 16 << 20
"""A group of this size is inserted at once."""
PENDING_BYTES = 256 << 20
"""Beyond this the receivers answer that the store is busy."""
COMPLAIN_EVERY_S = 60.0
"""Senders try again for long, so what keeps rows out is told once in this time, not each time."""

INSERT_SETTINGS = {
    "async_insert": "0",
    # Junk times must not fail a batch: it may touch any number of months.
    "max_partitions_per_insert_block": "0",
}
# Space, memory, parts, disk: codes that say nothing about the rows.
_PASSING_CODES = {74, 75, 76, 159, 202, 209, 241, 242, 243, 252, 394, 999, 1002}


class StoreUnavailableError(StoreError):
    """The store cannot take rows now; trying again later makes sense."""


@dataclass
class _Batch:
    rows: list[bytes]
    size_bytes: int
    refused: Counter[str] = field(default_factory=Counter)
    done: Future[Counter[str]] = field(default_factory=Future)


class Writer:
    """Owns the thread that inserts; `submit` may be called from any other."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._changed = threading.Condition()
        self._waiting: list[_Batch] = []
        self._waiting_bytes = 0
        self._held_bytes = 0
        self._first_at = self._last_at = 0.0
        self._inserted_at = time.monotonic() - PACE_S
        self._burst = float(BURST_INSERTS)
        self._complained_at = float("-inf")
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="ragotel-writer", daemon=True)
        self._thread.start()

    def submit(self, rows: list[bytes]) -> Future[Counter[str]]:
        """Hand over encoded rows; the future ends when they are durable.

        It gives how many rows the store refused, by reason; it raises StoreUnavailableError where
        nothing is certain.

        Raises:
            StoreUnavailableError: Too much is waiting already, or the server is ending.
        """
        batch = _Batch(rows, sum(map(len, rows)))
        if not rows:
            batch.done.set_result(Counter())
            return batch.done
        with self._changed:
            if self._closing:
                raise StoreUnavailableError("the server is ending")
            if self._held_bytes and self._held_bytes + batch.size_bytes > PENDING_BYTES:
                raise StoreUnavailableError("more rows are waiting than the store can take")
            now = time.monotonic()
            if not self._waiting:
                self._first_at = now
            self._last_at = now
            self._waiting.append(batch)
            self._waiting_bytes += batch.size_bytes
            self._held_bytes += batch.size_bytes
            self._changed.notify()
        return batch.done

    def close(self) -> None:
        """Insert what is waiting and end; returns when all is durable."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while batches := self._next_group():
            try:
                self._insert(batches)
            except BaseException as error:
                log.exception("an insert failed in an unforeseen way")
                self._fail(batches, error)
            with self._changed:
                self._held_bytes -= sum(batch.size_bytes for batch in batches)

    def _next_group(self) -> list[_Batch]:
        """Wait until a group is due; empty when the writer is closed and all is inserted."""
        with self._changed:
            while not self._waiting or (not self._closing and (wait_s := self._due_in_s()) > 0):
                if not self._waiting:
                    if self._closing:
                        return []
                    self._changed.wait()
                else:
                    self._changed.wait(wait_s)
            group, self._waiting, self._waiting_bytes = self._waiting, [], 0
            now = time.monotonic()
            self._burst = min(BURST_INSERTS, self._burst + (now - self._inserted_at) / PACE_S) - 1
            self._inserted_at = now
            return group

    def _due_in_s(self) -> float:
        """Seconds until the waiting rows are to be inserted; 0 or less is now."""
        if self._waiting_bytes >= FULL_BYTES:
            return 0.0
        now = time.monotonic()
        gathered_in_s = self._first_at + GATHER_S - now
        paced_in_s = self._inserted_at + PACE_S - now
        quiet_in_s = self._last_at + GATHER_S - now
        saved = self._burst + (now - self._inserted_at) / PACE_S
        if saved >= 1 or self._waiting_bytes >= SIZEABLE_BYTES:
            return min(max(gathered_in_s, paced_in_s), quiet_in_s)
        return max(gathered_in_s, paced_in_s)

    def _insert(self, batches: list[_Batch]) -> None:
        try:
            with self._engine.handle(settings=INSERT_SETTINGS) as handle:
                self._insert_group(handle, batches)
        except EngineError as error:
            self._fail(batches, error)

    def _insert_group(self, handle: Handle, batches: list[_Batch]) -> None:
        try:
            handle.insert(INSERT_STATEMENT, FORMAT, [b"".join(b"".join(b.rows) for b in batches)])
        except EngineError as error:
            if error.code in _PASSING_CODES:
                raise
            log.warning("an insert of %d batches failed, one by one now: %s", len(batches), error)
            for batch in batches:
                self._insert_alone(handle, batch)
            return
        for batch in batches:
            batch.done.set_result(Counter())

    def _insert_alone(self, handle: Handle, batch: _Batch) -> None:
        try:
            self._insert_rows(handle, batch.rows, batch.refused)
        except EngineError as error:
            self._fail([batch], error)
        else:
            batch.done.set_result(batch.refused)

    def _insert_rows(self, handle: Handle, rows: list[bytes], refused: Counter[str]) -> None:
        """Insert *rows*, by halves where they fail, so that a bad row costs only itself."""
        try:
            handle.insert(INSERT_STATEMENT, FORMAT, [b"".join(rows)])
        except EngineError as error:
            if error.code in _PASSING_CODES:
                raise
            if len(rows) > 1:
                middle = len(rows) // 2
                self._insert_rows(handle, rows[:middle], refused)
                self._insert_rows(handle, rows[middle:], refused)
            else:
                self._insert_bare(handle, rows[0], refused, error)

    def _insert_bare(
        self, handle: Handle, row: bytes, refused: Counter[str], error: EngineError
    ) -> None:
        """Keep a row whose views fail: the span is there, and what failed is in the log."""
        log.error("a span could not be read by the typed tables: %s", error)
        with self._engine.handle(
            settings={**INSERT_SETTINGS, "materialized_views_ignore_errors": "1"}
        ) as bare:
            try:
                bare.insert(INSERT_STATEMENT, FORMAT, [row])
            except EngineError as final:
                if final.code in _PASSING_CODES:
                    raise
                refused[f"the store refused it: {str(final)[:200]}"] += 1

    def _fail(self, batches: list[_Batch], error: BaseException) -> None:
        now = time.monotonic()
        if now - self._complained_at >= COMPLAIN_EVERY_S:
            self._complained_at = now
            code = f"code {error.code}: " if isinstance(error, EngineError) else ""
            log.warning("the store takes no rows, senders are told to wait: %s%.300s", code, error)
        for batch in batches:
            if not batch.done.done():
                batch.done.set_exception(
                    StoreUnavailableError(f"the rows could not be inserted: {str(error)[:300]}")
                )
