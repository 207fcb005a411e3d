"""Generators, streaming responses and what is left unfinished."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Iterator
from contextvars import copy_context
from typing import Any

import pytest

import ragotel
from ragotel import attributes as at
from ragotel.testing import Recorded


@ragotel.request
def stream(question: str, log: list[str]) -> Iterator[str]:
    try:
        for number in range(10):
            yield f"{number} "
    finally:
        log.append("closed")


@ragotel.request
async def astream(question: str, log: list[str]) -> AsyncIterator[str]:
    try:
        for number in range(10):
            await asyncio.sleep(0)
            yield f"{number} "
    finally:
        log.append("closed")


def test_a_stream_ends_with_its_last_chunk(recorded: Recorded) -> None:
    """The answer is the joined chunks; the end is that of the last one."""
    assert list(stream("q", [])) == [f"{n} " for n in range(10)]
    (span,) = recorded.spans
    assert span["attributes"][at.ANSWER] == "0 1 2 3 4 5 6 7 8 9 "
    assert span["attributes"][at.OUTCOME] == "ok"
    # One reading of the clock per chunk, one at the start, one at the end.
    assert span["end_ns"] - span["start_ns"] >= 10_000_000


def test_a_stream_closed_early_keeps_its_chunks(recorded: Recorded) -> None:
    """After 2 of 10 chunks: stopped_early, both kept, the inner generator closed."""
    log: list[str] = []
    running = stream("q", log)
    assert [next(running), next(running)] == ["0 ", "1 "]
    running.close()  # type: ignore[attr-defined]
    assert log == ["closed"]
    attributes = recorded.stage("request")
    assert (attributes[at.OUTCOME], attributes[at.ANSWER]) == ("stopped_early", "0 1 ")


async def test_an_async_stream_closed_early_keeps_its_chunks(recorded: Recorded) -> None:
    """The same for an async generator."""
    log: list[str] = []
    running = astream("q", log)
    assert [await anext(running), await anext(running)] == ["0 ", "1 "]
    await running.aclose()  # type: ignore[attr-defined]
    assert log == ["closed"]
    attributes = recorded.stage("request")
    assert (attributes[at.OUTCOME], attributes[at.ANSWER]) == ("stopped_early", "0 1 ")


def test_a_stream_that_nobody_holds_is_abandoned(recorded: Recorded) -> None:
    """A generator collected unfinished, or never begun, still leaves its record."""
    log: list[str] = []
    running = stream("q", log)
    next(running)
    del running
    unbegun = stream("q", log)
    del unbegun
    gc.collect()
    assert log == ["closed"]
    outcomes = [(s[at.OUTCOME], s.get(at.ANSWER)) for s in recorded.stages("request")]
    assert outcomes == [("abandoned", "0 "), ("abandoned", None)]


async def test_a_stream_may_wander_between_tasks(
    recorded: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    """Made in one task, iterated in a second, closed in a third: parent kept, nothing logged."""
    caplog.set_level(logging.DEBUG)

    @ragotel.generate(model="m")
    async def tokens(prompt: str) -> AsyncIterator[str]:
        while True:
            yield "x"

    @ragotel.request
    async def answer(question: str) -> Any:
        return tokens(question)

    async def step(running: Any) -> str:
        return str(await anext(running))

    async def close(running: Any) -> None:
        await running.aclose()

    running = await asyncio.create_task(answer("q"))
    assert await asyncio.create_task(step(running)) == "x"
    assert ragotel.current_request_id() is None
    await asyncio.create_task(close(running))
    request, generate = recorded.spans
    assert generate["parent_span_id"] == request["span_id"]
    assert generate["attributes"][at.OUTCOME] == "stopped_early"
    assert [r for r in caplog.records if r.name == "ragotel"] == []


async def test_nested_async_generators_nest(recorded: Recorded) -> None:
    """The inner generator's span is the outer one's child and both last until the end."""

    @ragotel.generate(model="m")
    async def inner(prompt: str) -> AsyncIterator[str]:
        for word in ("a", "b"):
            await asyncio.sleep(0)
            yield word

    @ragotel.request
    async def outer(question: str) -> AsyncIterator[str]:
        async for word in inner(question):
            yield word

    assert [word async for word in outer("q")] == ["a", "b"]
    request, generate = recorded.spans
    assert generate["parent_span_id"] == request["span_id"]
    assert request["start_ns"] <= generate["start_ns"]
    assert request["end_ns"] >= generate["end_ns"] > generate["start_ns"]
    assert generate["attributes"][at.TIME_TO_FIRST_TOKEN] > 0


def test_the_consumer_never_runs_inside_of_the_request(recorded: Recorded) -> None:
    """Between two chunks the consumer's code is outside; the generator's own is inside."""
    seen: list[str | None] = []

    @ragotel.request
    def chunks(question: str) -> Iterator[str]:
        for _ in range(2):
            seen.append(ragotel.current_request_id())
            yield "x"

    for _ in chunks("q"):
        assert ragotel.current_request_id() is None
    assert seen == [recorded.stage("request")[at.REQUEST_ID]] * 2


def test_send_throw_and_return_pass_through(recorded: Recorded) -> None:
    """A decorated generator is a whole generator."""

    @ragotel.generate
    def talk(prompt: str) -> Any:
        heard = yield "first"
        try:
            yield heard
        except KeyError:
            yield "caught"
        return "done"

    def run() -> Any:
        result = yield from talk("p")
        return result

    running = run()
    assert next(running) == "first"
    assert running.send("word") == "word"
    assert running.throw(KeyError("k")) == "caught"
    with pytest.raises(StopIteration) as stop:
        next(running)
    assert stop.value.value == "done"
    assert recorded.stage("generate")[at.OUTCOME] == "ok"


def test_an_error_in_a_stream_is_the_request_s(recorded: Recorded) -> None:
    """A stream that breaks keeps its chunks and is an error."""

    @ragotel.request
    def broken(question: str) -> Iterator[str]:
        yield "half"
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(broken("q"))
    attributes = recorded.stage("request")
    assert (attributes[at.OUTCOME], attributes[at.ANSWER]) == ("error", "half")


class StreamingResponse:
    """What a web framework returns from a handler: the body is iterated afterwards."""

    def __init__(self, body: Any) -> None:
        self.body_iterator = body


async def test_a_streaming_response_belongs_to_its_request(recorded: Recorded) -> None:
    """Five chunks after the handler ended: one request, the answer joined, stages inside."""

    @ragotel.retrieve
    def search(query: str) -> list[str]:
        return ["one passage"]

    async def body(question: str) -> AsyncIterator[str]:
        search(question)
        for number in range(5):
            yield f"data: {number}\n"

    @ragotel.request
    async def handler(question: str) -> StreamingResponse:
        return StreamingResponse(body(question))

    response = await handler("q")
    assert ragotel.current_request_id() is None
    run = asyncio.create_task(_drain(response))
    assert len(await run) == 5
    request, retrieve = recorded.spans
    assert request["attributes"][at.ANSWER] == "".join(f"data: {n}\n" for n in range(5))
    assert retrieve["parent_span_id"] == request["span_id"]
    assert request["end_ns"] > retrieve["end_ns"]


async def _drain(response: StreamingResponse) -> list[str]:
    return [chunk async for chunk in response.body_iterator]


async def test_cancelling_is_no_error(recorded: Recorded) -> None:
    """A client that hangs up is recorded as cancelled, with an unset status."""

    @ragotel.request
    async def answer(question: str) -> str:
        await asyncio.Event().wait()
        return "never"

    task = asyncio.create_task(answer("q"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (span,) = recorded.spans
    assert (span["attributes"][at.OUTCOME], span["status_code"]) == ("cancelled", 0)


def test_a_generator_resumed_in_another_context_does_not_leak(recorded: Recorded) -> None:
    """Each step may run in its own context; none of them keeps the request."""
    running = stream("q", [])
    for _ in range(3):
        context = copy_context()
        context.run(next, running)
        assert context.run(ragotel.current_request_id) is None


@pytest.mark.parametrize(
    ("parts", "answer"),
    [
        ([("Hel", {"index": 0}), ("lo", {"index": 1})], "Hello"),
        ([("token", "Hel"), ("token", "lo")], None),
        ([("updates", {"node": {"found": 3}})], None),
        ([{"event": "done"}], None),
        ([""], ""),
        ([], None),
    ],
)
def test_labels_of_parts_are_no_answer(
    recorded: Recorded, parts: list[Any], answer: str | None
) -> None:
    """Of parts with several texts none is known to be the answer; without a text there is none."""

    @ragotel.request
    def ask(question: str) -> Iterator[Any]:
        yield from parts

    assert list(ask("q?")) == parts
    assert recorded.stage("request").get(at.ANSWER) == answer
