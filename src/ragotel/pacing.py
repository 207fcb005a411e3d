"""Pacing: long work on the worker's thread steps aside in between, for the service's sake.

Pipeline: delivery's worker -> encoding -> [pacing]
"""

from __future__ import annotations

import time

_SLICE_NS = 300_000
# 0 would take the interpreter's lock back before another thread can wake up to it.
_STEP_ASIDE_S = 1e-5

is_hurried = False
"""Set by the worker while more comes in than it can encode: stepping aside would then lose data."""
_since_ns = 0


class Pace:
    """Call `step` between pieces of work; it gives the interpreter away every 0.3 ms.

    All paces of a process share one clock, as one thread does all the work.
    """

    __slots__ = ()

    def step(self) -> None:
        global _since_ns
        if is_hurried or time.perf_counter_ns() - _since_ns < _SLICE_NS:
            return
        time.sleep(_STEP_ASIDE_S)
        _since_ns = time.perf_counter_ns()


def begin() -> None:
    """Start a slice: the thread has just waited for something else."""
    global _since_ns
    _since_ns = time.perf_counter_ns()
