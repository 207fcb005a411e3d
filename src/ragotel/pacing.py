"""Pacing: long work on the worker's thread steps aside in between, for the service's sake.

Pipeline: delivery's worker -> encoding -> [pacing]
"""

from __future__ import annotations

import time

_SLICE_NS = 300_000
# 0 would take the interpreter's lock back before another thread can wake up to it.
_STEP_ASIDE_S = 1e-5
# What reading two clocks one after the other may differ by; waking up takes a thread longer.
_CLOCKS_NS = 2_000

is_hurried = False
"""Set by the worker while more comes in than it can encode: stepping aside would then lose data."""
_since_ns = 0
_others_ns: int | None = None
"""CPU time of all other threads when the last step began; None: not known."""


class Pace:
    """Call `step` between pieces of work; every 0.3 ms it gives the interpreter to who waits.

    A thread can only wait for the interpreter after it has run: where no other thread of the
    process has used CPU since the last step began, nobody waits. All paces of a process share one
    clock, as one thread does all the work.
    """

    __slots__ = ()

    def step(self) -> None:
        global _since_ns, _others_ns
        if is_hurried or time.perf_counter_ns() - _since_ns < _SLICE_NS:
            return
        others_ns = time.process_time_ns() - time.thread_time_ns()
        if _others_ns is None or others_ns - _others_ns > _CLOCKS_NS:
            time.sleep(_STEP_ASIDE_S)
        # As it was before: who has run meanwhile may wait again.
        _others_ns = others_ns
        _since_ns = time.perf_counter_ns()


def begin() -> None:
    """Start a slice: the thread has just waited for something else."""
    global _since_ns, _others_ns
    _since_ns, _others_ns = time.perf_counter_ns(), None
