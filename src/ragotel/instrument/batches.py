"""Batches: LangChain runs each step of a sequence for all inputs at once; each input is a request.

Pipeline: langchain's own call -> [batches] -> calls -> recorder

A callback handler that hears nothing goes along with each input's config, through every thread and
task, and tells the hooks further down which request they work for.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from ragotel import faults, running
from ragotel.instrument import nesting
from ragotel.instrument.calls import Describe, begin, end, recorded
from ragotel.instrument.hooks import Wrapper
from ragotel.record import Stage
from ragotel.recorder import fail_stage

_STAGE = "ragotel_stage"
_PLACES = ("config", "callbacks", "run_manager")


def each(describe: Describe) -> Wrapper:
    """Make the hook of a `batch`, sync or async: a request for each of its inputs."""

    def call(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        begun, given = _begin(describe, instance, args, kwargs)
        if not begun:
            return wrapped(*args, **kwargs)
        try:
            result = wrapped(*given[0], **given[1])
        except BaseException as error:
            _fail(begun, error)
            raise
        if inspect.iscoroutine(result):
            return _awaited(begun, result)
        _end(begun, result)
        return result

    return call


def _begin(
    describe: Describe, instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[list[tuple[Stage, Any]], Any]:
    """Open the requests; with them the arguments that carry each to its input's steps."""
    if nesting.running_stage() is not None:
        return [], None
    begun: list[tuple[Stage, Any]] = []
    try:
        from langchain_core.runnables.config import get_config_list, merge_configs

        inputs = kwargs["inputs"] if "inputs" in kwargs else args[0]
        config = kwargs.get("config", args[1] if len(args) > 1 else None)
        configs = []
        for value, one in zip(inputs, get_config_list(config, len(inputs)), strict=True):
            about = describe(instance, (value, one), {})
            stage = None if about is None else begin(about)
            if stage is None:
                raise RuntimeError("no request begins here")
            begun.append((stage, about))
            configs.append(merge_configs(one, {"callbacks": [_carrier(stage)]}))
        return begun, ((inputs, configs, *args[2:]), _but(kwargs, ("inputs", "config")))
    except Exception:
        faults.note("follow the inputs of a batch")
        for stage, _ in begun:
            stage.trace.close()
        return [], None


def _but(kwargs: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in kwargs.items() if name not in names}


def _carrier(stage: Stage) -> Any:
    """A handler that hears nothing, and has *stage*."""
    handler = _silent_handler()()
    setattr(handler, _STAGE, stage)
    return handler


@functools.cache
def _silent_handler() -> Any:
    from langchain_core.callbacks import BaseCallbackHandler

    names = [name for name in dir(BaseCallbackHandler) if name.startswith("ignore_")]
    return type("RagotelHandler", (BaseCallbackHandler,), dict.fromkeys(names, True))


async def _awaited(begun: Sequence[tuple[Stage, Any]], coroutine: Any) -> Any:
    try:
        result = await coroutine
    except BaseException as error:
        _fail(begun, error)
        raise
    _end(begun, result)
    return result


def _fail(begun: Sequence[tuple[Stage, Any]], error: BaseException) -> None:
    for stage, _ in begun:
        fail_stage(stage, error)


def _end(begun: Sequence[tuple[Stage, Any]], results: Any) -> None:
    try:
        for (stage, about), result in zip(begun, results, strict=True):
            if isinstance(result, BaseException):
                fail_stage(stage, result)
            else:
                end(stage, about, result)
    except Exception:
        faults.note("end the requests of a batch")


def recorded_within(describe: Describe) -> Wrapper:
    """Make the hook of one call that may be a step of a batch."""
    return within(recorded(describe))


def within(wrapper: Wrapper) -> Wrapper:
    """Let a hook work for the request that its call's config carries, outside of any other."""

    def call(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        stage = None if nesting.running_stage() is not None else _carried(args, kwargs)
        if stage is None:
            return wrapper(wrapped, instance, args, kwargs)
        result = running.run_within(stage, wrapper, wrapped, instance, args, kwargs)
        return _inside(stage, result) if inspect.iscoroutine(result) else result

    return call


async def _inside(stage: Stage, coroutine: Any) -> Any:
    before = running.current.get()
    running.current.set(stage)
    try:
        return await coroutine
    finally:
        running.leave(stage, before)


def _carried(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Stage | None:
    try:
        for one in (*args[1:4], *(kwargs.get(name) for name in _PLACES)):
            around = one.get("callbacks") if isinstance(one, Mapping) else one
            for handler in getattr(around, "handlers", None) or ():
                stage: Stage | None = getattr(handler, _STAGE, None)
                if stage is not None:
                    return None if stage.trace.is_closed else stage
    except Exception:
        faults.note("find the input of a batch")
    return None


def through(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The call itself: for steps that are no stage, inside of which stages may be."""
    return wrapped(*args, **kwargs)
