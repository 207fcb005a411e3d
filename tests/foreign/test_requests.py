"""Which request a foreign span belongs to: nearest root, several in a trace, ours beside it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from foreign_rows import (
    PROMPTS,
    REQUESTS,
    STAGES,
    Foreign,
    deliver,
    otlp,
    rows,
    span_id,
    trace_id,
)
from small_spans import hits, oi, said

from ragotel.cli import run
from ragotel.errors import InputError
from ragotel.store import Store
from ragotel.store.backfill import backfill, settle
from ragotel.store.foreign_trees import Place, Span, assign
from ragotel.store.otlp_json import decode_json
from ragotel.store.otlp_rows import COLUMNS, FORMAT, TABLE, encode_rows
from ragotel.triage.labels import load_labels
from ragotel.triage.show import show_request


def chain(span: str, question: str, parent: str = "", at: int = 0) -> list[Foreign]:
    """A chain that searches and generates: three spans, the chain last as a batch has it."""
    content = {0: {"id": "d1", "content": f"{question} one"}, 1: {"content": "two"}}
    search = oi("RETRIEVER", {"input.value": question, **hits("retrieval.documents", content)})
    messages = said("llm.input_messages", {0: ("user", f"two {question}")})
    answer = said("llm.output_messages", {0: ("assistant", f"answer to {question}")})
    model = oi("LLM", {**messages, **answer, "llm.token_count.prompt": 9}, name="llm")
    whole = oi("CHAIN", {"input.value": question, "output.value": f"answer to {question}"})
    return [
        replace(search, span=f"{span}r", parent=span, at=at + 1, to=at + 2),
        replace(model, span=f"{span}g", parent=span, at=at + 3, to=at + 8),
        replace(whole, span=span, parent=parent, at=at, to=at + 9),
    ]


def keys(store: Store) -> dict[str, list[tuple[str, str]]]:
    """(span, request) of every row, by table."""
    tables = {"rag_requests": REQUESTS, "rag_stages": STAGES, "rag_prompts": PROMPTS}
    return {
        table: sorted(
            (row["span_id"].lstrip("0"), row.get("request_id", ""))
            for row in rows(store, table, columns)
        )
        for table, columns in tables.items()
    }


def hexed(*names: str) -> list[str]:
    return [span_id(name).lstrip("0") for name in names]


def test_one_request_of_a_trace_needs_no_id(store: Store, tmp_path: Path) -> None:
    """The chain below a server's span is the request, wherever the trace came from."""
    server = Foreign("POST /ask", span="h", parent="x", kind="SPAN_KIND_SERVER", to=20)
    deliver(store, tmp_path, [*chain("c", "q?", parent="h"), server])
    c, r, g = hexed("c", "cr", "cg")
    assert keys(store) == {
        "rag_requests": [(c, "")],
        "rag_stages": sorted([(r, ""), (g, "")]),
        "rag_prompts": [(g, "")],
    }


def test_the_parts_of_a_trace_may_arrive_one_by_one(store: Store, tmp_path: Path) -> None:
    """Each span in a batch of its own, the root last: the rows are those of one batch."""
    plain = Foreign("job", span="j", to=20)
    for number, span in enumerate([*chain("c", "q?", parent="j"), plain]):
        deliver(store, tmp_path, [span], str(number))
    c, r, g = hexed("c", "cr", "cg")
    assert keys(store)["rag_requests"] == [(c, "")]
    assert keys(store)["rag_stages"] == sorted([(r, ""), (g, "")])


def test_a_batch_is_enough_where_it_holds_the_root(store: Store) -> None:
    """Read at insert alone, below a root that no convention wrote, one chain is the request."""
    job = Foreign("job", span="j", to=20)
    insert_only(store, [*chain("c", "q?", parent="j"), job])
    assert keys(store)["rag_requests"] == [(*hexed("c"), "")]
    (request,) = rows(store, "rag_requests", REQUESTS)
    assert (request["query"], request["answer"]) == ("q?", "answer to q?")


def test_requests_of_one_batch_are_not_mixed(store: Store) -> None:
    """Read at insert alone, two chains have ids of their own and no stages yet."""
    job = Foreign("job", span="j", to=50)
    insert_only(store, [*chain("a", "x?", "j"), *chain("b", "y?", "j", at=20), job])
    a, b = hexed("a", "b")
    assert keys(store)["rag_requests"] == [(a, span_id("a")), (b, span_id("b"))]
    assert {request for _, request in keys(store)["rag_stages"]} == {""}


