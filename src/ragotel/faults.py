"""Faults: ragotel's own errors are counted and logged once per part, and never reach the service.

Pipeline: recorder, candidates, encoding -> [faults] -> `rag.capture.errors`, the log
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import Counter

log = logging.getLogger("ragotel")

_counts: Counter[str] = Counter()
_lock = threading.Lock()


def note(part: str) -> None:
    """Count the exception being handled as a failure to *part*; its traceback is logged once."""
    try:
        with _lock:
            _counts[part] += 1
            is_first = _counts[part] == 1
        if is_first:
            log.warning("ragotel could not %s; the request goes on", part, exc_info=True)
    except Exception:  # noqa: S110 - a broken log handler is the service's own affair
        pass


def advise(message: str, *parts: object) -> None:
    """Tell the developer, when a decorator is applied, what it cannot have meant."""
    # A broken log handler is the service's own affair.
    with contextlib.suppress(Exception):
        log.warning(message, *parts)


def counts() -> dict[str, int]:
    """Tell how often each part failed in this process."""
    with _lock:
        return dict(_counts)


def reset() -> None:
    """Forget all counts, so that the next failure is logged again."""
    with _lock:
        _counts.clear()
