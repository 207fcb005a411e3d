"""Rehearsal: calls a service's own functions for a command; nothing of it counts as a request.

Pipeline: triage -> [rehearsal] -> the user's search, model or judge

The one door by which the commands reach this half: what a search returns and what a prompt holds is
read here exactly as it is read when the service runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragotel import attributes as at
from ragotel import recorder, running
from ragotel.answers import text_of_answer
from ragotel.candidates import read
from ragotel.chunks import ChunkBook
from ragotel.columns import Candidates
from ragotel.errors import InputError
from ragotel.lists import scores_of, settle, shas_of
from ragotel.model import Pending
from ragotel.record import Stage
from ragotel.settings import resolve_settings
from ragotel.spec import RANKINGS, RETRIEVE
from ragotel.survivors import find_survivors

_SWITCH = "RAGOTEL_DISABLED"
_VERSION = "index_version"


@dataclass(frozen=True)
class Hit:
    """One candidate that a search returned; *sha* names its text, None where it came without."""

    id: str | None
    score: float | None
    text: str | None
    sha: str | None
    doc_id: str


@dataclass(frozen=True)
class Heard:
    """What one search returned, best first, and what it said of itself ('' where it did not)."""

    hits: list[Hit]
    index_version: str
    leg: str


@dataclass(frozen=True)
class Place:
    """Where a text stands in a prompt: *number* counts the texts from 0, *start* characters."""

    number: int
    start: int
    end: int
    kept_chars: int
    is_whole: bool


class _Ear:
    """A sink that keeps the stages of one call and delivers nothing."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []

    def submit(self, pending: Pending) -> bool:
        self.stages.extend(getattr(pending, "stages", ()))
        return True

    def flush(self, timeout_s: float = 0.0) -> bool:
        return True

    def shutdown(self, timeout_s: float | None = None) -> None:
        self.stages.clear()


class Rehearsal:
    """A block in which functions of the user's may be loaded and called.

    A module that calls `ragotel.configure` when it is imported finds recording switched off. What
    the functions print goes to stderr: stdout is the command's own.
    """

    def __init__(self) -> None:
        self._ear = _Ear()
        self._book = ChunkBook()

    def __enter__(self) -> Rehearsal:
        self._switch = os.environ.get(_SWITCH)
        self._before = recorder.active
        self._own = recorder.Recorder(resolve_settings(disabled=False), self._ear)
        self._loop = asyncio.new_event_loop()
        os.environ[_SWITCH] = "true"
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._switch is None:
            del os.environ[_SWITCH]
        else:
            os.environ[_SWITCH] = self._switch
        recorder.active = self._before
        if self._before is None:
            running.stop_carrying()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def load(self, target: str) -> Callable[..., Any]:
        """The function that *target* names: `module:function`, from the working folder too.

        Raises:
            InputError: There is no such module or function, or the module fails when imported.
        """
        module_name, colon, path = target.partition(":")
        if not (module_name and colon and path):
            raise InputError(f"{target!r} names no function; write module:function.")
        if "" not in sys.path and os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())
        found: Any
        try:
            with contextlib.redirect_stdout(sys.stderr):
                found = importlib.import_module(module_name)
        except (Exception, SystemExit) as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise InputError(f"The module of {target!r} cannot be imported: {reason}") from error
        for name in path.split("."):
            found = getattr(found, name, None)
        if not callable(found):
            raise InputError(f"{target!r} is no function of {module_name}.")
        return found  # type: ignore[no-any-return]

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call *function*, wait for what it returns where that is yet to run, read a stream whole.

        All calls share one event loop, as the clients of an async service do.
        """
        recorder.active = self._own
        running.carry_into_threads()
        self._ear.stages.clear()
        return self._run(function, *args, **kwargs)

    def call_untraced(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The same with recording off: what a service without ragotel would do."""
        recorder.active = None
        running.stop_carrying()
        return self._run(function, *args, **kwargs)

    @property
    def stage_count(self) -> int:
        """How many stages the last recorded call had; 0 where nothing in it is decorated."""
        return len(self._ear.stages)

    def _run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with contextlib.redirect_stdout(sys.stderr):
            result = function(*args, **kwargs)
            if inspect.isawaitable(result):
                result = self._loop.run_until_complete(_awaited(result))
            if hasattr(result, "__aiter__"):
                result = self._loop.run_until_complete(_listed(result))
            return list(result) if isinstance(result, Iterator) else result

    def search(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Heard:
        """Call a search and read its candidates.

        A decorated function is read as it would be recorded, with the extractors it was given.

        Raises:
            InputError: What it returned cannot be understood as a list of candidates.
        """
        result = self.call(function, *args, **kwargs)
        stages = list(self._ear.stages)
        own = _own_stage(function, stages)
        found = own.output if own is not None else read(result)
        if found is None:
            raise InputError(
                f"it returned {_kind(result)}, which cannot be read as a list of candidates"
            )
        return Heard(
            hits=self._hits(found, own.inputs or () if own is not None else ()),
            index_version=_version_in(result) or _version_said(own, stages),
            leg="" if own is None else str(own.name or own.spec.name),
        )

    def _hits(self, found: Candidates, earlier: Sequence[Candidates]) -> list[Hit]:
        settle(found, self._book, earlier)
        shas = shas_of(found, self._book)
        docs = found.extras.get("doc_id") or [None] * len(found)
        return [
            Hit(key, score, text, sha, "" if doc is None else str(doc))
            for key, score, text, sha, doc in zip(
                found.keys or (), scores_of(found), found.texts, shas, docs, strict=True
            )
        ]


async def _awaited(result: Any) -> Any:
    return await result


async def _listed(result: Any) -> list[Any]:
    return [part async for part in result]


def _own_stage(function: Callable[..., Any], stages: Sequence[Stage]) -> Stage | None:
    """The stage that a decorated function itself recorded, if it is one that returns a list."""
    if not getattr(function, "__ragotel__", False):
        return None
    roots = [stage for stage in stages if stage.parent is None]
    if len(roots) != 1 or roots[0].kind not in (RETRIEVE, *RANKINGS):
        return None
    return roots[0]


def _version_in(result: Any) -> str:
    value = result.get(_VERSION) if isinstance(result, Mapping) else None
    if value is None:
        value = getattr(result, _VERSION, None)
    return str(value) if isinstance(value, str | int) else ""


def _version_said(own: Stage | None, stages: Sequence[Stage]) -> str:
    """The version that the search named on its span; '' where its legs name several."""
    if own is not None and (version := _version_on(own)):
        return version
    versions = {_version_on(stage) for stage in stages if stage.kind == RETRIEVE}
    return versions.pop() if len(versions) == 1 else ""


def _version_on(stage: Stage) -> str:
    value = (stage.values or {}).get(at.INDEX_VERSION)
    if value is None:
        value = stage.spec.static.get(at.INDEX_VERSION)
    return "" if value is None else str(value)


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


def answer_in(result: Any) -> str | None:
    """The text of what a model returned, of any shape; None where there is none."""
    return text_of_answer(result)


def find_places(prompt: str, texts: Sequence[str | None], question: str) -> list[Place]:
    """Where *texts* stand in *prompt*, in prompt order, found as the survivors of a prompt are."""
    found, _ = find_survivors(prompt, texts, question=question)
    return [Place(one.rank, one.start, one.end, one.kept_chars, one.is_whole) for one in found]
