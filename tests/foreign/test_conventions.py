"""Every convention by small spans: what is there, what is cut, what is off, what was never said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from foreign_rows import PROMPTS as PROMPT_COLUMNS
from foreign_rows import REQUESTS, STAGES, Foreign, deliver, rows, trace_id
from small_spans import CASES, PROMPTS

from own_database import step_into
from ragotel.store import Store

JUNK = (
    "NaN",
    "[",
    '{"a":',
    "\x00",
    "[[[[1]]]]",
    '{"documents": 3}',
    '[{"id": {"x": []}}]',
    "\ud83d\ude00",
)
MARKS = {
    "openinference.span.kind": ("RETRIEVER", "RERANKER", "LLM", "CHAIN", "nonsense"),
    "langfuse.observation.type": ("retriever", "generation", "span", "nonsense"),
    "mlflow.spanType": ('"RETRIEVER"', '"RERANKER"', '"LLM"', "nonsense"),
    "gen_ai.operation.name": ("retrieval", "rerank", "chat", "nonsense"),
    "traceloop.span.kind": ("task", "nonsense"),
}
FIELDS = (
    *("input.value", "output.value", "retrieval.documents", "retrieval.documents.x.document.id"),
    *("retrieval.documents.0", "retrieval.documents.99999.document.id", "metadata"),
    *("retrieval.documents.1.document.score", "reranker.output_documents.0.document.metadata"),
    *("llm.input_messages.0.message.content", "llm.token_count.prompt", "reranker.top_k"),
    *("gen_ai.retrieval.documents", "gen_ai.input.messages", "gen_ai.output.messages"),
    *("gen_ai.usage.input_tokens", "gen_ai.retrieval.top_k", "gen_ai.prompt.0.content"),
    *("traceloop.entity.input", "traceloop.entity.output", "langfuse.observation.input"),
    *("langfuse.observation.output", "langfuse.observation.usage_details", "mlflow.spanInputs"),
    *("mlflow.spanOutputs", "mlflow.chat.tokenUsage", "mlflow.llm.model"),
)


def junk() -> Iterator[Foreign]:
    """Every mark with junk in every field."""
    for mark, kinds in MARKS.items():
        for kind in kinds:
            for at, text in enumerate(JUNK):
                attributes: dict[str, Any] = dict.fromkeys(FIELDS, text)
                yield Foreign(
                    f"junk {mark}",
                    {**attributes, mark: kind},
                    trace=f"j{len(mark)}{kind[:4]}{at}".replace('"', ""),
                    events=[("db.query.result", {"db.query.result.metadata": text})],
                )


@pytest.fixture(scope="module")
def world(engine: Store, database: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All rows by trace: every case in one batch, with junk between them."""
    spans = [replace(case.span, trace=name[:16]) for name, case in CASES.items()]
    spans += [replace(one[0], trace=f"p_{name}"[:16]) for name, one in PROMPTS.items()]
    deliver(engine, tmp_path_factory.mktemp("spans"), [*junk(), *spans])
    found = {
        table: rows(engine, table, columns)
        for table, columns in (
            ("rag_requests", REQUESTS),
            ("rag_stages", STAGES),
            ("rag_prompts", PROMPT_COLUMNS),
        )
    }
    return {table: _by_trace(part) for table, part in found.items()}


def _by_trace(found: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    by_trace: dict[str, list[dict[str, Any]]] = {}
    for row in found:
        by_trace.setdefault(row["trace_id"], []).append(row)
    return by_trace


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row without its keys and without document ids where no candidate has one."""
    left_out = {"trace_id", "request_id", "span_id", "stage", "stage_name", "convention", "outcome"}
    plain = {name: value for name, value in row.items() if name not in left_out}
    if not any(plain.get("candidate_doc_ids", [])):
        plain.pop("candidate_doc_ids", None)
    return plain


@pytest.mark.parametrize("name", CASES)
def test_a_span_is_the_stage_that_a_reader_sees(world: dict[str, Any], name: str) -> None:
    """Ids, scores, hashes, counts and evidence; what was not said is null, never a guess."""
    case = CASES[name]
    found = world["rag_stages"].get(trace_id(name[:16]), [])
    assert [row["stage"] for row in found] == ([case.stage] if case.stage else [])
    if case.stage:
        assert _plain(found[0]) == dict(case.row)
        assert found[0]["convention"] == name.replace("oi_", "openinference_", 1).split("_")[
            0
        ].replace("mlflow", "genai" if name == "mlflow_stripped" else "mlflow")


@pytest.mark.parametrize("name", PROMPTS)
def test_messages_are_one_prompt_and_one_answer(world: dict[str, Any], name: str) -> None:
    """Messages in order, joined by a blank line; the prompt is whole only where all are there."""
    _, prompt, mode, answer = PROMPTS[name]
    trace = trace_id(f"p_{name}"[:16])
    (row,) = world["rag_prompts"][trace]
    assert (row["prompt"], row["content_mode"], row["is_whole"]) == (
        prompt,
        mode,
        int(mode == "full"),
    )
    (request,) = world["rag_requests"][trace]
    assert request["answer"] == answer


def test_a_template_is_named_by_the_generation(world: dict[str, Any]) -> None:
    """Name and version come from the generation's own keys."""
    (row,) = world["rag_prompts"][trace_id("p_langfuse_messages"[:16])]
    assert (row["template_name"], row["template_version"]) == ("answer", "3")


def test_junk_costs_only_itself(engine: Store, database: str, world: dict[str, Any]) -> None:
    """Spans with junk in every attribute are kept as spans, and no list of theirs is whole."""
    step_into(engine, database)
    assert engine.scalar(
        "select count() from otel_traces where startsWith(SpanName, 'junk')"
    ) == len(list(junk()))
    wrong = engine.query(
        "select stage, evidence, count() from rag_stages final\n"
        "where startsWith(stage_name, 'junk') and evidence in ('empty', 'off')\n"
        "group by all"
    ).result_rows
    assert wrong == []