def test_an_agent_s_answer_is_what_it_said_last(store: Store, tmp_path: Path) -> None:
    """A search that a tool did belongs to the agent; its messages begin with the question."""
    said_so_far = [{"role": "user", "content": "q?"}, {"type": "ai", "content": "a!"}]
    agent = oi(
        "AGENT",
        {
            "input.value": json.dumps({"messages": said_so_far[:1]}),
            "output.value": json.dumps({"messages": said_so_far}),
        },
    )
    search = oi(
        "RETRIEVER", {"input.value": "sub", **hits("retrieval.documents", {0: {"id": "d"}})}
    )
    spans = [
        replace(search, span="r", parent="t", at=3, to=4),
        replace(oi("TOOL", {}), span="t", parent="g", at=2, to=5),
        replace(agent, span="g", to=9),
    ]
    deliver(store, tmp_path, spans)
    (request,) = rows(store, "rag_requests", REQUESTS)
    assert (request["query"], request["answer"]) == ("q?", "a!")
    assert keys(store)["rag_stages"] == [(*hexed("r"), "")]


def test_several_requests_of_a_trace_are_told_apart(store: Store, tmp_path: Path) -> None:
    """Two chains under one job are two requests; a second look changes nothing."""
    job = Foreign("evaluate", span="j", to=50)
    deliver(store, tmp_path, [*chain("a", "x?", "j"), *chain("b", "y?", "j", at=20), job])
    a, ar, ag, b, br, bg = hexed("a", "ar", "ag", "b", "br", "bg")
    long_a, long_b = span_id("a"), span_id("b")
    assert keys(store) == {
        "rag_requests": [(a, long_a), (b, long_b)],
        "rag_stages": sorted([(ar, long_a), (ag, long_a), (br, long_b), (bg, long_b)]),
        "rag_prompts": sorted([(ag, long_a), (bg, long_b)]),
    }
    queries = [row["query"] for row in rows(store, "rag_requests", REQUESTS)]
    assert queries == ["x?", "y?"]
    assert backfill(store).rewritten_count == 0


def test_beside_our_own_record_nothing_counts_twice(store: Store, tmp_path: Path) -> None:
    """A trace of ours has no second request by another instrumentation, whichever came first."""
    own = {"rag.schema": 1, "rag.request.id": "r-1", "rag.query": "q?"}
    request = Foreign("answer", {**own, "rag.stage": "request"}, "ragotel", span="o", to=20)
    listed = '[{"id":"d1","score":0.5}]'
    search = Foreign(
        "search",
        {**own, "rag.stage": "retrieve", "gen_ai.retrieval.documents": listed},
        "ragotel",
        span="p",
        parent="o",
    )
    deliver(store, tmp_path, chain("c", "q?"), "theirs")
    deliver(store, tmp_path, [search, request], "ours")
    label = {"label_id": "l", "question": "q?", "passages": [{"chunk_ids": ["d1"]}]}
    (tmp_path / "labels.jsonl").write_text(json.dumps(label) + "\n", "utf-8")
    load_labels(store, [str(tmp_path / "labels.jsonl")])
    labelled = store.query("select request_id from rag_labelled_requests").result_rows
    assert labelled == [("r-1",)]
    settle(store, [row["trace_id"] for row in rows(store, "rag_requests", REQUESTS)])
    assert [row["convention"] for row in rows(store, "rag_requests", REQUESTS)] == ["ragotel"]


def test_a_call_that_two_instrumentations_wrote_counts_once(store: Store, tmp_path: Path) -> None:
    """The client's span within the framework's has the same tokens: one generation."""
    twice = oi(
        "LLM",
        {**said("llm.input_messages", {0: ("user", "two q?")}), "llm.token_count.prompt": 9},
        "openinference.instrumentation.openai",
    )
    inner = replace(twice, span="t", parent="c", at=4, to=7)
    other = replace(inner, span="u", attributes={**inner.attributes, "llm.token_count.prompt": 8})
    deliver(store, tmp_path, [inner, other, *chain("c", "q?")])
    r, g, u = hexed("cr", "cg", "u")
    assert keys(store)["rag_stages"] == sorted([(r, ""), (g, ""), (u, "")])


def test_a_backfill_derives_what_was_there_before(store: Store) -> None:
    """Without the view that reads them at insert, spans stay spans until they are read."""
    store.command("drop table rag_foreign_mv")
    insert_only(store, chain("c", "q?"))
    assert keys(store)["rag_stages"] == []
    first = backfill(store, conventions=["openinference"])
    assert (first.trace_count, first.rewritten_count) == (1, 1)
    c, r, g = hexed("c", "cr", "cg")
    assert keys(store)["rag_stages"] == sorted([(r, ""), (g, "")])
    assert keys(store)["rag_requests"] == [(c, "")]
    assert backfill(store).rewritten_count == 0
    assert backfill(store, conventions=["mlflow"]).trace_count == 0


