"""OpenAI: the real client against a server on this machine that speaks its API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("openai")

import openai
from corpus import QUESTION, TEXTS
from laws import Patched, assert_cancels, assert_fails, ids, kinds, same_result
from model_server import ANSWER

import ragotel
from ragotel import instrument
from ragotel.testing import Recorded, recording

PROMPT = f"{TEXTS['returns-1']}\n\n{QUESTION}"
MESSAGES: Any = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": PROMPT}]
USAGE: Any = {"include_usage": True}


def client(server: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server}/v1", api_key="none", max_retries=0)


def async_client(server: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{server}/v1", api_key="none", max_retries=0)


def chat(server: str, **options: Any) -> Any:
    return client(server).chat.completions.create(
        model=options.pop("model", "fake-1"), messages=MESSAGES, temperature=0.2, **options
    )


def streamed(server: str) -> str:
    parts = chat(server, stream=True, stream_options=USAGE)
    return "".join(c.choices[0].delta.content or "" for c in parts if c.choices)


async def async_chat(server: str) -> str:
    made = async_client(server)
    reply = await made.chat.completions.create(model="fake-1", messages=MESSAGES, temperature=0.2)
    return str(reply.choices[0].message.content)


async def async_streamed(server: str) -> str:
    parts = await async_client(server).chat.completions.create(
        model="fake-1", messages=MESSAGES, temperature=0.2, stream=True, stream_options=USAGE
    )
    return "".join([c.choices[0].delta.content or "" async for c in parts if c.choices])


def helper_streamed(server: str) -> str:
    made = client(server).chat.completions
    options: Any = {"model": "fake-1", "messages": MESSAGES, "temperature": 0.2}
    with made.stream(**options, stream_options=USAGE) as events:
        return "".join(e.delta for e in events if e.type == "content.delta")


def raw(server: str) -> str:
    made = client(server).chat.completions.with_raw_response
    answer = made.create(model="fake-1", messages=MESSAGES, temperature=0.2).parse()
    return str(answer.choices[0].message.content)


def raw_streamed(server: str) -> str:
    made = client(server).chat.completions.with_raw_response
    answer: Any = made.create(
        model="fake-1", messages=MESSAGES, temperature=0.2, stream=True, stream_options=USAGE
    )
    parts = answer.parse()
    return "".join(c.choices[0].delta.content or "" for c in parts if c.choices)


CHATS: list[Callable[[str], str]] = [
    lambda server: str(chat(server).choices[0].message.content),
    streamed,
    lambda server: asyncio.run(async_chat(server)),
    lambda server: asyncio.run(async_streamed(server)),
    helper_streamed,
    raw,
    raw_streamed,
]


def responses(server: str, **options: Any) -> str:
    made = client(server).responses.create(
        model="fake-1", instructions="Be brief.", input=PROMPT, **options
    )
    return str(made.output_text)


def responses_streamed(server: str) -> str:
    options: Any = {"model": "fake-1", "instructions": "Be brief.", "input": PROMPT}
    events = client(server).responses.create(**options, stream=True)
    return "".join(e.delta for e in events if e.type == "response.output_text.delta")


@pytest.mark.parametrize("ask", CHATS)
def test_a_chat_is_a_generation(recorded: Recorded, server: str, ask: Any) -> None:
    """Model, usage and finish reason, however the client is asked."""
    assert ask(server) == ANSWER
    assert kinds(recorded) == ["generate"]
    stage = recorded.stage("generate")
    assert stage["rag.outcome"] == "ok"
    assert stage["gen_ai.request.model"] == "fake-1"
    assert stage["gen_ai.provider.name"] == "openai"
    assert stage["gen_ai.request.temperature"] == 0.2
    assert stage["gen_ai.usage.input_tokens"] == 70
    assert stage["gen_ai.usage.output_tokens"] == 6
    assert stage["gen_ai.response.finish_reasons"] == ["stop"]


@pytest.mark.parametrize("ask", [responses, responses_streamed])
def test_a_response_is_a_generation(recorded: Recorded, server: str, ask: Any) -> None:
    """The responses API too."""
    assert ask(server) == ANSWER
    stage = recorded.stage("generate")
    assert stage["gen_ai.usage.input_tokens"] == 71
    assert stage["gen_ai.usage.output_tokens"] == 6
    assert stage["gen_ai.response.finish_reasons"] == ["completed"]


def test_the_exact_messages_are_the_prompt(recorded: Recorded, server: str) -> None:
    """Plain code has its prompt recorded without a template or a decorator."""

    @ragotel.retrieve
    def search(question: str) -> list[dict[str, str]]:
        return [{"id": key, "text": TEXTS[key]} for key in ("returns-1", "support-1")]

    @ragotel.request
    def answer(question: str) -> str:
        search(question)
        return str(chat(server).choices[0].message.content)

    answer(QUESTION)
    assert kinds(recorded) == ["request", "retrieve", "assemble", "generate"]
    assemble = recorded.stage("assemble")
    assert assemble["rag.prompt.text"] == f"Be brief.\n\n{PROMPT}"
    assert ids(assemble) == ["returns-1"]
    assert assemble["rag.candidates.in_count"] == 2


def test_a_stored_prompt_has_its_id_and_version(recorded: Recorded, server: str) -> None:
    """The text of a prompt that OpenAI fills in is not known, and not invented."""

    @ragotel.request
    def answer(question: str) -> str:
        stored: Any = {"id": "pmpt_7", "version": "3", "variables": {"question": question}}
        return responses(server, prompt=stored)

    answer(QUESTION)
    assemble = recorded.stage("assemble")
    assert assemble["gen_ai.prompt.name"] == "pmpt_7"
    assert assemble["gen_ai.prompt.version"] == "3"
    assert "rag.prompt.text" not in assemble


def test_a_decorator_above_gives_one_stage(recorded: Recorded, server: str) -> None:
    """Tokens count once, also where the decorated function hands the stream on."""

    @ragotel.generate(model="mine")
    def complete(prompt: str) -> str:
        return str(chat(server).choices[0].message.content)

    @ragotel.generate(model="mine")
    def stream(prompt: str) -> Any:
        return chat(server, stream=True, stream_options=USAGE)

    assert complete(PROMPT) == ANSWER
    parts = [c.choices[0].delta.content or "" for c in stream(PROMPT) if c.choices]
    assert "".join(parts) == ANSWER
    assert kinds(recorded) == ["generate", "generate"]
    for stage in recorded.stages("generate"):
        assert stage["gen_ai.request.model"] == "mine"
        assert stage["gen_ai.usage.input_tokens"] == 70
        assert stage["rag.outcome"] == "ok"
    assert sum("rag.time_to_first_token_ms" in s for s in recorded.stages("generate")) == 1


def test_a_stream_that_is_closed_early_says_so(recorded: Recorded, server: str) -> None:
    """The client may leave: what came until then is kept."""
    with chat(server, stream=True) as parts:
        next(iter(parts))
    assert recorded.stage("generate")["rag.outcome"] == "stopped_early"


def test_a_vector_store_is_a_retrieval(recorded: Recorded, server: str) -> None:
    """Its hits have texts and scores; a file's id is not taken for a chunk's."""
    client(server).vector_stores.search("vs_1", query=QUESTION, max_num_results=3)
    stage = recorded.stage("retrieve")
    assert stage["gen_ai.data_source.id"] == "vs_1"
    assert stage["gen_ai.retrieval.top_k"] == 3
    (row,) = stage["gen_ai.retrieval.documents"]
    assert row["id"].startswith("sha256:")
    assert (row["score"], row["doc_id"]) == (0.8, "f1")


def test_failures_and_cancellations_pass_on(recorded: Recorded, server: str) -> None:
    """The client's own exception is raised."""
    assert_fails(recorded, "generate", lambda: chat(server, model="broken"), openai.BadRequestError)

    async def hang() -> Any:
        return await async_client(server).chat.completions.create(
            model="hanging", messages=MESSAGES
        )

    assert_cancels(recorded, "generate", hang)


