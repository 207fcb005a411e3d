"""Ending: forks, exits and signals, so that no way in which a process begins or ends loses spans.

Pipeline: the process -> [ending] -> delivery
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import os
import signal
import sys
import threading
import time
import weakref
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragotel.delivery.delivery import Delivery

_deliveries: weakref.WeakSet[Delivery] = weakref.WeakSet()
_installed: set[str] = set()
_watched_pid = 0
_put_off = 0
"""How often the signal that ends this process was put off."""
_MOST_PUT_OFF = 2_000
_AGAIN_S = 0.005
_DELIVERY = os.path.join(os.path.dirname(__file__), "")
_PACKAGE = os.path.join(os.path.dirname(_DELIVERY[:-1]), "")


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
    global _put_off
    if _put_off < _MOST_PUT_OFF and _is_ours(frame):
        # The thread that this interrupts may hold a lock that the worker needs to deliver.
        with contextlib.suppress(RuntimeError):
            # Not by `threading`, whose own locks may be held as well; it fails near the end.
            _thread.start_new_thread(_signal_again, (number,))
            _put_off += 1
            return
    drain_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    # Still here: the kernel spares the first process of a container.
    _put_off = 0
    _renew_all()


def _is_ours(frame: FrameType | None) -> bool:
    """Whether *frame* works for the recorder or the delivery, rather than for the service."""
    innermost = True
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(_DELIVERY) or (innermost and path.startswith(_PACKAGE)):
            return True
        innermost = innermost and path == threading.__file__
        frame = frame.f_back
    return False


def _signal_again(number: int) -> None:
    time.sleep(_AGAIN_S)
    os.kill(os.getpid(), number)
