"""A decorated callable is, to everyone who looks at it or calls it, the callable it was."""

from __future__ import annotations

import asyncio
import functools
import inspect
import pickle
import queue
import socket
import threading
import typing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

import picklable
import pytest

import ragotel
from ragotel import attributes as at
from ragotel import faults
from ragotel.testing import Recorded

HITS = [{"id": "a", "score": 0.5}, {"id": "b", "score": 0.25}]


def plain(query: str, k: int = 10, *, lang: str | None = None) -> list[dict[str, Any]]:
    """Search."""
    return HITS


async def coroutine(query: str, k: int = 10) -> list[dict[str, Any]]:
    return HITS


def generator(query: str) -> typing.Iterator[str]:
    yield query


async def async_generator(query: str) -> typing.AsyncIterator[str]:
    yield query


PREDICATES = [
    inspect.isfunction,
    inspect.iscoroutinefunction,
    inspect.isgeneratorfunction,
    inspect.isasyncgenfunction,
    asyncio.iscoroutinefunction,
    callable,
]


@pytest.mark.parametrize("function", [plain, coroutine, generator, async_generator])
@pytest.mark.parametrize("decorator", [ragotel.retrieve, ragotel.retrieve(leg="dense")])
def test_a_decorated_function_looks_like_the_function(function: Any, decorator: Any) -> None:
    """Signature, hints, name, doc, `__wrapped__` and every `inspect` predicate stay the same."""
    decorated = decorator(function)
    assert inspect.signature(decorated) == inspect.signature(function)
    assert typing.get_type_hints(decorated) == typing.get_type_hints(function)
    assert decorated.__name__ == function.__name__
    assert decorated.__qualname__ == function.__qualname__
    assert decorated.__module__ == function.__module__
    assert decorated.__doc__ == function.__doc__
    assert inspect.unwrap(decorated) is function
    assert [p(decorated) for p in PREDICATES] == [p(function) for p in PREDICATES]


def make_class(outer: Any, inner: Any) -> type:
    class Index:
        @outer
        @inner
        def search(*args: Any) -> Any:
            return args[-1]

    return Index


@pytest.mark.parametrize("kind", [staticmethod, classmethod])
@pytest.mark.parametrize("is_ours_outside", [True, False])
@pytest.mark.parametrize("on_instance", [True, False])
def test_static_and_class_methods_work_in_both_orders(
    recorded: Recorded, kind: Any, is_ours_outside: bool, on_instance: bool
) -> None:
    """Called on the class or on an instance, the result is that of the undecorated method."""
    ours = ragotel.retrieve(leg="x")
    cls = make_class(ours, kind) if is_ours_outside else make_class(kind, ours)
    target = cls() if on_instance else cls
    assert target.search(HITS) is HITS
    assert isinstance(inspect.getattr_static(cls, "search"), kind)
    assert recorded.stage("retrieve")[at.COUNT] == 2


def test_methods_keep_their_self_out_of_the_record(recorded: Recorded) -> None:
    """The question is the first text after self, and the result is that of the method."""

    class Bot:
        @ragotel.request
        def reply(self, words: str) -> str:
            return words.upper()

    assert Bot().reply("hello") == "HELLO"
    assert recorded.stage("request")[at.QUERY] == "hello"


@pytest.mark.parametrize(
    "function",
    [
        picklable.rerank_scores,
        picklable.stream_answer,
        picklable.search,
        picklable.stream_reply,
        picklable.Bot.answer,
    ],
)
def test_a_decorated_function_pickles_by_its_name(function: Any) -> None:
    """`pickle.dumps` round-trips to the very same object."""
    assert pickle.loads(pickle.dumps(function)) is function


