"""Wrapping: one logic around functions, coroutines, generators, async generators and callables.

Pipeline: call site -> decorators -> [wrapping] -> recorder

Functions and coroutine functions become closures: fast, and pickled by name like any function. A
generator function must be seen as one and yet note its caller when called, not when first resumed;
it becomes a `wrapt` proxy, which passes for the original.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import wrapt

from ragotel import faults, running
from ragotel.record import Stage
from ragotel.recorder import end_stage, fail_stage, flush_off_loop, open_stage
from ragotel.spec import REQUEST, Spec
from ragotel.streams import record_async_stream, record_stream, take_over

MakeSpec = Callable[[Any], Spec]


def wrap(target: Any, make_spec: MakeSpec) -> Any:
    """Wrap *target*; static and class methods stay what they are, in either order."""
    if isinstance(target, (staticmethod, classmethod)):
        return type(target)(wrap(target.__func__, make_spec))
    if inspect.isclass(target):
        return _wrap_class(target, make_spec)
    spec = make_spec(target)
    if inspect.isasyncgenfunction(target) or inspect.isgeneratorfunction(target):
        return _Proxy(target, _stream_caller(spec, inspect.isasyncgenfunction(target)))
    if inspect.iscoroutinefunction(target):
        return _mark(_wrap_coroutine(target, spec))
    if inspect.isfunction(target) or inspect.isbuiltin(target):
        return _mark(_wrap_function(target, spec))
    if inspect.iscoroutinefunction(getattr(target, "__call__", None)):  # noqa: B004
        return _Proxy(target, _coroutine_caller(spec))
    return _Proxy(target, _plain_caller(spec))


def _mark(function: Any) -> Any:
    function.__ragotel__ = True
    return function


def _wrap_class(target: type, make_spec: MakeSpec) -> type:
    """Record the calls of a class's instances."""
    call = target.__dict__.get("__call__")
    if call is not None:
        setattr(target, "__call__", wrap(call, make_spec))  # noqa: B010 - a method is assigned
    return target


def _wrap_function(function: Callable[..., Any], spec: Spec) -> Callable[..., Any]:
    current = running.current

    @functools.wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        stage = open_stage(spec, args, kwargs)
        if stage is None:
            return function(*args, **kwargs)
        before = current.get()
        current.set(stage)
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            running.leave(stage, before)
            fail_stage(stage, error)
            raise
        # As `running.leave` does, without the call: most calls come this way.
        if current.get() is stage:
            current.set(before)
        if type(result) is str or type(result) is list:
            end_stage(stage, result)
            return result
        return finish(stage, result)

    return recorded


def _wrap_coroutine(function: Callable[..., Any], spec: Spec) -> Callable[..., Any]:
    current = running.current
    is_request = spec.kind == REQUEST

    @functools.wraps(function)
    async def recorded(*args: Any, **kwargs: Any) -> Any:
        stage = open_stage(spec, args, kwargs)
        if stage is None:
            return await function(*args, **kwargs)
        before = current.get()
        current.set(stage)
        try:
            result = await function(*args, **kwargs)
        except BaseException as error:
            running.leave(stage, before)
            fail_stage(stage, error)
            raise
        running.leave(stage, before)
        result = finish(stage, result)
        if is_request:
            await flush_off_loop()
        return result

    return recorded


def finish(stage: Stage, result: Any) -> Any:
    """End the stage, unless what it returned is itself yet to run: then it ends with that."""
    if type(result) in (str, list):
        end_stage(stage, result)
        return result
    try:
        taken = take_over(stage, result)
    except Exception:
        faults.note(f"look at the result of {stage.kind}")
        taken = None
    if taken is not None:
        return taken
    end_stage(stage, result)
    return result


class _Proxy(wrapt.FunctionWrapper):  # type: ignore[type-arg]
    """A wrapper that passes for the function itself and is pickled by its name."""

    __ragotel__ = True

    def __reduce_ex__(self, protocol: Any) -> Any:
        wrapped = self.__wrapped__
        name = getattr(wrapped, "__qualname__", None)
        if name is None:
            # A callable object: its copy is the object's own, and records by itself no more.
            return wrapped.__reduce_ex__(protocol)
        return name


Caller = Callable[[Any, Any, tuple[Any, ...], Mapping[str, Any]], Any]


def _full(instance: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    return args if instance is None else (instance, *args)


def _stream_caller(spec: Spec, is_async: bool) -> Caller:
    record = record_async_stream if is_async else record_stream

    def call(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        stage = open_stage(spec, _full(instance, args), kwargs)
        stream = wrapped(*args, **kwargs)
        return stream if stage is None else record(stage, stream)

    return call


def _plain_caller(spec: Spec) -> Caller:
    def call(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        stage = open_stage(spec, args, kwargs)
        if stage is None:
            return wrapped(*args, **kwargs)
        before = running.current.get()
        running.current.set(stage)
        try:
            result = wrapped(*args, **kwargs)
        except BaseException as error:
            running.leave(stage, before)
            fail_stage(stage, error)
            raise
        running.leave(stage, before)
        return finish(stage, result)

    return call


def _coroutine_caller(spec: Spec) -> Caller:
    async def call(
        wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        return await _wrap_coroutine(wrapped, spec)(*args, **kwargs)

    return call
