"""Recorder: opens stages, ends them, and hands finished requests to the delivery; never raises.

Pipeline: decorators -> [recorder] -> delivery (encoding on its worker's thread)
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError as FutureCancelledError
from typing import Any, Protocol

from opentelemetry import trace as otel

from ragotel import attributes as at
from ragotel import clock, faults, results, running
from ragotel.arguments import Args, Kwargs, find_inputs, find_query, find_top_k, find_who
from ragotel.model import Pending
from ragotel.record import ABANDONED, CANCELLED, ERROR, OK, PendingTrace, Stage, Trace
from ragotel.settings import Settings, resolve_settings
from ragotel.spec import ASSEMBLE, FAULT, GENERATE, REQUEST, RETRIEVE, TAKES_LIST, Spec

_ENDPOINT_VARIABLES = (
    "RAGOTEL_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
)
_HOLDS_TEXT = frozenset((REQUEST, ASSEMBLE, GENERATE))
_FLUSH_S = 10.0


class Sink(Protocol):
    """Where finished requests go: `ragotel.delivery.Delivery`, or the one of `ragotel.testing`."""

    def submit(self, pending: Pending) -> bool: ...

    def flush(self, timeout_s: float = ...) -> bool: ...

    def shutdown(self, timeout_s: float | None = ...) -> None: ...


class Recorder:
    """What `configure` set up: the settings, the encoder and the sink."""

    __slots__ = ("encoder", "settings", "sink")

    def __init__(self, settings: Settings, sink: Sink) -> None:
        # Not before it is needed: commands import this package without recording anything.
        from ragotel.encoding import Encoder

        self.settings = settings
        self.sink = sink
        self.encoder = Encoder.from_settings(settings)


active: Recorder | None = None
"""None: nothing is recorded, and decorated functions are called straight."""
on_start: Callable[[Settings], None] | None = None
"""Asked when recording starts: the hooks of libraries, which know the recorder, not it them."""
_was_asked = False
_lock = threading.Lock()


def configure(settings: Settings, sink: Sink | None = None) -> None:
    """Start to record; with the settings that are already in force nothing happens."""
    global active, _was_asked
    with _lock:
        _was_asked = True
        if active is not None and sink is None and active.settings == settings:
            return
        before, active = active, None
        if before is not None:
            before.sink.shutdown(_FLUSH_S)
        if settings.disabled:
            running.stop_carrying()
            return
        if sink is None:
            from ragotel.delivery import Delivery

            delivery = Delivery(settings)
            recorder = Recorder(settings, delivery)
            delivery.on_loss(recorder.encoder.chunks.on_loss)
        else:
            recorder = Recorder(settings, sink)
        running.carry_into_threads()
        active = recorder
    if on_start is not None:
        on_start(settings)


def configure_from_environment() -> Recorder | None:
    """Start to record if a variable names a receiver; asked once, at the first decorated call."""
    global _was_asked
    if _was_asked:
        return active
    _was_asked = True
    try:
        if any(os.environ.get(name) for name in _ENDPOINT_VARIABLES):
            configure(resolve_settings())
    except Exception:
        faults.note("configure itself from the environment")
    return active


def flush(timeout_s: float = _FLUSH_S) -> bool:
    """Wait until all that has ended before is delivered; False if it was not, or not in time."""
    return active is None or active.sink.flush(timeout_s)


def shutdown(timeout_s: float | None = None) -> None:
    """Deliver what waits, then stop recording; decorated functions go on unrecorded."""
    global active
    with _lock:
        before, active = active, None
        running.stop_carrying()
    if before is not None:
        before.sink.shutdown(timeout_s)


def open_stage(spec: Spec, args: Args, kwargs: Kwargs) -> Stage | None:
    """Begin a stage or a request; None where nothing is to be recorded."""
    if active is None and configure_from_environment() is None:
        return None
    try:
        parent = running.current.get()
        if parent is not None and parent.trace.is_closed:
            parent = None
        if spec.kind == REQUEST:
            return _open_request(spec, parent, args, kwargs)
        trace = _join_trace(0) if parent is None else parent.trace
        stage = Stage(spec, trace, parent)
        if parent is None:
            trace.root = stage
    except Exception:
        faults.note(f"open {spec.kind}")
        return None
    try:
        _look_at_call(stage, args, kwargs)
    except Exception:
        stage.faults += 1
        faults.note(f"read the arguments of {spec.kind}")
    return stage


def _look_at_call(stage: Stage, args: Args, kwargs: Kwargs) -> None:
    spec = stage.spec
    if spec.volatile:
        _ask(stage, args, kwargs)
    if spec.kind == RETRIEVE:
        stage.query = find_query(spec, args, kwargs)
    if spec.top_k_names:
        top_k = find_top_k(spec, args, kwargs)
        if top_k is not None:
            stage.put(at.TOP_K if spec.kind == RETRIEVE else at.LIMIT, top_k)
    if spec.kind in TAKES_LIST:
        stage.inputs = find_inputs(stage.trace, spec, args, kwargs)
    elif spec.kind == GENERATE:
        results.look_at_arguments(stage, args, kwargs)


def _open_request(spec: Spec, parent: Stage | None, args: Args, kwargs: Kwargs) -> Stage | None:
    """Begin a request; inside of another one, only fill in what that one does not know."""
    if parent is not None and parent.trace.request_number:
        outer = parent.trace.root
        if outer is not None and parent is outer:
            _describe_safely(outer, spec, args, kwargs)
        return None
    trace = _join_trace(clock.new_id(64))
    stage = trace.root = Stage(spec, trace, None)
    around = running.ambient.get()
    if around:
        for key, value in around.items():
            stage.put(key, value)
    _describe_safely(stage, spec, args, kwargs)
    return stage


def _describe_safely(stage: Stage, spec: Spec, args: Args, kwargs: Kwargs) -> None:
    try:
        _describe(stage, spec, args, kwargs)
    except Exception:
        stage.faults += 1
        faults.note("read the arguments of a request")


def _describe(stage: Stage, spec: Spec, args: Args, kwargs: Kwargs) -> None:
    if stage.query is None:
        stage.query = find_query(spec, args, kwargs)
    for key, value in find_who(spec, args, kwargs).items():
        if stage.values is None or key not in stage.values:
            stage.put(key, value)
    if spec.volatile:
        _ask(stage, args, kwargs, spec)
    if spec is not stage.spec:
        for key in (at.RUN_ID, at.ARM, at.LABEL_ID):
            if key in spec.static:
                stage.put(key, spec.static[key])


def _ask(stage: Stage, args: Args, kwargs: Kwargs, spec: Spec | None = None) -> None:
    for key, find in (spec or stage.spec).volatile:
        value = find(args, kwargs)
        if value is FAULT:
            stage.faults += 1
        elif value is not None:
            stage.put(key, value)


def _join_trace(request_number: int) -> Trace:
    """Begin a trace of ours inside of the application's, where there is one.

    The application's sampling decision is not asked: the record is whole at any sampling rate.
    """
    span = otel.get_current_span().get_span_context()
    if span.is_valid:
        return Trace(span.trace_id, span.span_id, request_number)
    return Trace(clock.new_id(128), 0, request_number)


def end_stage(stage: Stage, result: Any) -> None:
    """Record what a stage returned, then close it as ok."""
    stage.end_ns = clock.tick_ns()
    try:
        results.READERS[stage.kind](stage, result)
    except Exception:
        stage.faults += 1
        faults.note(f"read the result of {stage.kind}")
    close_stage(stage, OK)


def fail_stage(stage: Stage, error: BaseException) -> None:
    """Close a stage with the user's exception, which the caller passes on untouched."""
    stage.end_ns = clock.tick_ns()
    outcome = outcome_of(error)
    if outcome != CANCELLED:
        stage.error_type = type(error).__qualname__
    close_stage(stage, outcome)


