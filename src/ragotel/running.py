"""Running: which stage is running here, carried into threads, pools and tasks.

Pipeline: call site -> [running] -> recorder

`asyncio` copies context variables into tasks by itself. Threads start with an empty context, so
while ragotel is active `ThreadPoolExecutor.submit` and `Thread.start` carry this one variable over,
and nothing else of the context.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragotel.record import Stage

current: ContextVar[Stage | None] = ContextVar("ragotel_stage", default=None)
ambient: ContextVar[dict[str, Any] | None] = ContextVar("ragotel_ambient", default=None)
"""What `ragotel.context(...)` says about the requests inside of it."""

_submit = ThreadPoolExecutor.submit
_start = threading.Thread.start
_is_submit_ours = False
_is_start_ours = False


def run_within(stage: Stage | None, function: Callable[..., Any], /, *args: Any, **kw: Any) -> Any:
    """Call *function* as part of *stage*."""
    before = current.get()
    current.set(stage)
    try:
        return function(*args, **kw)
    finally:
        current.set(before)


def leave(stage: Stage, before: Stage | None) -> None:
    """End *stage* here; a context that another stage has taken meanwhile is left alone."""
    if current.get() is stage:
        current.set(before)


def carry_into_threads() -> None:
    """Start to carry the running stage into thread pools and threads; twice is once."""
    global _submit, _start, _is_submit_ours, _is_start_ours
    if not _is_submit_ours:
        _submit = ThreadPoolExecutor.submit
        ThreadPoolExecutor.submit = _carrying_submit  # type: ignore[method-assign, assignment]
        _is_submit_ours = True
    if not _is_start_ours:
        _start = threading.Thread.start
        threading.Thread.start = _carrying_start  # type: ignore[method-assign]
        _is_start_ours = True


def stop_carrying() -> None:
    """Undo `carry_into_threads`; where someone else has patched on top of it, ours stays below."""
    global _is_submit_ours, _is_start_ours
    if ThreadPoolExecutor.submit is _carrying_submit:
        ThreadPoolExecutor.submit = _submit  # type: ignore[method-assign]
        _is_submit_ours = False
    if threading.Thread.start is _carrying_start:
        threading.Thread.start = _start  # type: ignore[method-assign]
        _is_start_ours = False


def _carrying_submit(
    self: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> Future[Any]:
    stage = current.get()
    if stage is None:
        return _submit(self, fn, *args, **kwargs)
    # The pool's own thread, should one be started now, outlives the request: it must not inherit.
    current.set(None)
    try:
        return _submit(self, run_within, stage, fn, *args, **kwargs)
    finally:
        current.set(stage)


def _carrying_start(self: threading.Thread) -> None:
    stage = current.get()
    if stage is not None and _is_a_leg(self):
        self.run = _Carried(stage, self.run)  # type: ignore[method-assign]
    _start(self)


def _is_a_leg(thread: threading.Thread) -> bool:
    """Tell a search leg from a background worker that a request happens to start.

    Workers are daemons by custom; one that inherited a request would drag later requests into it.
    """
    if not thread.daemon:
        return True
    return hasattr(getattr(thread, "_target", None), "__ragotel__")


class _Carried:
    """A thread's `run` as part of a stage; lets go of it when done."""

    __slots__ = ("_run", "_stage")

    def __init__(self, stage: Stage, run: Callable[[], None]) -> None:
        self._stage: Stage | None = stage
        self._run: Callable[[], None] | None = run

    def __call__(self) -> None:
        stage, run = self._stage, self._run
        self._stage = self._run = None
        if run is not None:
            run_within(stage, run)