def test_a_decorated_function_runs_in_a_process_pool() -> None:
    """A process pool maps a decorated reranker as it maps the plain one."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(picklable.rerank_scores, [[1.0, 2.0], [3.0]])) == [[2.0, 1.0], [3.0]]


def test_bound_methods_pickle() -> None:
    """A bound method of a decorated class survives pickling with its object."""
    assert pickle.loads(pickle.dumps(picklable.Bot().answer))("x") == "X"


class Searcher:
    """A callable object."""

    index = "docs"

    def __call__(self, query: str) -> list[dict[str, Any]]:
        return HITS


def test_callable_objects_are_recorded_and_keep_their_attributes(recorded: Recorded) -> None:
    """An object with `__call__`, and a partial, are recorded when called."""
    searcher: Any = ragotel.retrieve(leg="object")(Searcher())
    assert searcher("q") is HITS
    assert (searcher.index, isinstance(searcher, Searcher)) == ("docs", True)
    partial: Any = ragotel.retrieve(leg="partial")(functools.partial(plain, k=3))
    assert partial("q") is HITS
    assert [s[at.STAGE_NAME] for s in recorded.stages("retrieve")] == ["object", "partial"]


def test_the_result_is_the_very_object(recorded: Recorded) -> None:
    """What a function returns is passed on, neither copied nor consumed."""
    results: list[Any] = [HITS, {"hits": HITS}, None, object(), iter(HITS), "text", (1, 2), {3}]
    for result in results:
        assert ragotel.retrieve(lambda q, result=result: result)("q") is result
    assert next(results[4]) is HITS[0]


def test_the_exception_is_the_very_object(recorded: Recorded) -> None:
    """The user's exception comes through untouched and is the span's error."""
    error = ValueError("no index")

    @ragotel.retrieve
    def search(query: str) -> list[str]:
        raise error

    with pytest.raises(ValueError, match="no index") as caught:
        search("q")
    assert caught.value is error
    (span,) = recorded.spans
    assert (span["status_code"], span["status_message"]) == (2, "ValueError")
    assert span["attributes"][at.OUTCOME] == "error"
    assert span["attributes"][at.ERROR_TYPE] == "ValueError"
    assert "no index" not in str(span)


@dataclass
class Client:
    """An argument that must not be copied."""

    jobs: queue.Queue[int] = field(default_factory=queue.Queue)
    lock: threading.Lock = field(default_factory=threading.Lock)
    link: socket.socket = field(default_factory=socket.socket)

    def __deepcopy__(self, memo: Any) -> Any:
        raise AssertionError("copied")

    def __repr__(self) -> str:
        raise AssertionError("rendered")


def test_arguments_are_never_copied_or_rendered(recorded: Recorded) -> None:
    """An argument that holds a queue, a lock and a socket passes through every decorator."""
    client = Client()
    for name in ("request", "retrieve", "fuse", "rerank", "filter", "assemble", "generate"):
        decorate: Any = getattr(ragotel, name)
        assert decorate(lambda c, q: c)(client, "q") is client
    client.link.close()
    assert all(at.CAPTURE_ERRORS not in span["attributes"] for span in recorded.spans)


def test_a_failing_extractor_costs_a_count_and_nothing_else(
    recorded: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer is the same, the status is not an error, the fault is counted and logged once."""
    faults.reset()

    def broken(item: Any) -> str:
        raise KeyError("payload")

    def version() -> str:
        raise RuntimeError("no connection")

    @ragotel.retrieve(id_of=broken, index_version=version)
    def search(query: str) -> list[dict[str, Any]]:
        return HITS

    assert search("q") is HITS
    assert search("q") is HITS
    spans = recorded.spans
    assert [span["status_code"] for span in spans] == [0, 0]
    assert [span["attributes"][at.OUTCOME] for span in spans] == ["ok", "ok"]
    assert [span["attributes"][at.CAPTURE_ERRORS] for span in spans] == [3, 3]
    assert [row["id"] for row in spans[0]["attributes"][at.DOCUMENTS]] == ["a", "b"]
    assert len([r for r in caplog.records if "ask for index_version" in r.message]) == 1


class Hostile:
    """An object whose every attribute raises."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


def test_hostile_results_and_arguments_change_nothing(recorded: Recorded) -> None:
    """Objects that raise on any access pass through all decorators."""
    hostile = Hostile()
    for name in ("request", "retrieve", "fuse", "rerank", "assemble", "generate", "ingest"):
        decorate: Any = getattr(ragotel, name)
        assert decorate(lambda a, b: b)([hostile], hostile) is hostile
        assert decorate(lambda a, b: a)([hostile], hostile)[0] is hostile
    assert len(recorded.spans) == 14


def test_nothing_is_recorded_before_configure() -> None:
    """A decorated function of a process that never configured ragotel just runs."""
    assert picklable.rerank_scores([1.0, 2.0]) == [2.0, 1.0]
    assert ragotel.current_request_id() is None
