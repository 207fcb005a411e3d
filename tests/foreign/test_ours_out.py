"""Our spans as a reader of OpenTelemetry GenAI sees them, who knows nothing of `rag.*`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from foreign_rows import STAGES, Foreign, deliver, rows

import ragotel
from ragotel.store import Store
from ragotel.testing import recording

CONVENTION = {
    "request": {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.conversation.id": "s-1",
        "user.id": "ana",
    },
    "retrieve": {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.query.text": "how long?",
        "gen_ai.retrieval.top_k": 2,
        "gen_ai.data_source.id": "docs",
    },
    "rerank": {"gen_ai.operation.name": "rerank", "gen_ai.request.model": "r-1"},
    "generate": {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m-1",
        "gen_ai.provider.name": "acme",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.request.temperature": 0.5,
    },
    "assemble": {"gen_ai.prompt.name": "answer", "gen_ai.prompt.version": "7"},
}
"""Names and types as the convention's registry has them."""


@ragotel.retrieve(leg="dense", index="docs")
def search(query: str, k: int) -> list[dict[str, Any]]:
    return [{"id": "a", "score": 0.5, "text": "one"}, {"id": "b", "score": None, "text": "two"}]


@ragotel.rerank(model="r-1")
def rerank(query: str, hits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**hit, "score": 0.1} for hit in hits]


@ragotel.assemble(template="answer", template_version="7")
def build(query: str, hits: list[dict[str, Any]]) -> str:
    return "\n".join(hit["text"] for hit in hits) + query


@ragotel.generate(model="m-1", provider="acme", temperature=0.5)
def complete(prompt: str) -> dict[str, Any]:
    message = {"message": {"content": "21 days"}, "finish_reason": "stop"}
    return {"choices": [message], "usage": {"prompt_tokens": 12, "completion_tokens": 3}}


@ragotel.request
def answer(question: str, user_id: str, session_id: str) -> str:
    reply = complete(build(question, rerank(question, search(question, 2))))
    return str(reply["choices"][0]["message"]["content"])


def recorded_spans(**settings: Any) -> list[Any]:
    with recording(service_name="helpdesk", **settings) as recorded:
        assert answer("how long?", "ana", "s-1") == "21 days"
        return list(recorded.raw)


def messages(spans: list[Any]) -> dict[str, dict[str, Any]]:
    """What stands under the convention's keys of messages, by stage."""
    return {
        span.attributes["rag.stage"]: {
            name.split(".")[1]: json.loads(value)
            for name, value in span.attributes.items()
            if name.endswith(".messages")
        }
        for span in spans
        if "gen_ai.input.messages" in span.attributes or "gen_ai.output.messages" in span.attributes
    }


def said(role: str, text: str, **reason: str) -> list[dict[str, Any]]:
    return [{"role": role, "parts": [{"type": "text", "content": text}], **reason}]


def test_no_text_is_sent_twice_unless_asked_for() -> None:
    """The convention's messages repeat what `rag.*` says: they are off by default."""
    assert messages(recorded_spans()) == {}


def test_messages_repeat_question_prompt_and_answer() -> None:
    """With the setting on, request and generation read as the convention's own."""
    assert messages(recorded_spans(gen_ai_messages=True)) == {
        "request": {
            "input": said("user", "how long?"),
            "output": said("assistant", "21 days", finish_reason="unknown"),
        },
        "generate": {
            "input": said("user", "one\ntwohow long?"),
            "output": said("assistant", "21 days", finish_reason="stop"),
        },
    }


def test_messages_obey_the_rules_on_texts() -> None:
    """No text leaves under another key that may not leave under its own."""
    settings: dict[str, Any] = {"gen_ai_messages": True}
    assert messages(recorded_spans(content_mode="off", **settings)) == {}
    rules = {"prompt": "off", "answer": "hashed"}
    found = messages(recorded_spans(content=rules, **settings))
    hashed = {
        span.attributes["rag.stage"]: span.attributes.get("rag.answer")
        for span in recorded_spans(content=rules, **settings)
    }["request"]
    assert str(hashed).startswith("sha256:")
    assert found == {
        "request": {
            "input": said("user", "how long?"),
            "output": said("assistant", str(hashed), finish_reason="unknown"),
        },
        "generate": {"output": said("assistant", str(hashed), finish_reason="stop")},
    }
    masked = answer_with_mail(**settings, content_mode="redacted")
    assert "ana@example.com" not in json.dumps([span.attributes for span in masked])
    counts = {
        span.attributes["rag.stage"]: span.attributes.get("rag.redactions") for span in masked
    }
    assert counts["request"] == '{"email":1}'


def answer_with_mail(**settings: Any) -> list[Any]:
    with recording(service_name="helpdesk", **settings) as recorded:
        answer("how long, says ana@example.com?", "ana", "s-1")
        return list(recorded.raw)


def test_our_spans_carry_the_convention_s_keys() -> None:
    """Operation, query, k, documents, index, model, provider, tokens: names and types."""
    by_stage = {span.attributes["rag.stage"]: span.attributes for span in recorded_spans()}
    for stage, expected in CONVENTION.items():
        found = {name: by_stage[stage].get(name) for name in expected}
        assert found == expected
    documents = json.loads(by_stage["retrieve"]["gen_ai.retrieval.documents"])
    assert [(one["id"], one.get("score")) for one in documents] == [("a", 0.5), ("b", None)]
    assert "stop" in str(by_stage["generate"]["gen_ai.response.finish_reasons"])


def test_a_reader_without_our_keys_sees_the_same_search(store: Store, tmp_path: Path) -> None:
    """With `rag.*` taken away, the retrieval and the generation read as any GenAI span does."""
    spans = [
        Foreign(
            span.name,
            {
                name: value
                for name, value in span.attributes.items()
                if name.startswith("gen_ai.") and isinstance(value, str | int | float | bool)
            },
            span=f"{span.span_id:x}",
            parent=f"{span.parent_span_id:x}" if span.parent_span_id else "",
        )
        for span in recorded_spans()
    ]
    deliver(store, tmp_path, spans)
    found = {row["stage"]: row for row in rows(store, "rag_stages", STAGES)}
    assert found.keys() == {"retrieve", "rerank", "generate"}
    assert found["rerank"]["model"] == "r-1"
    retrieve, generate = found["retrieve"], found["generate"]
    assert (retrieve["query"], retrieve["top_k"]) == ("how long?", 2)
    assert (retrieve["chunk_ids"], retrieve["scores"]) == (["a", "b"], [0.5, None])
    assert (retrieve["evidence"], retrieve["index_name"]) == ("whole", "docs")
    assert (generate["model"], generate["provider"]) == ("m-1", "acme")
    assert (generate["input_tokens"], generate["output_tokens"]) == (12, 3)
    assert {row["convention"] for row in found.values()} == {"genai"}