def outcome_of(error: BaseException) -> str:
    """Tell a fault from a cancellation: hanging up is no error of the service's."""
    if isinstance(error, GeneratorExit):
        return ABANDONED
    if isinstance(error, (asyncio.CancelledError, FutureCancelledError)):
        return CANCELLED
    if isinstance(error, Exception) or type(error).__name__ == "BaseExceptionGroup":
        return ERROR
    return CANCELLED


def close_stage(stage: Stage, outcome: str) -> None:
    """Hand the stage to its trace; the trace to the delivery if this was its root."""
    if stage.outcome is not None:
        return
    try:
        if not stage.end_ns:
            stage.end_ns = clock.tick_ns()
        if stage.on_close is not None and stage.on_close(stage, outcome):
            return
        trace = stage.trace
        if stage.output is not None:
            trace.keep(stage.output)
        if stage.kind in _HOLDS_TEXT:
            trace.size_bytes += results.text_bytes(stage)
        is_late = trace.is_closed
        stage.is_late = is_late
        stage.outcome = outcome
        trace.finished.append(stage)
        if trace.root is stage:
            trace.close()
            _submit(trace)
        elif is_late or trace.is_closed:
            _submit(trace)
    except Exception:
        faults.note(f"close {stage.kind}")


def _submit(trace: Trace) -> None:
    recorder = active
    if recorder is not None:
        recorder.sink.submit(PendingTrace(trace, recorder.encoder))
        if recorder.settings.flush_on_return and not _is_on_event_loop():
            recorder.sink.flush(_FLUSH_S)


async def flush_off_loop() -> None:
    """Deliver before a coroutine returns, if the settings ask for it, beside its event loop."""
    recorder = active
    if recorder is None or not recorder.settings.flush_on_return:
        return
    try:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, recorder.sink.flush, _FLUSH_S)
    except Exception:
        faults.note("flush before the return")


def _is_on_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def current_request_id() -> str | None:
    """Tell the id of the running request, 16 hex digits; None outside of any.

    Show it to the user: a complaint that quotes it is found at once.
    """
    stage = running.current.get()
    return None if stage is None or stage.trace.is_closed else stage.trace.request_id
