"""Clock: times and random ids of the emit half, in one place so that tests can fix them.

Pipeline: call site -> [clock] -> recorder
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable

wall_ns: Callable[[], int] = time.time_ns
"""Nanoseconds since 1970, UTC; read once per request."""
tick_ns: Callable[[], int] = time.perf_counter_ns
"""A clock that never goes back; all times within one request are counted on it."""

_random = random.Random()  # noqa: S311 - ids must be unique, not secret
random_bits: Callable[[int], int] = _random.getrandbits

# Without this every child of one parent would give out the same ids.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_random.seed)


def new_id(bits: int) -> int:
    """Make an id that is not 0, which means *none* on the wire."""
    return random_bits(bits) or 1
