"""Anthropic: the real client against a server on this machine that speaks its API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("anthropic")

import anthropic
from corpus import QUESTION, TEXTS
from laws import Patched, assert_cancels, assert_fails, kinds, same_result
from model_server import ANSWER

import ragotel
from ragotel.testing import Recorded

PROMPT = f"{TEXTS['returns-1']}\n\n{QUESTION}"
ASKED: Any = {
    "model": "claude-fake",
    "max_tokens": 100,
    "system": "Be brief.",
    "messages": [{"role": "user", "content": PROMPT}],
}


def client(server: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server, api_key="none", max_retries=0)


def async_client(server: str) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(base_url=server, api_key="none", max_retries=0)


def create(server: str, **options: Any) -> Any:
    return client(server).messages.create(**{**ASKED, **options})


def text_of(message: Any) -> str:
    return str(message.content[0].text)


def raw_streamed(server: str) -> str:
    events = create(server, stream=True)
    return "".join(e.delta.text for e in events if e.type == "content_block_delta")


def streamed(server: str) -> str:
    with client(server).messages.stream(**ASKED) as stream:
        return "".join(stream.text_stream)


async def async_created(server: str) -> str:
    return text_of(await async_client(server).messages.create(**ASKED))


async def async_raw_streamed(server: str) -> str:
    events = await async_client(server).messages.create(**ASKED, stream=True)
    return "".join([e.delta.text async for e in events if e.type == "content_block_delta"])


async def async_streamed(server: str) -> str:
    async with async_client(server).messages.stream(**ASKED) as stream:
        return "".join([text async for text in stream.text_stream])


ASKS: list[Callable[[str], str]] = [
    lambda server: text_of(create(server)),
    raw_streamed,
    streamed,
    lambda server: asyncio.run(async_created(server)),
    lambda server: asyncio.run(async_raw_streamed(server)),
    lambda server: asyncio.run(async_streamed(server)),
]


@pytest.mark.parametrize("ask", ASKS)
def test_a_message_is_a_generation(recorded: Recorded, server: str, ask: Any) -> None:
    """Model, usage with cached tokens, stop reason and prompt, however the client is asked."""
    assert ragotel.request(lambda question: ask(server))(QUESTION) == ANSWER
    assert kinds(recorded) == ["request", "assemble", "generate"]
    stage = recorded.stage("generate")
    assert stage["rag.outcome"] == "ok"
    assert stage["gen_ai.request.model"] == "claude-fake"
    assert stage["gen_ai.provider.name"] == "anthropic"
    assert stage["gen_ai.usage.input_tokens"] == 72
    assert stage["gen_ai.usage.output_tokens"] == 6
    assert stage["gen_ai.response.finish_reasons"] == ["end_turn"]
    assert recorded.stage("assemble")["rag.prompt.text"] == f"Be brief.\n\n{PROMPT}"


def test_a_decorator_above_gives_one_stage(recorded: Recorded, server: str) -> None:
    """Tokens count once."""

    @ragotel.generate(model="mine")
    def complete(prompt: str) -> str:
        return text_of(create(server))

    assert complete(PROMPT) == ANSWER
    assert kinds(recorded) == ["generate"]
    assert recorded.stage("generate")["gen_ai.usage.input_tokens"] == 72


def test_a_stream_that_is_closed_early_says_so(recorded: Recorded, server: str) -> None:
    """The client may leave."""
    with client(server).messages.stream(**ASKED) as stream:
        next(iter(stream))
    assert recorded.stage("generate")["rag.outcome"] == "stopped_early"


def test_failures_and_cancellations_pass_on(recorded: Recorded, server: str) -> None:
    """The client's own exception is raised."""
    assert_fails(
        recorded, "generate", lambda: create(server, model="broken"), anthropic.BadRequestError
    )

    async def hang() -> Any:
        return await async_client(server).messages.create(**{**ASKED, "model": "hanging"})

    assert_cancels(recorded, "generate", hang)


def test_results_are_the_same_with_and_without(server: str) -> None:
    """What the client returns is byte-identical."""
    for ask in ASKS:
        same_result(lambda ask=ask: ask(server))
    same_result(lambda: create(server))


def test_uninstrumented_is_untouched(patched: Patched) -> None:
    """Every patched object is what it was."""
    patched.assert_reverted("anthropic")


def test_targets_are_there(patched: Patched) -> None:
    """The installed release has all that the patch table names."""
    patched.assert_targets("anthropic")
