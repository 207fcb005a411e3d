"""Settler: traces of other instrumentations are read again once no more of their spans arrive.

Pipeline: receiver -> [settler] -> store.backfill -> typed tables
At insert a span is seen beside those of its batch only; what the whole trace says follows here.
What is forgotten when the server ends, `ragotel backfill` reads.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

from ragotel.errors import RagotelError
from ragotel.store import Store
from ragotel.store.backfill import settle

log = logging.getLogger(__name__)

QUIET_S = 10.0
"""A trace is read when none of its spans arrived for so long."""
LOOK_S = 2.0
MAX_TRACES = 100_000
"""Traces that wait; beyond these the longest waiting is left to `ragotel backfill`."""
TRACES_AT_ONCE = 500


class Settler:
    """Owns the thread that reads traces again; `note` may be called from any other."""

    def __init__(self, open_own: Callable[[], Store], quiet_s: float = QUIET_S) -> None:
        self._open_own = open_own
        self._quiet_s = quiet_s
        self._waiting: OrderedDict[str, float] = OrderedDict()
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="ragotel-settler", daemon=True)
        self._thread.start()

    def note(self, traces: Iterable[str]) -> None:
        """Spans of these *traces* have arrived."""
        now = time.monotonic()
        with self._changed:
            for trace in traces:
                self._waiting[trace] = now
                self._waiting.move_to_end(trace)
            while len(self._waiting) > MAX_TRACES:
                self._waiting.popitem(last=False)

    def close(self) -> None:
        """End after the traces that are being read."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        store: Store | None = None
        while (traces := self._next_group()) is not None:
            if not traces:
                continue
            try:
                store = store or self._open_own()
                settle(store, traces)
            except RagotelError as error:
                log.warning("%d traces were not read again: %s", len(traces), error)
            except Exception:
                log.exception("%d traces were not read again", len(traces))
        if store is not None:
            store.close()

    def _next_group(self) -> list[str] | None:
        """Traces that have been quiet for long enough; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._closing, LOOK_S)
            if self._closing:
                return None
            until = time.monotonic() - self._quiet_s
            traces: list[str] = []
            while self._waiting and len(traces) < TRACES_AT_ONCE:
                trace, arrived_at = next(iter(self._waiting.items()))
                if arrived_at > until:
                    break
                traces.append(trace)
                del self._waiting[trace]
            return traces
