"""Odd spans: rows whose attributes are nearly right, or not at all, of every convention.

Used by test_inputs.py and by fuzz/spans.py.
"""

from __future__ import annotations

import json
import random
from typing import Any

from odd_objects import TEXTS
from small_worlds import KEYS, NOON, STAGES

from ragotel.store.otlp_rows import Event, Origin, SpanRow
from ragotel.text import repair

SERVICE = "junk"
"""Their service; their traces begin with it, so that other requests can be told from them."""
AT_NS = int(NOON.timestamp()) * 10**9
_FOREIGN = (
    *("openinference.span.kind", "input.value", "output.value", "metadata", "llm.model_name"),
    *("retrieval.documents.0.document.id", "retrieval.documents.0.document.score"),
    *("retrieval.documents.1.document.content", "retrieval.documents.2.document.metadata"),
    *("retrieval.documents.9999.document.id", "retrieval.documents.99999.document.id"),
    *("retrieval.documents.-1.document.id", "reranker.output_documents.0.document.id"),
    *("reranker.input_documents.3.document.content", "reranker.query", "reranker.top_k"),
    *("llm.input_messages.0.message.content", "llm.input_messages.1.message.role"),
    *("llm.input_messages.7.message.contents.0.message_content.text", "llm.token_count.prompt"),
    *("llm.output_messages.0.message.content", "llm.invocation_parameters", "llm.prompts"),
    *("gen_ai.operation.name", "gen_ai.system", "gen_ai.input.messages", "gen_ai.output.messages"),
    *("gen_ai.prompt.0.content", "gen_ai.completion.0.content", "gen_ai.is_streaming"),
    *("gen_ai.system_instructions", "traceloop.span.kind", "traceloop.entity.input"),
    *("traceloop.entity.output", "llm.request.type", "db.system", "db.query.text"),
    *("langfuse.observation.type", "langfuse.observation.input", "langfuse.observation.output"),
    *("mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs", "session.id"),
)
_WORDS = (
    *("retrieval", "RETRIEVER", '"RETRIEVER"', "LLM", '"CHAT_MODEL"', "chat", "CHAIN", "RERANKER"),
    *("workflow", "pinecone", "retriever", "generation", "embeddings", "off", "full", "truncated"),
    *(
        "error",
        "true",
        "false",
        "ok",
        "distance",
        "3",
        "0",
        "-1",
        "4294967296",
        "1e400",
        "nan",
        "inf",
    ),
    *("Infinity", "99999999999999999999", "0x10", "1_000", "0.5", "[]", "{}", "null", "", " "),
)
_KEYS_OF_OTHERS = ("rag.label.id", "gen_ai.data_source.id", "rag.chunks", "rag.loss.cause")
"""What would rightly change rows of others: their label, their index, the text of their passage."""
_LISTS = (
    [{"id": "a", "score": 0.5, "sha": "sha256:0123456789abcdef", "doc_id": "d", "tokens": 5}],
    [{"id": f"c{n}", "score": 1 / (n + 1), "leg": "dense"} for n in range(40)],
    [{"id": "a", "reason": "budget", "inferred": False}, {"id": None, "reason": None}],
    [{"role": "user", "content": "q?"}, {"role": "assistant", "parts": [{"type": "text"}]}],
    {"ids": [["a", "b"]], "documents": [["x", None]], "distances": [[0.1, "far"]]},
    {"hits": {"hits": [{"_id": "a", "_score": 1, "_source": {"text": "x"}}]}},
    {"messages": [[{"kwargs": {"type": "human", "content": ["x", {"text": "y"}]}}]]},
    {"values": [{"stringValue": "a"}, {"kvlistValue": {"values": [{"key": "k", "value": {}}]}}]},
    ["stop"],
    {"sha256:0123456789abcde0": "text", "sha256:1123456789abcde0": None},
)
_PIECES = (
    "[",
    "]",
    "{",
    "}",
    '"',
    ",",
    ":",
    "\\",
    "\\u",
    "\\ud800",
    "\0",
    "null",
    "-",
    "9" * 40,
    "é",
)


def odd_rows(rng: random.Random, count: int) -> list[SpanRow]:
    """*count* spans in some traces of some requests each, which name each other as parents."""
    return [_row(rng, number) for number in range(count)]


def _row(rng: random.Random, number: int) -> SpanRow:
    trace = rng.choice((f"{SERVICE}-{number // 8}", f"{SERVICE}-{rng.randrange(5)}"))
    keys = rng.sample(KEYS, rng.randrange(len(KEYS)))
    attributes = {key: _text(rng) for key in keys if key not in _KEYS_OF_OTHERS}
    if rng.random() < 0.6:
        attributes["rag.stage"] = rng.choice(STAGES) if rng.random() < 0.9 else _text(rng)
        # Requests of others are called so too, in traces of their own.
        attributes["rag.request.id"] = rng.choice(("r1", "r3", "", trace, _text(rng)))
    else:
        attributes.pop("rag.stage", None)
        attributes |= {key: _text(rng) for key in rng.sample(_FOREIGN, rng.randrange(12))}
    return SpanRow(
        start_ns=rng.choice((0, 2**63 - 1, AT_NS, AT_NS + rng.randrange(10**12))),
        duration_ns=rng.choice((0, 5_000_000, 2**63, 2**64 - 1)),
        trace_id=trace,
        span_id=f"{SERVICE}-{number}",
        parent_span_id=rng.choice(("", f"{SERVICE}-{rng.randrange(number + 1)}")),
        trace_state="",
        name=rng.choice(("answer", "retrieval docs", "chat", "ragotel.loss", "\0")),
        kind=rng.choice(("Internal", "Server", "Client", "")),
        origin=_ORIGINS[rng.randrange(len(_ORIGINS))],
        attributes=attributes,
        status_code=rng.choice(("Unset", "Ok", "Error")),
        status_message="",
        events=(Event(AT_NS, "db.query.result", {"db.query.result.id": _text(rng)}),)
        if rng.random() < 0.1
        else (),
    )


_ORIGINS = tuple(
    Origin(SERVICE, {"service.name": SERVICE}, scope, "1")
    for scope in ("ragotel", "opentelemetry.instrumentation.openai", "x.llama_index", "")
)


def _text(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.35:
        return rng.choice(_WORDS)
    if kind < 0.5:
        return repair(rng.choice(TEXTS))
    if kind < 0.55:
        return "[" * rng.choice((3, 200, 5_000))
    made = json.dumps(_mutated(rng, rng.choice(_LISTS)), ensure_ascii=rng.random() < 0.5)
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        at = rng.randrange(len(made) + 1)
        made = made[:at] + rng.choice(_PIECES) + made[at + rng.randrange(3) :]
    return repair(made)


def _mutated(rng: random.Random, value: Any) -> Any:
    """*value*, where any part may be something else, doubled, or gone."""
    if rng.random() < 0.06:
        return rng.choice(
            (None, True, -1, 2**64, 1e308, -0.0, "", "x" * 2_000, [], {}, [[]], "nul\0")
        )
    if isinstance(value, list):
        return [
            _mutated(rng, item) for item in value for _ in range(rng.choice((1, 1, 1, 1, 0, 2)))
        ]
    if isinstance(value, dict):
        return {key: _mutated(rng, item) for key, item in value.items() if rng.random() < 0.93}
    return value
