"""Spans as other versions, settings and hands write them: what the recorded samples do not show.

Each world is one trace; the rows that a reader lists are in variants.json beside this file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from foreign_rows import Foreign
from small_spans import hits, oi, parts, said

J = json.dumps
CHROMA = "opentelemetry.instrumentation.chromadb"


def lf(kind: str, name: str = "s", **values: Any) -> Foreign:
    """An observation of Langfuse's: *values* are its keys, two underscores for a point."""
    keys = {f"langfuse.observation.{key.replace('__', '.')}": one for key, one in values.items()}
    return Foreign(name, {"langfuse.observation.type": kind, **keys}, "langfuse-sdk")


def ml(kind: str, **values: str) -> Foreign:
    """A span of MLflow's: *values* are its keys, every value JSON, two underscores for a point."""
    keys = {f"mlflow.{key.replace('__', '.')}": one for key, one in values.items()}
    return Foreign("s", {"mlflow.spanType": J(kind), **keys}, "mlflow.tracing.provider")


def turn(span: str, question: str, parent: str, at: int = 1) -> list[Foreign]:
    """A chain with two searches, a reranker and a model, with an embedding between them."""
    one, two = {"id": "a", "content": "one"}, {"id": "b", "content": "two"}
    asked, answer = {"input.value": question}, f"a {question}"
    both = hits("reranker.input_documents", {0: one, 1: two})
    best = hits("reranker.output_documents", {0: {**two, "score": 0.9}})
    dense = hits("retrieval.documents", {0: {**one, "score": 0.5}})
    lexical = hits("retrieval.documents", {0: {**two, "score": 9.5}})
    messages = said("llm.input_messages", {0: ("user", f"two {question}")})
    reply = said("llm.output_messages", {0: ("assistant", answer)})
    inner = [
        oi("EMBEDDING", {"embedding.embeddings.0.embedding.text": question}),
        oi("RETRIEVER", {**asked, **dense}, name="dense"),
        oi("RETRIEVER", {**asked, **lexical}, name="bm25"),
        oi("RERANKER", {"reranker.query": question, **both, **best}),
        oi("LLM", {**messages, **reply}),
    ]
    chain = replace(
        oi("CHAIN", {**asked, "output.value": answer}), span=span, parent=parent, at=at, to=at + 9
    )
    return [
        chain,
        *(
            replace(one, span=f"{span}{n}", parent=span, at=at + n, to=at + n + 1)
            for n, one in enumerate(inner, 1)
        ),
    ]


SERVER = Foreign("POST /ask", {}, span="h", parent="zz", kind="SPAN_KIND_SERVER", to=50)

