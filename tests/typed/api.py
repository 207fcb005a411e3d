"""What type checkers must say of the public names; checked by mypy --strict, never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any

from typing_extensions import assert_type

import ragotel


@ragotel.retrieve
def search(query: str, k: int = 10) -> list[str]:
    return [query]


@ragotel.retrieve(leg="dense", index="docs", index_version=lambda: "v1", top_k=10)
async def asearch(query: str, k: int = 10) -> list[str]:
    return [query]


@ragotel.request
def stream(question: str) -> Iterator[str]:
    yield question


@ragotel.request(user_id="user", run_id="nightly")
async def astream(question: str, *, user: str) -> AsyncIterator[str]:
    yield question


class Bot:
    @ragotel.request
    def answer(self, question: str) -> str:
        return question

    @ragotel.rerank(model="m", limit=5)
    @staticmethod
    def rerank(query: str, hits: list[str]) -> list[str]:
        return hits

    @classmethod
    @ragotel.fuse(method="rrf")
    def fuse(cls, one: list[str], two: list[str]) -> list[str]:
        return one + two

    @ragotel.assemble(template="t", budget=100, count_tokens=len)
    def build(self, query: str, hits: list[str]) -> str:
        return query

    @ragotel.generate(model="m")
    async def complete(self, prompt: str) -> str:
        return prompt


@ragotel.service(request="answer", retrieve=["dense", "sparse"], index="docs")
class Service:
    def answer(self, question: str) -> int:
        return 1


@ragotel.service
class Other:
    def answer(self, question: str) -> int:
        return 1


assert_type(search("q", k=3), list[str])
_: Coroutine[Any, Any, list[str]] = asearch("q")
assert_type(stream("q"), Iterator[str])
assert_type(astream("q", user="u"), AsyncIterator[str])
assert_type(Bot().answer("q"), str)
assert_type(Bot.rerank("q", ["a"]), list[str])
assert_type(Bot.fuse(["a"], ["b"]), list[str])
assert_type(Bot().build("q", []), str)
assert_type(Service().answer("q"), int)
assert_type(Other().answer("q"), int)
assert_type(ragotel.current_request_id(), str | None)
assert_type(ragotel.flush(1.0), bool)

search(1)  # type: ignore[arg-type]
search("q", top=3)  # type: ignore[call-arg]
Bot().answer()  # type: ignore[call-arg]
ragotel.retrieve(nonsense=1)  # type: ignore[call-overload]

ragotel.configure("bot", endpoint="http://127.0.0.1:4318", content_mode="off")
with ragotel.stage("rerank", model="m") as s:
    s.candidates([("a", 0.5)])
    s.dropped(["b"], reason="dedupe")
with ragotel.context(user_id="u", tags=["a"]):
    ragotel.shutdown(1.0)
