"""Ending: forks, exits and signals, so that no way in which a process begins or ends loses spans.

Pipeline: the process -> [ending] -> delivery
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import weakref
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragotel.delivery.delivery import Delivery

_deliveries: weakref.WeakSet[Delivery] = weakref.WeakSet()
_installed: set[str] = set()
_watched_pid = 0


def register(delivery: Delivery, on_sigterm: bool) -> None:
    """Make *delivery* survive forks and drain at the end of the process."""
    _deliveries.add(delivery)
    if "hooks" not in _installed:
        _installed.add("hooks")
        atexit.register(drain_all)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_renew_all)
    if on_sigterm:
        _drain_on_sigterm()


def drain_all() -> None:
    """Deliver what waits, each delivery within its own `exit_timeout_s`."""
    for delivery in list(_deliveries):
        with contextlib.suppress(Exception):
            delivery.shutdown()


def _renew_all() -> None:
    for delivery in list(_deliveries):
        delivery.renew()


def watch_this_process() -> None:
    """Drain also where a worker process leaves by os._exit, which skips atexit.

    Called when the first request of a process is queued: multiprocessing forgets what was
    registered before its child began.
    """
    global _watched_pid
    if _watched_pid == os.getpid():
        return
    _watched_pid = os.getpid()
    for module in ("multiprocessing", "billiard"):
        process: Any = sys.modules.get(f"{module}.process")
        util: Any = sys.modules.get(f"{module}.util")
        if util and process and getattr(process.current_process(), "_parent_pid", None):
            util.Finalize(None, drain_all, exitpriority=0)
    if "celery" in sys.modules:
        with contextlib.suppress(Exception):
            # Celery's pool leaves without running finalizers, but tells that it does.
            signals: Any = __import__("celery.signals", fromlist=["signals"])
            signals.worker_process_shutdown.connect(_on_celery_exit, weak=False)


def _on_celery_exit(**_: Any) -> None:
    drain_all()


def _drain_on_sigterm() -> None:
    """Take SIGTERM only where its default action would end the process without any clean-up.

    Containers end that way. The process still dies by SIGTERM; a handler of the application,
    set before or after, is left alone.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    with contextlib.suppress(ValueError, OSError):
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _on_sigterm)


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    drain_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    # Still here: the kernel spares the first process of a container.
    _renew_all()
