"""Queue: what waits for delivery, bounded in bytes, cheap on the request's thread.

Pipeline: recorder -> [queue] -> worker -> transport
"""

from __future__ import annotations

import threading
from collections import deque

from ragotel.model import Pending


class ByteQueue:
    """First in, first out. Bytes stay charged until `release`, so a batch under way counts too."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        """Of everything that has been accepted and is not settled."""
        self.waiting_bytes = 0
        """Of what nobody has begun to encode."""
        self.accepted = 0
        """Requests ever taken in."""
        self.settled = 0
        """Requests ever released; they leave in the order in which they came."""
        self._waiting: deque[Pending] = deque()
        self._awaited: list[int] = []
        """Numbers that threads wait for: nobody is woken before theirs is reached."""
        # Re-entrant: a generator closed by the garbage collector may submit inside of any call.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)

    def __len__(self) -> int:
        return len(self._waiting)

    def is_nearly_full(self) -> bool:
        """Whether it is time to send what there is rather than to wait for more."""
        return self.used_bytes * 2 > self.limit_bytes

    def offer(self, pending: Pending) -> bool:
        """Take *pending* in, or answer False where it would not fit."""
        with self._lock:
            used = self.used_bytes + pending.size_bytes
            if used > self.limit_bytes:
                return False
            self.used_bytes = used
            self.waiting_bytes += pending.size_bytes
            self.accepted += 1
            self._waiting.append(pending)
            return True

    def pop(self) -> Pending | None:
        """Hand out the oldest; its bytes stay charged."""
        try:
            pending = self._waiting.popleft()
        except IndexError:
            return None
        with self._lock:
            self.waiting_bytes -= pending.size_bytes
        return pending

    def recharge(self, before_bytes: int, after_bytes: int) -> None:
        """Charge an encoded request by what its bytes take instead of what its objects took."""
        with self._lock:
            self.used_bytes += after_bytes - before_bytes

    def release(self, size_bytes: int) -> None:
        """Stop charging a request that was delivered or lost."""
        with self._changed:
            self.used_bytes -= size_bytes
            self.settled += 1
            if self._awaited and self.settled >= min(self._awaited):
                self._changed.notify_all()

    def wait_settled(self, count: int, timeout_s: float) -> bool:
        """Wait until *count* requests have ever been released; False when the time ran out."""
        with self._changed:
            self._awaited.append(count)
            try:
                return self._changed.wait_for(lambda: self.settled >= count, timeout_s)
            finally:
                self._awaited.remove(count)
