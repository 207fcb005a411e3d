"""Pacing: long work on the worker's thread steps aside in between, for the service's sake.

Pipeline: delivery's worker -> encoding -> [pacing]
"""

from __future__ import annotations

import time

_SLICE_NS = 200_000
# 0 would take the interpreter's lock back before another thread can wake up to it.
_STEP_ASIDE_S = 1e-5


class Pace:
    """Call `step` between pieces of work; it gives the interpreter away every 0.2 ms."""

    __slots__ = ("_since_ns",)

    def __init__(self) -> None:
        self._since_ns = time.perf_counter_ns()

    def step(self) -> None:
        if time.perf_counter_ns() - self._since_ns > _SLICE_NS:
            time.sleep(_STEP_ASIDE_S)
            self._since_ns = time.perf_counter_ns()