def insert_only(store: Store, spans: list[Foreign]) -> None:
    """Insert spans without the look at their traces that a load ends with."""
    decoded = decode_json(otlp(spans).encode())
    store.client.raw_insert(
        TABLE,
        column_names=list(COLUMNS),
        insert_block=b"".join(encode_rows(decoded.rows)),
        fmt=FORMAT,
    )


def test_a_label_gives_its_verdict_and_show_draws_it(store: Store, tmp_path: Path) -> None:
    """A chunk that was ranked and whose text is not in the prompt is a context problem."""
    deliver(store, tmp_path, chain("c", "q?"))
    lines = [
        {
            "label_id": "ranked",
            "set": "a",
            "question": "q?",
            "passages": [{"chunk_ids": ["d1"], "spans": ["q? one"]}],
        },
        {"label_id": "sent", "set": "b", "question": "q?", "passages": [{"spans": ["two"]}]},
        {
            "label_id": "elsewhere",
            "set": "c",
            "question": "q?",
            "passages": [{"chunk_ids": ["d9"]}],
        },
        {"label_id": "by-id", "set": "d", "question": "q?", "passages": [{"chunk_ids": ["d1"]}]},
        {"label_id": "goldless", "set": "e", "question": "q?"},
    ]
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    load_labels(store, [str(path)])
    verdicts = {
        row["label_id"]: row
        for row in store.rows("select * from triage_requests order by label_id")
    }
    assert {name: (row["bucket"], row["missing"]) for name, row in verdicts.items()} == {
        "ranked": ("context_problem", []),
        "sent": ("ungraded", []),
        "elsewhere": ("unknown", ["index_name"]),
        "by-id": ("unknown", ["sent_ids"]),
        "goldless": ("unknown", ["gold"]),
    }
    picture = show_request(store, trace_id("1"))
    assert {verdict["label_id"]: verdict["owner"] for verdict in picture.verdicts} == {
        "ranked": "prompt assembly",
        "sent": "evaluation",
        "elsewhere": "instrumentation",
        "by-id": "instrumentation",
        "goldless": "the label's owner",
    }
    assert [entry["convention"] for entry in picture.lists] == ["openinference"]
    assert picture.prompt is not None
    assert picture.prompt["prompt"] == "two q?"


def spans(*entries: tuple[str, str, str]) -> list[Span]:
    return [
        Span(
            name,
            parent,
            stage == "server",
            "",
            "" if stage in ("server", "plain") else stage,
            at,
            at + 1,
        )
        for at, (name, parent, stage) in enumerate(entries)
    ]


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (spans(("a", "", "generate")), {"a": ("", True)}),
        (
            spans(("a", "lost", "retrieve"), ("b", "lost", "generate")),
            {"a": ("", False), "b": ("", True)},
        ),
        (
            spans(
                ("s", "", "server"),
                ("a", "s", "chain"),
                ("b", "a", "generate"),
                ("c", "s", "chain"),
                ("r", "c", "retrieve"),
                ("g", "c", "generate"),
            ),
            {
                "a": ("", False),
                "b": ("", False),
                "c": ("", True),
                "r": ("", False),
                "g": ("", False),
            },
        ),
        (
            spans(
                ("a", "", "chain"),
                ("g", "a", "generate"),
                ("s", "a", "server"),
                ("c", "s", "chain"),
                ("r", "c", "retrieve"),
            ),
            {"a": ("a", True), "g": ("a", False), "c": ("c", True), "r": ("c", False)},
        ),
        ([], {}),
    ],
    ids=[
        "a lone call",
        "parent lost",
        "condense, then answer",
        "service behind a service",
        "nothing",
    ],
)
def test_a_span_belongs_to_its_nearest_request(
    tree: list[Span], expected: dict[str, tuple[str, bool]]
) -> None:
    """Entry spans bound a request; a chain that searches and generates is one."""
    assert assign(tree) == {name: Place(*place) for name, place in expected.items()}


def test_a_circle_of_parents_ends() -> None:
    """A broken sender's spans have a place each."""
    assert set(assign(spans(("a", "b", "chain"), ("b", "a", "chain")))) == {"a", "b"}


def test_an_unknown_convention_is_named(store: Store) -> None:
    """With those that there are."""
    with pytest.raises(InputError, match="no convention 'x'; there are openinference, genai"):
        backfill(store, conventions=["x"])


def test_the_command_says_what_it_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A store without a schema is named with the command that makes one."""
    assert run(["backfill", "--store", f"chdb://{tmp_path}/none"]) == 1
    assert "ragotel init" in capsys.readouterr().err
