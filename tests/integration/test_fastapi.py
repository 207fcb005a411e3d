"""A decorated FastAPI service: injection, streams that outlive the handler, clients that leave."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Annotated, Any

import httpx
import pytest
import uvicorn
from fastapi import Depends, FastAPI
from fastapi.responses import StreamingResponse

import ragotel
from ragotel import attributes as at
from ragotel.testing import recording

CHUNKS = ["Twenty", "-one ", "calendar ", "days", "."]


@ragotel.retrieve(leg="dense", index="docs")
def search(question: str, k: int = 3) -> list[dict[str, Any]]:
    return [{"id": f"doc#{n}", "score": 1.0 / (n + 1)} for n in range(k)]


@ragotel.request
def injected(question: str, limit: int = 2) -> dict[str, Any]:
    return {"answer": question.upper(), "ids": [hit["id"] for hit in search(question, limit)]}


@ragotel.request
async def stream(question: str) -> AsyncIterator[str]:
    search(question)
    for chunk in CHUNKS:
        yield chunk
        await asyncio.sleep(0.05)


def make_app() -> FastAPI:
    app = FastAPI()

    @app.get("/ask")
    def ask(found: Annotated[dict[str, Any], Depends(injected)]) -> dict[str, Any]:
        return found

    @app.get("/stream")
    async def streamed(question: str) -> StreamingResponse:
        return StreamingResponse(stream(question), media_type="text/event-stream")

    return app


@pytest.fixture
def url(free_port: int) -> Any:
    """A real uvicorn in a thread."""
    config = uvicorn.Config(make_app(), port=free_port, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        threading.Event().wait(0.01)
    yield f"http://127.0.0.1:{free_port}"
    server.should_exit = True
    thread.join(10)


def test_a_decorated_dependency_parses_its_request_as_before(url: str) -> None:
    """FastAPI reads the parameters, defaults and types of a decorated function."""
    with recording() as recorded:
        reply = httpx.get(f"{url}/ask", params={"question": "how long?", "limit": "1"})
        missing = httpx.get(f"{url}/ask")
    assert reply.json() == {"answer": "HOW LONG?", "ids": ["doc#0"]}
    assert missing.status_code == 422
    (request,) = recorded.stages("request")
    assert (request[at.QUERY], request[at.ANSWER]) == ("how long?", "HOW LONG?")


def test_a_stream_that_outlives_its_handler_is_one_request(url: str) -> None:
    """The answer is the joined chunks, the end is the last chunk's, the leg stands below."""
    with recording() as recorded:
        body = httpx.get(f"{url}/stream", params={"question": "how long?"}).text
    assert body == "".join(CHUNKS)
    (request,) = recorded.stages("request")
    (leg,) = recorded.stages("retrieve")
    assert request[at.ANSWER] == "".join(CHUNKS)
    assert request[at.OUTCOME] == "ok"
    assert leg[at.REQUEST_ID] == request[at.REQUEST_ID]
    (raw,) = [span for span in recorded.raw if span.attributes[at.STAGE] == "request"]
    assert raw.end_ns == max(span.end_ns for span in recorded.raw)


def test_a_client_that_hangs_up_keeps_what_it_was_sent(url: str) -> None:
    """The request ends, with the chunks that were sent and an outcome that is not ok."""
    with recording() as recorded:
        with httpx.stream("GET", f"{url}/stream", params={"question": "how long?"}) as reply:
            assert next(reply.iter_text()).startswith(CHUNKS[0])
        for _ in range(300):
            if recorded.stages("request"):
                break
            threading.Event().wait(0.02)
    (request,) = recorded.stages("request")
    assert request[at.OUTCOME] in ("stopped_early", "cancelled")
    assert request[at.ANSWER].startswith(CHUNKS[0])
    assert len(request[at.ANSWER]) < len("".join(CHUNKS))
