"""Legs stay with their request, on whichever thread or task they run."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ragotel
from ragotel import attributes as at
from ragotel import running
from ragotel.testing import Recorded, recording


@ragotel.retrieve(leg="dense")
def dense(query: str) -> list[dict[str, Any]]:
    return [{"id": f"{query}-dense", "score": 0.5}]


@ragotel.retrieve(leg="bm25")
def bm25(query: str) -> list[dict[str, Any]]:
    return [{"id": f"{query}-bm25", "score": 7.0}]


def family(recorded: Recorded) -> list[tuple[str, str, bool]]:
    """Stage, name, and whether the parent is the request."""
    spans = recorded.spans
    (request,) = [s for s in spans if s["attributes"][at.STAGE] == "request"]
    assert len({s["attributes"][at.REQUEST_ID] for s in spans}) == 1
    return sorted(
        (
            s["attributes"][at.STAGE],
            s["attributes"][at.STAGE_NAME],
            s["parent_span_id"] == request["span_id"],
        )
        for s in spans
    )


LEGS = [("request", "answer", False), ("retrieve", "bm25", True), ("retrieve", "dense", True)]


def test_legs_in_a_thread_pool_stay_with_their_request(recorded: Recorded) -> None:
    """`submit` and `map` carry the request into the pool's threads."""

    @ragotel.request
    def answer(question: str) -> str:
        with ThreadPoolExecutor(2) as pool:
            one = pool.submit(dense, question)
            list(pool.map(bm25, [question]))
            one.result()
        return "done"

    assert answer("q") == "done"
    assert family(recorded) == LEGS


def test_a_pool_s_thread_does_not_keep_the_request(recorded: Recorded) -> None:
    """A pool that a request happens to start serves the next requests under their own ids."""
    with ThreadPoolExecutor(1) as pool:

        @ragotel.request
        def answer(question: str) -> str | None:
            pool.submit(dense, question).result()
            return ragotel.current_request_id()

        first, second = answer("one"), answer("two")
        pool.submit(dense, "stray").result()
    found = {s[at.RETRIEVAL_QUERY]: s.get(at.REQUEST_ID) for s in recorded.stages("retrieve")}
    assert found == {"one": first, "two": second, "stray": None}


async def test_legs_under_gather_stay_with_their_request(recorded: Recorded) -> None:
    """Coroutines under `asyncio.gather` are legs of the request."""

    @ragotel.retrieve(leg="dense")
    async def adense(query: str) -> list[str]:
        await asyncio.sleep(0)
        return ["x y"]

    @ragotel.retrieve(leg="bm25")
    async def abm25(query: str) -> list[str]:
        await asyncio.sleep(0)
        return ["z"]

    @ragotel.request
    async def answer(question: str) -> str:
        await asyncio.gather(adense(question), abm25(question))
        return "done"

    assert await answer("q") == "done"
    assert family(recorded) == LEGS


async def test_legs_in_an_executor_stay_with_their_request(recorded: Recorded) -> None:
    """`run_in_executor` and `to_thread` carry the request."""

    @ragotel.request
    async def answer(question: str) -> str:
        await asyncio.get_running_loop().run_in_executor(None, dense, question)
        await asyncio.to_thread(bm25, question)
        return "done"

    assert await answer("q") == "done"
    assert family(recorded) == LEGS


def test_legs_in_plain_threads_stay_with_their_request(recorded: Recorded) -> None:
    """A thread started within a request belongs to it; a daemon only if a leg is its target."""

    @ragotel.request
    def answer(question: str) -> str:
        threads = [
            threading.Thread(target=lambda: dense(question)),
            threading.Thread(target=bm25, args=(question,), daemon=True),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return "done"

    assert answer("q") == "done"
    assert family(recorded) == LEGS


def test_a_background_worker_does_not_inherit_the_request(recorded: Recorded) -> None:
    """A daemon that a request starts serves later requests; it drags none of them along."""
    go, done = threading.Event(), threading.Event()

    def work() -> None:
        go.wait()
        dense("background")
        done.set()

    @ragotel.request
    def answer(question: str) -> str:
        threading.Thread(target=work, daemon=True).start()
        go.set()
        done.wait()
        return "done"

    answer("q")
    assert at.REQUEST_ID not in recorded.stage("retrieve")


def test_a_leg_that_ends_late_still_names_its_request(recorded: Recorded) -> None:
    """A leg that outlives its request is delivered by itself, marked late."""
    go = threading.Event()

    @ragotel.retrieve(leg="slow")
    def slow(query: str) -> list[str]:
        go.wait()
        return ["late passage"]

    with ThreadPoolExecutor(1) as pool:

        @ragotel.request
        def answer(question: str) -> Any:
            return pool.submit(slow, question)

        future = answer("q")
        assert [s["attributes"][at.STAGE] for s in recorded.spans] == ["request"]
        go.set()
        future.result()
    request, leg = recorded.spans
    assert leg["attributes"][at.REQUEST_ID] == request["attributes"][at.REQUEST_ID]
    assert leg["parent_span_id"] == request["span_id"]
    assert leg["attributes"][at.LATE] is True


def test_a_stage_outside_of_any_request_stands_alone(recorded: Recorded) -> None:
    """A stray stage has a trace of its own, no request id, and its children below it."""

    @ragotel.retrieve(leg="outer")
    def outer(query: str) -> list[dict[str, Any]]:
        return dense(query)

    outer("q")
    top, below = recorded.spans
    assert top["parent_span_id"] == ""
    assert below["parent_span_id"] == top["span_id"]
    assert below["trace_id"] == top["trace_id"]
    assert at.REQUEST_ID not in top["attributes"]


def test_a_request_inside_of_a_request_is_part_of_it(recorded: Recorded) -> None:
    """One question has one request: the inner decorator only adds what the outer does not know."""

    @ragotel.request
    def answer(question: str, user_id: str) -> str:
        return question.upper()

    @ragotel.request
    def handle(body: bytes) -> str:
        return answer(body.decode(), "u1")

    assert handle(b"why") == "WHY"
    attributes = recorded.stage("request")
    assert (attributes[at.QUERY], attributes[at.USER_ID]) == ("why", "u1")
    assert attributes[at.STAGE_NAME] == "handle"


def test_patches_come_and_go() -> None:
    """Configuring patches the pool and the thread once; shutting down puts both back."""
    submit, start = ThreadPoolExecutor.submit, threading.Thread.start
    with recording():
        running.carry_into_threads()
        assert ThreadPoolExecutor.submit is not submit
    assert ThreadPoolExecutor.submit is submit
    assert threading.Thread.start is start


def test_a_patch_on_top_of_ours_survives() -> None:
    """Where someone else patches the same place, putting ours back does not undo theirs."""
    submit = ThreadPoolExecutor.submit
    try:
        with recording():
            ours = ThreadPoolExecutor.submit

            def theirs(self: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
                return ours(self, fn, *args, **kwargs)

            ThreadPoolExecutor.submit = theirs  # type: ignore[method-assign]
        assert ThreadPoolExecutor.submit is theirs
        with recording(), ThreadPoolExecutor(1) as pool:
            assert pool.submit(len, "abc").result() == 3
    finally:
        ThreadPoolExecutor.submit = submit  # type: ignore[method-assign]
        running._is_submit_ours = False
