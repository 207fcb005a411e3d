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
    "retrieve": {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.query.text": "how long?",
        "gen_ai.retrieval.top_k": 2,
        "gen_ai.data_source.id": "docs",
    },
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


@ragotel.assemble(template="answer", template_version="7")
def build(query: str, hits: list[dict[str, Any]]) -> str:
    return "\n".join(hit["text"] for hit in hits) + query


@ragotel.generate(model="m-1", provider="acme", temperature=0.5)
def complete(prompt: str) -> dict[str, Any]:
    message = {"message": {"content": "21 days"}, "finish_reason": "stop"}
    return {"choices": [message], "usage": {"prompt_tokens": 12, "completion_tokens": 3}}


@ragotel.request
def answer(question: str) -> str:
    reply = complete(build(question, search(question, 2)))
    return str(reply["choices"][0]["message"]["content"])


def recorded_spans() -> list[Any]:
    with recording(service_name="helpdesk") as recorded:
        assert answer("how long?") == "21 days"
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
            span=f"{at}",
        )
        for at, span in enumerate(recorded_spans())
    ]
    deliver(store, tmp_path, spans)
    found = {row["stage"]: row for row in rows(store, "rag_stages", STAGES)}
    retrieve, generate = found["retrieve"], found["generate"]
    assert (retrieve["query"], retrieve["top_k"]) == ("how long?", 2)
    assert (retrieve["chunk_ids"], retrieve["scores"]) == (["a", "b"], [0.5, None])
    assert (retrieve["evidence"], retrieve["index_name"]) == ("whole", "docs")
    assert (generate["model"], generate["provider"]) == ("m-1", "acme")
    assert (generate["input_tokens"], generate["output_tokens"]) == (12, 3)
    assert {row["convention"] for row in found.values()} == {"genai"}