VARIANTS: dict[str, Sequence[Foreign]] = {
    "oi_prompts_plural_flat": [
        oi(
            "LLM",
            {
                "llm.prompts.0": "P text",
                "output.value": "a!",
                "llm.request.model_name": "m",
                "llm.system": "openai",
            },
        )
    ],
    "oi_choices": [
        oi("LLM", {"llm.prompts.0.prompt.text": "P", "llm.choices.0.completion.text": "a!"})
    ],
    "oi_llm_output_contents2": [
        oi(
            "LLM",
            {
                **said("llm.input_messages", {0: ("user", "q?")}),
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.contents.0.message_content.type": "text",
                "llm.output_messages.0.message.contents.0.message_content.text": "A",
                "llm.output_messages.0.message.contents.1.message_content.type": "text",
                "llm.output_messages.0.message.contents.1.message_content.text": "B",
                "llm.token_count.prompt": 3,
                "llm.token_count.prompt_details.cache_read": 2,
            },
        )
    ],
    "oi_toolcall_reply": [
        oi(
            "LLM",
            {
                **said("llm.input_messages", {0: ("user", "q?")}),
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "search",
                "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": "{}",
                "llm.finish_reason": "tool_calls",
                "output.value": '{"choices":[{"message":{"content":null}}]}',
            },
        )
    ],
    "oi_ttft": [
        replace(
            oi("LLM", {**said("llm.input_messages", {0: ("user", "q?")}), "output.value": "a!"}),
            events=[("First Token Stream Event", {})],
            event_at=40,
            to=90,
        )
    ],
    "oi_redacted_docs": [
        oi(
            "RETRIEVER",
            {
                "input.value": "__REDACTED__",
                **hits(
                    "retrieval.documents",
                    {0: {"content": "__REDACTED__"}, 1: {"content": "__REDACTED__"}},
                ),
            },
        )
    ],
    "oi_ids_redacted_docs": [
        oi(
            "RETRIEVER",
            {
                **hits(
                    "retrieval.documents",
                    {
                        0: {"content": "__REDACTED__", "id": "a", "score": 0.5},
                        1: {"content": "__REDACTED__", "id": "b", "score": 0.4},
                    },
                )
            },
        )
    ],
    "oi_in_docs": [
        oi(
            "RETRIEVER",
            {
                "input.value": "q?",
                "output.documents.0.document.id": "a",
                "output.documents.0.document.content": "one",
            },
        )
    ],
    "oi_numeric_ids": [
        oi(
            "RETRIEVER",
            {
                "input.value": J({"query": "q?", "top_k": 4, "filters": None}),
                "input.mime_type": "application/json",
                **hits(
                    "retrieval.documents",
                    {0: {"id": 17, "score": 3, "content": "one"}, 1: {"id": 18, "score": "0.25"}},
                ),
            },
        )
    ],
    "oi_nan_score": [
        oi(
            "RETRIEVER",
            {
                **hits(
                    "retrieval.documents",
                    {
                        0: {"id": "a", "score": "NaN"},
                        1: {"id": "b", "score": "inf"},
                        2: {"id": "c", "score": 0.5},
                    },
                )
            },
        )
    ],
    "oi_output_only_json": [
        oi(
            "RETRIEVER",
            {
                "input.value": "q?",
                "output.mime_type": "application/json",
                "output.value": J(
                    [
                        {"id": "a", "text": "one", "score": 0.5},
                        {"id": "b", "text": "two", "score": 0.25},
                    ]
                ),
            },
        )
    ],
    "oi_metadata_ids": [
        oi(
            "RETRIEVER",
            {
                **hits(
                    "retrieval.documents",
                    {
                        0: {
                            "content": "one",
                            "metadata": J({"chunk_id": "c1", "source": "x.md", "doc_id": "d"}),
                        },
                        1: {"content": "two", "metadata": J({"id": "c2"})},
                    },
                )
            },
        )
    ],
    "oi_tool_docs": [
        oi(
            "TOOL",
            {
                "tool.name": "search",
                "input.value": '{"q":"q?"}',
                "output.value": J([{"id": "a", "text": "one"}]),
                **hits("retrieval.documents", {0: {"id": "a"}}),
            },
        )
    ],
    "oi_reranker_json": [
        oi(
            "RERANKER",
            {
                "reranker.query": "q?",
                "input.value": J({"query": "q?", "documents": ["one", "two"]}),
                "output.value": J(
                    {
                        "results": [
                            {"index": 1, "relevance_score": 0.9},
                            {"index": 0, "relevance_score": 0.1},
                        ]
                    }
                ),
                **hits("reranker.input_documents", {0: {"content": "one"}, 1: {"content": "two"}}),
                **hits(
                    "reranker.output_documents",
                    {0: {"score": 0.9, "content": "two"}, 1: {"score": 0.1, "content": "one"}},
                ),
            },
        )
    ],
    "oi_rr_out_nocontent": [
        oi(
            "RERANKER",
            {
                "reranker.query": "q?",
                **hits(
                    "reranker.input_documents",
                    {0: {"content": "one", "id": "i1"}, 1: {"content": "two", "id": "i2"}},
                ),
                **hits("reranker.output_documents", {0: {"score": 0.9, "id": "i2"}}),
            },
        )
    ],
    "oi_haystack_embedding_query": [
        oi(
            "RETRIEVER",
            {
                "input.value": J({"query_embedding": [0.1, 0.2], "top_k": 3}),
                **hits("retrieval.documents", {0: {"id": "a"}}),
            },
        )
    ],
    "genai_struct_docs": [
        Foreign(
            "retrieval kb",
            {
                "gen_ai.operation.name": "retrieval",
                "gen_ai.data_source.id": "kb",
                "gen_ai.retrieval.query.text": "q?",
                "gen_ai.retrieval.top_k": 3,
                "gen_ai.retrieval.documents": J(
                    [
                        {"id": "a", "score": 0.5, "content": "one", "metadata": {"doc_id": "d"}},
                        {"id": "b", "score": None},
                    ]
                ),
            },
            kind="SPAN_KIND_CLIENT",
        )
    ],
    "genai_chat_otel_usage": [
        Foreign(
            "chat m",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.system": "anthropic",
                "gen_ai.request.model": "m",
                "gen_ai.usage.input_tokens": 10,
                "gen_ai.usage.cache_read.input_tokens": 6,
                "gen_ai.usage.cache_creation.input_tokens": 2,
                "gen_ai.usage.output_tokens": 4,
                "gen_ai.response.finish_reasons": ["stop"],
                "gen_ai.prompt.name": "p",
                "gen_ai.prompt.version": "7",
                "gen_ai.input.messages": parts("user", "q?"),
                "gen_ai.output.messages": J(
                    [
                        {
                            "role": "assistant",
                            "parts": [
                                {"type": "reasoning", "content": "hm"},
                                {"type": "text", "content": "a!"},
                            ],
                            "finish_reason": "stop",
                        }
                    ]
                ),
                "gen_ai.response.time_to_first_chunk": 0.25,
            },
        )
    ],
    "genai_old_event_content": [
        Foreign(
            "chat m",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.system": "openai",
                "gen_ai.usage.prompt_tokens": 5,
                "gen_ai.usage.completion_tokens": 2,
            },
            events=[
                (
                    "gen_ai.content.prompt",
                    {"gen_ai.prompt": J([{"role": "user", "content": "q?"}])},
                ),
                (
                    "gen_ai.content.completion",
                    {"gen_ai.completion": J([{"role": "assistant", "content": "a!"}])},
                ),
            ],
        )
    ],
    "genai_choice_index": [
        Foreign(
            "chat m",
            {"gen_ai.operation.name": "chat", "gen_ai.system": "openai"},
            events=[
                (
                    "gen_ai.user.message",
                    {"gen_ai.event.content": J({"content": "q?"}), "gen_ai.system": "openai"},
                ),
                (
                    "gen_ai.choice",
                    {
                        "gen_ai.event.content": J(
                            {
                                "index": 0,
                                "finish_reason": "stop",
                                "message": {"role": "assistant", "content": "a!"},
                            }
                        )
                    },
                ),
            ],
        )
    ],
    "genai_tool_docs": [
        Foreign(
            "execute_tool search",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "search",
                "gen_ai.tool.call.arguments": '{"q":"q?"}',
                "gen_ai.tool.call.result": J([{"id": "a", "text": "one"}]),
            },
        )
    ],
    "genai_agent": [
        Foreign(
            "invoke_agent a",
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "a",
                "gen_ai.conversation.id": "s",
                "gen_ai.input.messages": parts("user", "q?"),
                "gen_ai.output.messages": parts("assistant", "a!"),
            },
        )
    ],
    "genai_rerank_loong": [
        Foreign(
            "rerank m",
            {
                "gen_ai.operation.name": "rerank",
                "gen_ai.request.model": "m",
                "gen_ai.rerank.query.text": "q?",
                "gen_ai.rerank.input_documents": J(
                    [{"id": "a", "content": "one"}, {"id": "b", "content": "two"}]
                ),
                "gen_ai.rerank.output_documents": J(
                    [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]
                ),
            },
        )
    ],
    "genai_input_old_json": [
        Foreign(
            "chat m",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "openai",
                "gen_ai.input.messages": J([{"role": "user", "content": "q?"}]),
                "gen_ai.output.messages": J([{"role": "assistant", "content": "a!"}]),
            },
        )
    ],
    "genai_messages_ref": [
        Foreign(
            "chat m",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "openai",
                "gen_ai.input.messages.ref": "s3://x",
                "gen_ai.usage.input_tokens": 3,
            },
        )
    ],
    "anthropic_native": [
        Foreign(
            "anthropic.messages.create",
            {
                "gen_ai.provider.name": "anthropic",
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "claude",
                "gen_ai.usage.input_tokens": 9,
                "gen_ai.usage.output_tokens": 3,
                "gen_ai.response.finish_reasons": ["end_turn"],
            },
            "com.anthropic.sdk.python",
        )
    ],
    "tl_flat_prompt_old": [
        Foreign(
            "openai.chat",
            {
                "llm.request.type": "chat",
                "gen_ai.system": "OpenAI",
                "gen_ai.request.model": "m",
                "gen_ai.prompt.0.role": "user",
                "gen_ai.prompt.0.content": "q?",
                "gen_ai.completion.0.role": "assistant",
                "gen_ai.completion.0.content": "a!",
                "gen_ai.completion.0.finish_reason": "stop",
                "llm.usage.total_tokens": 7,
                "gen_ai.usage.prompt_tokens": 5,
                "gen_ai.usage.completion_tokens": 2,
                "traceloop.prompt.key": "k",
                "traceloop.prompt.version": 3,
            },
        )
    ],
    "tl_very_old": [
        Foreign(
            "openai.chat",
            {
                "llm.request.type": "chat",
                "llm.vendor": "OpenAI",
                "llm.request.model": "m",
                "llm.prompts.0.role": "user",
                "llm.prompts.0.content": "q?",
                "llm.completions.0.role": "assistant",
                "llm.completions.0.content": "a!",
                "llm.usage.prompt_tokens": 5,
                "llm.usage.completion_tokens": 2,
            },
        )
    ],
    "tl_llm_response_reason": [
        Foreign(
            "openai.chat",
            {
                "llm.request.type": "chat",
                "gen_ai.completion.0.content": "a!",
                "gen_ai.prompt.0.content": "q?",
                "gen_ai.prompt.0.role": "user",
                "gen_ai.response.finish_reason": "length",
                "llm.response.finish_reason": "length",
            },
        )
    ],
    "tl_prompt_gap": [
        Foreign(
            "openai.chat",
            {
                "llm.request.type": "chat",
                "gen_ai.prompt.1.role": "user",
                "gen_ai.prompt.1.content": "q?",
                "gen_ai.completion.0.content": "a!",
            },
        )
    ],
    "tl_decorators": [
        Foreign(
            "rag.workflow",
            {
                "traceloop.span.kind": "workflow",
                "traceloop.entity.name": "rag",
                "traceloop.entity.input": J({"args": ["q?"], "kwargs": {}}),
                "traceloop.entity.output": J("a!"),
                "traceloop.association.properties.session_id": "s",
                "traceloop.association.properties.user_id": "u",
            },
            span="w",
        ),
        Foreign(
            "retrieve.task",
            {
                "traceloop.span.kind": "task",
                "traceloop.entity.name": "retrieve",
                "traceloop.entity.input": J({"args": ["q?"], "kwargs": {"k": 2}}),
                "traceloop.entity.output": J([{"id": "a", "text": "one", "score": 0.5}]),
                "gen_ai.operation.name": "vector_db_retrieve",
            },
            span="r",
            parent="w",
            at=1,
            to=5,
        ),
        Foreign(
            "openai.chat",
            {
                "llm.request.type": "chat",
                "gen_ai.prompt.0.role": "user",
                "gen_ai.prompt.0.content": "one q?",
                "gen_ai.completion.0.content": "a!",
                "gen_ai.completion.0.role": "assistant",
            },
            span="g",
            parent="w",
            at=6,
            to=9,
        ),
    ],
    "tl_llama_double": [
        Foreign(
            "VectorIndexRetriever.task",
            {
                "traceloop.span.kind": "task",
                "traceloop.entity.input": J({"str_or_query_bundle": {"query_str": "q?"}}),
                "traceloop.entity.output": J(
                    [
                        J(
                            {
                                "node": {
                                    "id_": "n1",
                                    "text": "one",
                                    "metadata": {},
                                    "relationships": {"1": {"node_id": "d1"}},
                                },
                                "score": 0.5,
                            }
                        ),
                        J({"node": {"id_": "n2", "text": "two"}, "score": None}),
                    ]
                ),
            },
            "opentelemetry.instrumentation.llamaindex",
        )
    ],
    "tl_chroma_scores": [
        Foreign(
            "chroma.query",
            {"db.system": "chroma", "db.chroma.query.n_results": 2},
            CHROMA,
            events=[
                (
                    "db.query.result",
                    {
                        "db.query.result.id": "a",
                        "db.query.result.distance": 0.1,
                        "db.query.result.document": "one",
                        "db.query.result.metadata": J({"doc_id": "d"}),
                    },
                ),
                ("db.query.result", {"db.query.result.id": "b", "db.query.result.distance": "0.2"}),
            ],
        )
    ],
    "tl_pinecone": [
        Foreign(
            "pinecone.query",
            {
                "db.system": "Pinecone",
                "pinecone.query.namespace": "ns",
                "pinecone.query.top_k": 2,
                "pinecone.query.filter": '{"a":1}',
            },
            "opentelemetry.instrumentation.pinecone",
            events=[
                (
                    "db.query.result",
                    {
                        "db.query.result.id": "a",
                        "db.query.result.score": 0.5,
                        "db.query.result.metadata": "{'text': 'one'}",
                    },
                )
            ],
        )
    ],
    "tl_milvus_count": [
        Foreign(
            "milvus.search",
            {
                "db.system": "milvus",
                "db.milvus.search.collection_name": "kb",
                "db.milvus.search.limit": 3,
                "db.milvus.search.result_count": 3,
            },
            "opentelemetry.instrumentation.milvus",
            events=[
                (
                    "db.search.result",
                    {
                        "db.search.result.id": "1",
                        "db.search.result.distance": "0.9",
                        "db.search.result.entity": "{'text':'x'}",
                    },
                )
            ],
        )
    ],
    "tl_stream_ttft": [
        Foreign(
            "openai.chat",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.is_streaming": True,
                "gen_ai.input.messages": parts("user", "q?"),
                "gen_ai.output.messages": parts("assistant", "a!"),
            },
            events=[
                ("gen_ai.content.completion.chunk", {}),
                ("gen_ai.content.completion.chunk", {}),
            ],
            event_at=30,
        )
    ],
    "tl_cohere_v2": [
        Foreign(
            "cohere.rerank",
            {
                "llm.request.type": "rerank",
                "gen_ai.operation.name": "rerank",
                "gen_ai.provider.name": "cohere",
                "gen_ai.request.model": "rerank",
                "gen_ai.input.messages": J(
                    [
                        {"role": "system", "parts": [{"type": "text", "content": "one"}]},
                        {"role": "system", "parts": [{"type": "text", "content": "two"}]},
                        {"role": "user", "parts": [{"type": "text", "content": "q?"}]},
                    ]
                ),
                "gen_ai.output.messages": J(
                    [
                        {
                            "role": "assistant",
                            "parts": [
                                {"type": "text", "content": "Doc 1, Score: 0.75\nDoc 0, Score: 0.5"}
                            ],
                        }
                    ]
                ),
            },
            "opentelemetry.instrumentation.cohere",
        )
    ],
    "lf_search_text_in_docs": [
        lf(
            "retriever",
            input=J("q?"),
            output=J([{"id": 1, "content": "one"}, {"id": 2, "content": "two"}]),
        )
    ],
    "lf_kwargs": [
        lf(
            "retriever",
            input=J({"args": [], "kwargs": {"question": "q?", "limit": 5}}),
            output=J({"matches": [{"id": "a", "score": 0.5, "metadata": {"text": "one"}}]}),
        )
    ],
    "lf_gen_ttft": [
        lf(
            "generation",
            input=J([{"role": "user", "content": "q?"}]),
            output=J("a!"),
            completion_start_time=J("2026-11-30T00:53:20.040000Z"),
            usage_details=J({"input": 5, "output": 2, "total": 7}),
            level="ERROR",
            status_message="boom",
            metadata__x="1",
        )
    ],
    "lf_gen_usage_cached": [
        lf(
            "generation",
            input="q?",
            output="a!",
            usage_details=J({"input_tokens": 5, "cache_read_input_tokens": 3, "output_tokens": 2}),
        )
    ],
    "lf_gen_openai_usage": [
        lf(
            "generation",
            input=J({"messages": [{"role": "user", "content": "q?"}], "tools": []}),
            output=J({"role": "assistant", "content": "a!", "tool_calls": None}),
            usage_details=J(
                {
                    "prompt_tokens": 5,
                    "completion_tokens": 2,
                    "total_tokens": 7,
                    "prompt_tokens_details.cached_tokens": 3,
                }
            ),
        )
    ],
    "lf_old_keys": [
        Foreign(
            "s",
            {
                "langfuse.observation.type": "generation",
                "langfuse.observation.input": J([{"role": "user", "content": "q?"}]),
                "langfuse.observation.output": "a!",
                "langfuse.session.id": "s",
                "langfuse.user.id": "u",
                "langfuse.observation.model.name": "m",
                "langfuse.trace.name": "t",
                "langfuse.trace.input": '"q?"',
            },
            "langfuse-sdk",
        )
    ],
    "lf_trace_io": [
        Foreign(
            "root",
            {
                "langfuse.observation.type": "span",
                "langfuse.trace.input": J({"question": "q?"}),
                "langfuse.trace.output": J("a!"),
                "session.id": "s",
                "user.id": "u",
            },
            "langfuse-sdk",
            span="w",
        ),
        replace(
            lf("generation", input=J([{"role": "user", "content": "ctx q?"}]), output=J("a!")),
            span="g",
            parent="w",
            at=1,
            to=5,
        ),
    ],
    "lf_rerank_chain": [
        lf(
            "chain",
            name="cohere-rerank",
            input=J(
                {"args": [], "kwargs": {"query": "q?", "documents": ["one", "two"], "top_n": 1}}
            ),
            output=J([{"index": 1, "relevance_score": 0.9, "document": {"text": "two"}}]),
        )
    ],
    "ml_quoted_text": [ml("CHAT_MODEL", spanInputs=J("q?"), spanOutputs=J("a!"))],
    "ml_langchain": [
        ml(
            "RETRIEVER",
            spanInputs=J("q?"),
            spanOutputs=J(
                [
                    {
                        "page_content": "one",
                        "metadata": {"doc_id": "d"},
                        "id": "a",
                        "type": "Document",
                    }
                ]
            ),
        )
    ],
    "ml_llama": [
        ml(
            "RETRIEVER",
            spanInputs=J({"str_or_query_bundle": "q?"}),
            spanOutputs=J(
                [{"page_content": "one", "metadata": {"score": 0.5, "node_id": "n"}, "id": "n"}]
            ),
        )
    ],
    "ml_messages_lc": [
        ml(
            "CHAT_MODEL",
            spanInputs=J(
                [[{"content": "S", "type": "system"}, {"content": "q?", "type": "human"}]]
            ),
            spanOutputs=J(
                {"generations": [[{"text": "a!", "message": {"content": "a!", "type": "ai"}}]]}
            ),
            chat__tokenUsage=J(
                {
                    "input_tokens": 5,
                    "output_tokens": 2,
                    "total_tokens": 7,
                    "cache_read_input_tokens": 2,
                }
            ),
        )
    ],
    "ml_responses": [
        ml(
            "CHAT_MODEL",
            spanInputs=J({"input": "q?", "instructions": "S", "model": "m"}),
            spanOutputs=J(
                {
                    "output": [
                        {
                            "type": "message",
                            "role": "assistant",
                            "content": [{"type": "output_text", "text": "a!"}],
                        }
                    ]
                }
            ),
            llm__model=J("m"),
            llm__provider=J("openai"),
        )
    ],
    "ml_contents": [
        ml(
            "CHAT_MODEL",
            spanInputs=J(
                {
                    "messages": [{"role": "user", "content": [{"type": "text", "text": "q?"}]}],
                    "temperature": 0.5,
                    "model": "m",
                }
            ),
            spanOutputs=J({"content": [{"type": "text", "text": "a!"}], "stop_reason": "end_turn"}),
        )
    ],
    "ml_root_session": [
        ml(
            "AGENT",
            spanInputs=J({"messages": [{"role": "user", "content": "q?"}]}),
            spanOutputs=J(
                {
                    "messages": [
                        {"role": "user", "content": "q?"},
                        {"role": "assistant", "content": "a!"},
                    ]
                }
            ),
            trace__session=J("s"),
            trace__user=J("u"),
            linkedPrompts=J([{"name": "p", "version": "2"}]),
        )
    ],
    "ml_broken_list": [
        ml("RETRIEVER", spanInputs=J({"query": "q?"}), spanOutputs='[{"id":"a","page_content":"on')
    ],
    "w_turns": [
        replace(oi("AGENT", {"session.id": "s"}, name="session"), span="w", to=50),
        *turn("a", "q1?", "w"),
        *turn("b", "q2?", "w", 20),
    ],
    "w_http_remote": [SERVER, *turn("a", "q1?", "h")],
    "w_missing_parent": turn("a", "q1?", "lost"),
    "w_legs_no_chain": [SERVER, *[replace(s, parent="h") for s in turn("a", "q1?", "h")[1:]]],
    "tl_scores_text": [
        Foreign(
            "retrieve.task",
            {
                "traceloop.span.kind": "task",
                "gen_ai.operation.name": "vector_db_retrieve",
                "traceloop.entity.input": J({"query": "q?"}),
                "traceloop.entity.output": J(
                    {
                        "documents": [
                            {"id": 5, "page_content": "one", "score": "0.5"},
                            {
                                "id": "1b4e28ba-2fa1-11d2-883f-0016d3cca427",
                                "page_content": "two",
                                "metadata": {"relevance_score": 0.25},
                            },
                            {"page_content": "two"},
                        ],
                        "count": 3,
                    }
                ),
            },
        )
    ],
    "lf_structured_metadata": [
        lf(
            "retriever",
            input=J({"query": "q?"}),
            output=J([{"id": "a", "text": "one"}]),
            metadata__index_name=J("kb"),
            metadata__index_version="v2",
        )
    ],
    "lf_generators": [
        lf("generation", input=J({"args": ["ctx q?"], "kwargs": {}}), output=J("a!"))
    ],
    "ml_corpus_id": [
        ml(
            "RERANKER",
            spanInputs=J({"query": "q?", "passages": ["one", "two"]}),
            spanOutputs=J([{"corpus_id": 1, "score": 0.9}, {"corpus_id": 0, "score": 0.1}]),
        )
    ],
    "ml_index_lost": [
        ml(
            "RERANKER",
            spanInputs=J({"query": "q?"}),
            spanOutputs=J({"results": [{"index": 1, "relevance_score": 0.9}]}),
        )
    ],
    "genai_finish_in_msg": [
        Foreign(
            "chat m",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "openai",
                "gen_ai.input.messages": parts("user", "q?"),
                "gen_ai.output.messages": J(
                    [
                        {
                            "role": "assistant",
                            "parts": [{"type": "text", "content": "a!"}],
                            "finish_reason": "length",
                        }
                    ]
                ),
            },
        )
    ],
    "genai_error": [
        Foreign(
            "chat m",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "openai",
                "error.type": "RateLimitError",
                "gen_ai.input.messages": parts("user", "q?"),
            },
        )
    ],
    "genai_kv_docs": [
        Foreign(
            "retrieval",
            {
                "gen_ai.operation.name": "retrieval",
                "gen_ai.retrieval.documents": [J({"id": "a", "score": 0.5}), J({"id": "b"})],
            },
        )
    ],
    "oi_session_meta": [
        oi(
            "CHAIN",
            {
                "input.value": J({"question": "q?", "chat_history": []}),
                "output.value": J({"answer": "a!", "context": ["one"]}),
                "metadata": J({"user_id": "u"}),
                "session.id": "s",
                "user.id": "u",
            },
        )
    ],
}
