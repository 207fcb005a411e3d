"""Small spans of every convention, each in a trace of its own, and the stage that a reader sees."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from foreign_rows import Foreign

from ragotel.text import chunk_sha

LANGCHAIN = "openinference.instrumentation.langchain"
LLAMA = "openinference.instrumentation.llama_index"


class Case(NamedTuple):
    """A span and what its stage's row holds ('' stands for no stage at all)."""

    span: Foreign
    stage: str
    row: Mapping[str, Any]


def oi(
    kind: str, attributes: Mapping[str, Any], scope: str = LANGCHAIN, name: str = "s"
) -> Foreign:
    return Foreign(name, {**attributes, "openinference.span.kind": kind}, scope)


def hits(prefix: str, documents: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        f"{prefix}.{at}.document.{key}": value
        for at, document in documents.items()
        for key, value in document.items()
    }


def said(prefix: str, messages: Mapping[int, tuple[str, str]]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for at, (role, text) in messages.items():
        flat[f"{prefix}.{at}.message.role"] = role
        flat[f"{prefix}.{at}.message.content"] = text
    return flat


def parts(role: str, text: str) -> str:
    """One message as OpenTelemetry GenAI writes it."""
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


ONE, TWO = chunk_sha("one"), chunk_sha("two")
NOTHING = {"evidence": "not_recorded"}

CASES: dict[str, Case] = {
    "oi_without_ids_or_scores": Case(
        oi(
            "RETRIEVER",
            {
                "input.value": "q?",
                **hits("retrieval.documents", {0: {"content": "one"}, 1: {"content": "two"}}),
            },
        ),
        "retrieve",
        {
            "query": "q?",
            "chunk_ids": [None, None],
            "scores": [None, None],
            "candidate_shas": [ONE, TWO],
            "candidate_count": 2,
            "evidence": "whole",
        },
    ),
    "oi_ids_in_the_output": Case(
        oi(
            "RETRIEVER",
            {
                "output.value": json.dumps(
                    {
                        "documents": [
                            {"id": "a", "page_content": "one"},
                            {"id": "b", "page_content": "other"},
                        ]
                    }
                ),
                **hits("retrieval.documents", {0: {"content": "one"}, 1: {"content": "two"}}),
            },
        ),
        "retrieve",
        {
            "chunk_ids": ["a", None],
            "scores": [None, None],
            "candidate_shas": [ONE, TWO],
            "candidate_count": 2,
            "evidence": "whole",
        },
    ),
    "oi_evicted": Case(
        oi(
            "RETRIEVER",
            hits(
                "retrieval.documents",
                {1: {"metadata": "{}"}, 2: {"id": "c", "content": "one", "score": 0.5}},
            ),
        ),
        "retrieve",
        {
            "chunk_ids": [None, None, "c"],
            "scores": [None, None, 0.5],
            "candidate_shas": ["", "", ONE],
            "candidate_count": 3,
            "evidence": "truncated",
        },
    ),
    "oi_evicted_but_whole_beside": Case(
        oi(
            "RETRIEVER",
            {
                **hits("retrieval.documents", {1: {"content": "two"}}),
                "gen_ai.retrieval.documents": json.dumps(
                    [{"id": "a", "content": "one", "score": 1}, {"id": "b", "content": "two"}]
                ),
            },
        ),
        "retrieve",
        {
            "chunk_ids": ["a", "b"],
            "scores": [1.0, None],
            "candidate_shas": [ONE, TWO],
            "candidate_count": 2,
            "evidence": "whole",
        },
    ),
    "oi_no_hits": Case(
        oi("RETRIEVER", {"output.value": '{"documents": []}'}),
        "retrieve",
        {"candidate_count": 0, "evidence": "empty"},
    ),
    "oi_hidden": Case(
        oi("RETRIEVER", {"input.value": "__REDACTED__", "output.value": "__REDACTED__"}),
        "retrieve",
        {"evidence": "off"},
    ),
    "oi_cut": Case(
        oi("RETRIEVER", {"output.value": '{"documents": [{"id": "a", "page_co'}),
        "retrieve",
        {"evidence": "truncated"},
    ),
    "oi_broken": Case(
        oi("RETRIEVER", {"output.value": '{"documents": [{]}'}),
        "retrieve",
        {"evidence": "malformed"},
    ),
    "oi_nothing": Case(oi("RETRIEVER", {}), "retrieve", NOTHING),
    "oi_many": Case(
        oi(
            "RETRIEVER",
            hits(
                "retrieval.documents",
                {at: {"id": f"d{at}"} for at in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)},
            ),
        ),
        "retrieve",
        {
            "chunk_ids": [f"d{at}" for at in range(12)],
            "scores": [None] * 12,
            "candidate_shas": [""] * 12,
            "candidate_count": 12,
            "evidence": "whole",
        },
    ),
    "oi_unscored_llama_index": Case(
        oi(
            "RETRIEVER",
            hits(
                "retrieval.documents", {0: {"id": "a", "score": 0.0}, 1: {"id": "b", "score": 0.0}}
            ),
            LLAMA,
            "R.retrieve",
        ),
        "retrieve",
        {
            "chunk_ids": ["a", "b"],
            "scores": [None, None],
            "candidate_shas": ["", ""],
            "candidate_count": 2,
            "evidence": "whole",
        },
    ),
    "oi_inner_half": Case(
        oi("RETRIEVER", {"output.value": '["<NodeWithScore>"]'}, LLAMA, "R._retrieve"), "", {}
    ),
    "oi_rerank_evicted": Case(
        oi(
            "RERANKER",
            {
                "reranker.query": "q?",
                "reranker.top_k": 1,
                "reranker.model_name": "m",
                **hits("reranker.input_documents", {8: {"id": "i", "content": "two"}}),
                **hits("reranker.output_documents", {0: {"content": "one", "score": 0.25}}),
            },
        ),
        "rerank",
        {
            "query": "q?",
            "chunk_ids": [None],
            "scores": [0.25],
            "candidate_shas": [ONE],
            "candidate_count": 1,
            "in_count": 9,
            "evidence": "whole",
            "model": "m",
            "top_k": 1,
            "limit_count": 1,
        },
    ),
    "oi_embedding": Case(oi("EMBEDDING", {"llm.token_count.prompt": 7}), "", {}),
    "oi_prompt_builder": Case(oi("LLM", {"llm.prompt_template.template": "{{ x }}"}), "", {}),
    "oi_llm_hidden": Case(
        oi(
            "LLM",
            {"input.value": "__REDACTED__", "llm.token_count.prompt": 3, "llm.model_name": "m"},
        ),
        "generate",
        {**NOTHING, "model": "m", "input_tokens": 3, "content_mode": "off"},
    ),
    "genai_off": Case(
        Foreign("retrieval", {"gen_ai.operation.name": "retrieval", "gen_ai.provider.name": "p"}),
        "retrieve",
        {"evidence": "off", "provider": "p"},
    ),
    "genai_no_hits": Case(
        Foreign(
            "retrieval",
            {
                "gen_ai.operation.name": "retrieval",
                "gen_ai.retrieval.documents": "[]",
                "gen_ai.data_source.id": "kb",
            },
        ),
        "retrieve",
        {"candidate_count": 0, "evidence": "empty", "index_name": "kb"},
    ),
    "genai_old_top_k": Case(
        Foreign(
            "retrieval",
            {
                "gen_ai.operation.name": "retrieval",
                "gen_ai.request.top_k": 4.0,
                "gen_ai.retrieval.query.text": "q?",
                "gen_ai.retrieval.documents": json.dumps(
                    [{"id": 7, "score": 0.5}, {"id": None, "score": None}, "junk", 3]
                ),
            },
        ),
        "retrieve",
        {
            "query": "q?",
            "chunk_ids": ["7", None, None, None],
            "scores": [0.5, None, None, None],
            "top_k": 4,
            "candidate_shas": ["", "", chunk_sha("junk"), ""],
            "candidate_count": 4,
            "evidence": "whole",
        },
    ),
    "genai_broken": Case(
        Foreign(
            "retrieval",
            {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": '[{"id":NaN}]'},
        ),
        "retrieve",
        {"evidence": "malformed"},
    ),
    "genai_cut": Case(
        Foreign(
            "retrieval",
            {
                "gen_ai.operation.name": "retrieval",
                "gen_ai.retrieval.documents": '[{"id":"a"},{"id"',
            },
        ),
        "retrieve",
        {"evidence": "truncated"},
    ),
    "genai_asked_without_list": Case(
        Foreign(
            "retrieval", {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": "q?"}
        ),
        "retrieve",
        {**NOTHING, "query": "q?"},
    ),
    "genai_embedding": Case(Foreign("embeddings", {"gen_ai.operation.name": "embeddings"}), "", {}),
    "traceloop_off": Case(
        Foreign(
            "vector_db_retrieve R",
            {"gen_ai.operation.name": "vector_db_retrieve", "traceloop.span.kind": "task"},
        ),
        "retrieve",
        {"evidence": "off"},
    ),
    "traceloop_counted_more": Case(
        Foreign(
            "vector_db_retrieve R",
            {
                "gen_ai.operation.name": "vector_db_retrieve",
                "traceloop.span.kind": "task",
                "traceloop.entity.input": '{"query": "q?"}',
                "traceloop.entity.output": json.dumps(
                    {
                        "documents": [{"page_content": "one", "metadata": {"doc_id": "d"}}],
                        "count": 3,
                    }
                ),
            },
        ),
        "retrieve",
        {
            "query": "q?",
            "chunk_ids": [None],
            "scores": [None],
            "candidate_shas": [ONE],
            "candidate_doc_ids": ["d"],
            "candidate_count": 3,
            "evidence": "truncated",
        },
    ),
    "traceloop_cohere": Case(
        Foreign(
            "cohere.rerank",
            {
                "llm.request.type": "rerank",
                "gen_ai.request.model": "rerank-v3",
                "gen_ai.system": "Cohere",
                "gen_ai.prompt.0.role": "system",
                "gen_ai.prompt.0.content": "one",
                "gen_ai.prompt.1.role": "system",
                "gen_ai.prompt.1.content": "two",
                "gen_ai.prompt.2.role": "user",
                "gen_ai.prompt.2.content": "q?",
                "gen_ai.completion.0.role": "assistant",
                "gen_ai.completion.0.content": "Doc 1, Score: 0.75",
                "gen_ai.completion.1.role": "assistant",
                "gen_ai.completion.1.content": "Doc 0, Score: 0.5",
            },
        ),
        "rerank",
        {
            "query": "q?",
            "chunk_ids": [None, None],
            "scores": [0.75, 0.5],
            "candidate_shas": [TWO, ONE],
            "in_count": 2,
            "candidate_count": 2,
            "evidence": "whole",
            "model": "rerank-v3",
            "provider": "Cohere",
        },
    ),
    "traceloop_milvus": Case(
        Foreign(
            "milvus.search",
            {
                "db.system": "milvus",
                "db.milvus.search.limit": 5,
                "db.milvus.search.collection_name": "kb",
                "db.milvus.search.filter": "a > 1",
            },
            "opentelemetry.instrumentation.milvus",
            events=[
                (
                    "db.search.result",
                    {"db.search.result.id": "7", "db.search.result.distance": "0.5"},
                )
            ],
        ),
        "retrieve",
        {
            "chunk_ids": ["7"],
            "scores": [0.5],
            "candidate_shas": [""],
            "candidate_count": 1,
            "evidence": "whole",
            "index_name": "kb",
            "filter": "a > 1",
            "provider": "milvus",
            "top_k": 5,
        },
    ),
    "traceloop_qdrant": Case(
        Foreign(
            "qdrant.query_points",
            {
                "db.system": "Qdrant",
                "qdrant.query_points.collection_name": "kb",
                "db.vector.query.top_k": 8,
            },
            "opentelemetry.instrumentation.qdrant",
        ),
        "retrieve",
        {**NOTHING, "index_name": "kb", "provider": "Qdrant", "top_k": 8},
    ),
    "traceloop_upsert": Case(
        Foreign("qdrant.upsert", {"db.system": "Qdrant"}, "opentelemetry.instrumentation.qdrant"),
        "",
        {},
    ),
    "other_search": Case(
        Foreign(
            "find",
            {},
            events=[("db.query.result", {"db.query.result.id": "a", "db.query.result.score": 0.5})],
        ),
        "retrieve",
        {
            "chunk_ids": ["a"],
            "scores": [0.5],
            "candidate_shas": [""],
            "candidate_count": 1,
            "evidence": "whole",
        },
    ),
    "langfuse_columns": Case(
        Foreign(
            "find",
            {
                "langfuse.observation.type": "retriever",
                "langfuse.observation.input": json.dumps(
                    {"args": [], "kwargs": {"query": "q?", "k": 2}}
                ),
                "langfuse.observation.output": json.dumps(
                    {"ids": [["a", "b"]], "documents": [["one", "two"]], "distances": [[0.1, 0.2]]}
                ),
            },
        ),
        "retrieve",
        {
            "query": "q?",
            "chunk_ids": ["a", "b"],
            "scores": [0.1, 0.2],
            "candidate_shas": [ONE, TWO],
            "candidate_count": 2,
            "evidence": "whole",
            "top_k": 2,
            "score_kind": "distance",
            "higher_is_better": False,
        },
    ),
    "langfuse_text": Case(
        Foreign(
            "find",
            {
                "langfuse.observation.type": "retriever",
                "langfuse.observation.output": "nothing found",
            },
        ),
        "retrieve",
        NOTHING,
    ),
    "langfuse_cached": Case(
        Foreign(
            "ask",
            {
                "langfuse.observation.type": "generation",
                "langfuse.observation.input": json.dumps([{"role": "user", "content": "q?"}]),
                "langfuse.observation.output": json.dumps({"role": "assistant", "content": "a!"}),
                "langfuse.observation.usage_details": json.dumps(
                    {"input": 32, "input_cache_read": 10, "output": 5}
                ),
                "langfuse.observation.prompt.name": "answer",
                "langfuse.observation.prompt.version": 3,
            },
        ),
        "generate",
        {**NOTHING, "input_tokens": 42, "output_tokens": 5, "content_mode": "full"},
    ),
    "mlflow_no_hits": Case(
        Foreign(
            "find",
            {
                "mlflow.spanType": '"RETRIEVER"',
                "mlflow.spanInputs": '{"query": "q?"}',
                "mlflow.spanOutputs": "[]",
            },
        ),
        "retrieve",
        {"query": "q?", "candidate_count": 0, "evidence": "empty"},
    ),
    "mlflow_stripped": Case(
        Foreign("find", {"gen_ai.operation.name": "RETRIEVER"}), "retrieve", NOTHING
    ),
    "mlflow_rerank": Case(
        Foreign(
            "rerank",
            {
                "mlflow.spanType": '"RERANKER"',
                "model_name": '"m"',
                "top_n": "1",
                "mlflow.spanInputs": json.dumps(
                    {"query": "q?", "documents": [{"id": "a"}, {"id": "b"}]}
                ),
                "mlflow.spanOutputs": json.dumps([[{"id": "b", "page_content": "one"}, 0.5]]),
            },
        ),
        "rerank",
        {
            "query": "q?",
            "chunk_ids": ["b"],
            "scores": [0.5],
            "candidate_shas": [ONE],
            "candidate_count": 1,
            "in_count": 2,
            "evidence": "whole",
            "model": "m",
            "top_k": 1,
            "limit_count": 1,
        },
    ),
}

PROMPTS: dict[str, tuple[Foreign, str, str, str]] = {
    "oi_parts": (
        oi(
            "LLM",
            {
                **said("llm.input_messages", {0: ("system", "S")}),
                "llm.input_messages.1.message.role": "user",
                "llm.input_messages.1.message.contents.0.message_content.text": "A",
                "llm.input_messages.1.message.contents.1.message_content.type": "image",
                "llm.input_messages.1.message.contents.2.message_content.text": "B",
                "output.value": "a!",
            },
        ),
        "S\n\nA\n\nB",
        "full",
        "a!",
    ),
    "oi_messages_evicted": (
        oi(
            "LLM",
            {
                **said("llm.input_messages", {1: ("user", "q?")}),
                **said("llm.output_messages", {0: ("assistant", "a!")}),
            },
        ),
        "q?",
        "truncated",
        "a!",
    ),
    "oi_messages_in_the_input": (
        oi(
            "LLM",
            {
                "input.value": json.dumps(
                    {
                        "messages": [
                            {"role": "system", "content": "S"},
                            {"role": "user", "content": "q?"},
                        ]
                    }
                ),
                **said("llm.input_messages", {1: ("user", "q?")}),
                **said("llm.output_messages", {0: ("assistant", "a!")}),
            },
        ),
        "S\n\nq?",
        "full",
        "a!",
    ),
    "oi_message_hidden": (
        oi(
            "LLM",
            {
                **said("llm.input_messages", {0: ("user", "__REDACTED__")}),
                **said("llm.output_messages", {0: ("assistant", "a!")}),
            },
        ),
        "__REDACTED__",
        "redacted",
        "a!",
    ),
    "oi_completion": (
        oi("LLM", {"llm.prompts.0.prompt.text": "P", "output.value": "a!"}),
        "P",
        "full",
        "a!",
    ),
    "genai_instructed": (
        Foreign(
            "chat",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.system_instructions": '[{"type":"text","content":"S"}]',
                "gen_ai.input.messages": json.dumps(
                    [
                        {"role": "user", "parts": [{"type": "text", "content": "q?"}]},
                        {
                            "role": "assistant",
                            "parts": [{"type": "tool_call", "name": "search", "arguments": {}}],
                        },
                        {
                            "role": "tool",
                            "parts": [
                                {"type": "tool_call_response", "id": "1", "response": "found"}
                            ],
                        },
                    ]
                ),
                "gen_ai.output.messages": parts("assistant", "a!"),
            },
        ),
        "S\n\nq?\n\nfound",
        "full",
        "a!",
    ),
    "genai_event": (
        Foreign(
            "chat",
            {"gen_ai.operation.name": "chat"},
            events=[
                (
                    "gen_ai.client.inference.operation.details",
                    {
                        "gen_ai.input.messages": parts("user", "q?"),
                        "gen_ai.output.messages": parts("assistant", "a!"),
                    },
                )
            ],
        ),
        "q?",
        "full",
        "a!",
    ),
    "genai_old_events": (
        Foreign(
            "chat",
            {"gen_ai.operation.name": "chat", "gen_ai.system": "openai"},
            events=[
                ("gen_ai.system.message", {"content": "S"}),
                ("gen_ai.user.message", {"content": "q?"}),
                ("gen_ai.choice", {"message": '{"content":"a!"}'}),
            ],
        ),
        "S\n\nq?",
        "full",
        "a!",
    ),
    "traceloop_flat": (
        Foreign(
            "openai.chat",
            {
                "llm.request.type": "chat",
                "gen_ai.prompt.0.role": "system",
                "gen_ai.prompt.0.content": "S",
                "gen_ai.prompt.1.role": "user",
                "gen_ai.prompt.1.content": '[{"type":"text","text":"q?"}]',
                "gen_ai.completion.0.role": "assistant",
                "gen_ai.completion.0.content": "a!",
                "gen_ai.usage.prompt_tokens": 4,
                "gen_ai.usage.completion_tokens": 2,
            },
        ),
        "S\n\nq?",
        "full",
        "a!",
    ),
    "langfuse_messages": (CASES["langfuse_cached"].span, "q?", "full", "a!"),
    "mlflow_messages": (
        Foreign(
            "ask",
            {
                "mlflow.spanType": '"LLM"',
                "mlflow.spanInputs": json.dumps(
                    {
                        "messages": [
                            {"role": "system", "content": "S"},
                            {"role": "user", "content": "q?"},
                        ]
                    }
                ),
                "mlflow.spanOutputs": '"a!"',
            },
        ),
        "S\n\nq?",
        "full",
        "a!",
    ),
}
