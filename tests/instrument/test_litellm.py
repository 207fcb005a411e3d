"""LiteLLM: its real functions against a server on this machine that speaks OpenAI's API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("litellm")

import litellm
from corpus import QUESTION, TEXTS, overlap
from laws import Patched, assert_cancels, assert_fails, dropped, ids, kinds, same_result, scores
from model_server import ANSWER

import ragotel
from ragotel.testing import Recorded

PROMPT = f"{TEXTS['returns-1']}\n\n{QUESTION}"
USAGE: Any = {"include_usage": True}


def asked(server: str, **options: Any) -> Any:
    made = {"model": "openai/fake-1", "api_base": f"{server}/v1", "api_key": "none", **options}
    return {**made, "messages": [{"role": "user", "content": PROMPT}], "num_retries": 0}


def completed(server: str) -> str:
    return str(litellm.completion(**asked(server)).choices[0].message.content)


def streamed(server: str) -> str:
    parts = litellm.completion(**asked(server), stream=True, stream_options=USAGE)
    return "".join(c.choices[0].delta.content or "" for c in parts if c.choices)


async def async_completed(server: str) -> str:
    return str((await litellm.acompletion(**asked(server))).choices[0].message.content)


async def async_streamed(server: str) -> str:
    parts = await litellm.acompletion(**asked(server), stream=True, stream_options=USAGE)
    return "".join([c.choices[0].delta.content or "" async for c in parts if c.choices])


ASKS: list[Callable[[str], str]] = [
    completed,
    streamed,
    lambda server: asyncio.run(async_completed(server)),
    lambda server: asyncio.run(async_streamed(server)),
]


@pytest.mark.parametrize("ask", ASKS)
def test_a_completion_is_one_generation(recorded: Recorded, server: str, ask: Any) -> None:
    """LiteLLM and the OpenAI client below it are one stage; tokens count once."""
    assert ragotel.request(lambda question: ask(server))(QUESTION) == ANSWER
    assert kinds(recorded) == ["request", "assemble", "generate"]
    stage = recorded.stage("generate")
    assert stage["rag.outcome"] == "ok"
    assert stage["gen_ai.request.model"] == "openai/fake-1"
    assert stage["gen_ai.provider.name"] == "openai"
    assert stage["gen_ai.usage.input_tokens"] == 70
    assert stage["gen_ai.usage.output_tokens"] == 6
    assert stage["gen_ai.response.finish_reasons"] == ["stop"]


def reranked(server: str, found: Any) -> Any:
    return litellm.rerank(
        model="cohere/rerank-fake",
        query=QUESTION,
        documents=found,
        top_n=2,
        api_base=f"{server}/v1/rerank",
        api_key="none",
    )


def test_a_rerank_names_what_it_was_given(recorded: Recorded, server: str) -> None:
    """It answers with positions: the ids are those of the candidates with these texts."""

    @ragotel.retrieve
    def search(question: str) -> list[dict[str, str]]:
        return [{"id": key, "text": text} for key, text in TEXTS.items()]

    @ragotel.request
    def answer(question: str) -> Any:
        return reranked(server, [row["text"] for row in search(question)])

    answer(QUESTION)
    assert kinds(recorded) == ["request", "retrieve", "rerank"]
    stage = recorded.stage("rerank")
    best = sorted(TEXTS, key=lambda key: -overlap(QUESTION, TEXTS[key]))
    assert ids(stage) == best[:2]
    assert scores(stage) == [overlap(QUESTION, TEXTS[key]) for key in best[:2]]
    assert dropped(stage) == dict.fromkeys(best[2:], "top_n")
    assert stage["rag.limit"] == 2
    assert stage["gen_ai.request.model"] == "cohere/rerank-fake"


def test_failures_and_cancellations_pass_on(recorded: Recorded, server: str) -> None:
    """The library's own exception is raised."""
    broken = asked(server, model="openai/broken")
    assert_fails(recorded, "generate", lambda: litellm.completion(**broken), Exception)

    async def hang() -> Any:
        return await litellm.acompletion(**asked(server, model="openai/hanging"))

    assert_cancels(recorded, "generate", hang)


def test_results_are_the_same_with_and_without(server: str) -> None:
    """What the functions return is byte-identical."""
    for ask in ASKS:
        same_result(lambda ask=ask: ask(server))
    same_result(lambda: reranked(server, list(TEXTS.values())).results)


def test_uninstrumented_is_untouched(patched: Patched) -> None:
    """Every patched object is what it was."""
    patched.assert_reverted("litellm")


def test_targets_are_there(patched: Patched) -> None:
    """The installed release has all that the patch table names."""
    patched.assert_targets("litellm")