def test_results_are_the_same_with_and_without(server: str) -> None:
    """What the client returns is byte-identical, streams and raw responses too."""
    for ask in (*CHATS, responses, responses_streamed):
        same_result(lambda ask=ask: ask(server))
    same_result(lambda: chat(server))
    same_result(lambda: type(chat(server, stream=True)))


def test_uninstrumented_is_untouched(patched: Patched) -> None:
    """Every patched object is what it was."""
    patched.assert_reverted("openai")


def test_targets_are_there(patched: Patched) -> None:
    """The installed release has all that the patch table names."""
    patched.assert_targets("openai")


@pytest.mark.parametrize(
    "below", ["openinference.instrumentation.openai", "opentelemetry.instrumentation.openai"]
)
def test_a_stream_that_another_instrumentation_wraps(server: str, below: str) -> None:
    """Patched before ours, it hands on a stream of its own: the client's is inside of that."""
    provider = pytest.importorskip("opentelemetry.sdk.trace").TracerProvider()
    theirs = pytest.importorskip(below).OpenAIInstrumentor()
    instrument.uninstrument()
    theirs.instrument(tracer_provider=provider, skip_dep_check=True)
    try:
        with recording() as sink:
            assert streamed(server) == ANSWER
            left = chat(server, stream=True)
            next(iter(left))
            left.close()
            told = [
                (stage["rag.outcome"], stage.get("gen_ai.usage.input_tokens"))
                for stage in sink.stages("generate")
            ]
            assert told == [("ok", 70), ("stopped_early", None)]
    finally:
        instrument.uninstrument()
        theirs.uninstrument()
