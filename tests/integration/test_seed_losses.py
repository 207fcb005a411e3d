"""The published table of 45 misses: spans that carry the ranks in, triage_losses out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from own_database import own_database
from ragotel.store import Store
from ragotel.triage.decisions import write_decision
from ragotel.triage.labels import load_labels
from ragotel.triage.losses import losses_question
from ragotel.triage.references import RequestKey
from ragotel.triage.verdicts import Slice

FACTS = json.loads((Path(__file__).parent / "seed_cases.json").read_text("utf-8"))
CUTOFF = FACTS["loss_stages"]["cutoff"]
QUERIES = FACTS["loss_stages"]["queries"]
ROWS = {row["loss"]: row for row in FACTS["loss_stages"]["rows"]}
SHAPES = {row["population"]: row for row in FACTS["miss_shapes"]["rows"]}
NOON = datetime(2026, 11, 2, 12, 0, tzinfo=timezone.utc)
STAGES = ("lexical", "dense", "fuse", "rerank", "blend", "filter")
LIMITS = {"lexical": 60, "dense": 60, "fuse": 30, "rerank": 30, "blend": 30, "filter": 10}
RANKS: dict[str, tuple[int, ...]] = {
    # The gold's rank in each of STAGES, 0 where the list does not hold it.
    "none": (1, 2, 1, 1, 1, 1),
    "not_retrieved_by_any_leg": (0, 0, 0, 0, 0, 0),
    "fused_beyond_cutoff": (4, 0, 14, 12, 12, 0),
    "fusion_limit": (41, 0, 0, 0, 0, 0),
    "rerank_demoted": (3, 2, 2, 21, 21, 0),
    "blend_demoted": (3, 2, 2, 3, 16, 0),
    "filtered": (1, 1, 1, 2, 2, 0),
}
NEAR: dict[str, tuple[int, ...]] = {
    "fused_beyond_cutoff": (4, 0, 9, 7, 7, 7),
    "rerank_demoted": (3, 2, 2, 10, 9, 9),
    "blend_demoted": (3, 2, 2, 3, 6, 6),
}
"""The same losses where the final list still holds the gold, at rank 6 to 10."""
COLUMNS = (
    *("Timestamp", "TraceId", "SpanId", "ParentSpanId", "SpanName", "ServiceName"),
    *("ScopeName", "SpanAttributes", "Duration", "StatusCode"),
)


def spans_of(
    query: str, ranks: tuple[int, ...], *, chunk: str, doc: str, sibling: str = ""
) -> Iterator[tuple[Any, ...]]:
    """The six stages of one search; *sibling*, another chunk of the document, is always second."""

    def span(stage: str, at_ms: int, **attributes: Any) -> tuple[Any, ...]:
        texts = {
            key.replace("__", "."): value if isinstance(value, str) else json.dumps(value)
            for key, value in attributes.items()
        }
        own = {"rag.schema": "1", "rag.stage": stage, "rag.request.id": query}
        moment = NOON + timedelta(milliseconds=at_ms)
        return (
            *(moment, query, f"{query}-{at_ms}", f"{query}-0", f"rag.{stage}", "notes"),
            *("ragotel", {**own, **texts}, 2_000_000, "Ok"),
        )

    yield span("request", 0, rag__label__id=query)
    for at, (name, rank) in enumerate(zip(STAGES, ranks, strict=True)):
        found = [{"id": f"x{n}#0", "doc_id": f"x{n}.md"} for n in range(LIMITS[name])]
        if sibling:
            found[1] = {"id": sibling, "doc_id": doc}
        if rank:
            found.insert(rank - 1, {"id": chunk, "doc_id": doc})
        is_leg = name in ("lexical", "dense")
        yield span(
            "retrieve" if is_leg else name,
            10 * (at + 1),
            rag__stage__name=name,
            rag__candidates=found[: LIMITS[name]],
            rag__candidates__count=LIMITS[name],
            rag__limit=LIMITS[name],
            **({"gen_ai__data_source__id": "notes", "rag__index__version": "v1"} if is_leg else {}),
        )


def cases(population: str) -> Iterator[tuple[str, tuple[int, ...], bool]]:
    """(loss, ranks, whether another chunk of the document is there) of every query."""
    shape = SHAPES[population]
    near, other = shape["final_rank_6_to_10"], shape["right_document_other_chunk"]
    for loss, row in ROWS.items():
        for _ in range(row[population]):
            if loss in NEAR and near:
                near -= 1
                yield loss, NEAR[loss], False
            else:
                yield loss, RANKS[loss], other > 0
                other -= 1
    for _ in range(QUERIES[population] - sum(row[population] for row in ROWS.values())):
        yield "none", RANKS["none"], False


@pytest.fixture(scope="module")
def searched(engine: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """All 295 queries, labelled by document (golden) and by chunk (probe)."""
    rows, labels = [], []
    for population in QUERIES:
        for number, (_, ranks, has_sibling) in enumerate(cases(population)):
            query = f"{population}-{number}"
            chunk, doc = f"{query}.md#3", f"{query}.md"
            sibling = f"{query}.md#0" if has_sibling else ""
            rows += spans_of(query, ranks, chunk=chunk, doc=doc, sibling=sibling)
            gold = {"doc_ids": [doc]} if population == "golden" else {"chunk_ids": [chunk]}
            label = {"label_id": query, "set": "diagnosis", "population": population}
            labels.append({**label, "question": query, "passages": [gold]})
    path = tmp_path_factory.mktemp("losses") / "labels.jsonl"
    path.write_text("\n".join(json.dumps(label) for label in labels), "utf-8")
    manifest = [
        (f"probe-{n}.md#3", "notes", "v1", f"probe-{n}.md", "load") for n in range(QUERIES["probe"])
    ]
    with own_database(engine):
        engine.insert("otel_traces", rows, COLUMNS)
        engine.insert(
            "rag_index_chunks",
            manifest,
            ("chunk_id", "index_name", "version", "doc_id", "load_id"),
        )
        assert load_labels(engine, [str(path)]).refused == []
        yield engine


@pytest.fixture(scope="module")
def table(searched: Store) -> list[dict[str, Any]]:
    """What `ragotel losses --cutoff 5` asks."""
    return losses_question(Slice(), cutoff=CUTOFF).ask(searched)


def test_losses_by_stage_and_population(table: list[dict[str, Any]]) -> None:
    """Each stage lost as many as the published table says, in each population."""
    found = {
        (row["loss_stage"], row["population"]): row["requests"]
        for row in table
        if row["outcome"] == "miss"
    }
    stated = {
        (loss, population): row[population]
        for loss, row in ROWS.items()
        for population in QUERIES
        if row[population]
    }
    assert found == stated
    assert sum(found.values()) == 45


def test_every_query_is_counted_once(table: list[dict[str, Any]]) -> None:
    """Hits and misses of a population sum to its queries; nothing is undecided."""
    for population, queries in QUERIES.items():
        rows = [row for row in table if row["population"] == population]
        assert {row["outcome"] for row in rows} == {"hit", "miss"}
        assert sum(row["requests"] for row in rows) == queries


@pytest.mark.parametrize("population", QUERIES)
def test_shapes_of_the_misses(table: list[dict[str, Any]], population: str) -> None:
    """Near misses, right documents by another chunk, and nothing of it, as published."""
    misses = [row for row in table if (row["population"], row["outcome"]) == (population, "miss")]
    shape = SHAPES[population]
    assert {
        "misses": sum(row["requests"] for row in misses),
        "final_rank_6_to_10": sum(row["near_misses"] for row in misses),
        "right_document_other_chunk": sum(row["right_document_other_chunk"] for row in misses),
        "nothing_of_the_document": sum(row["nothing_of_the_document"] for row in misses),
    } == {name: shape[name] for name in shape if name != "population"}


def test_the_command_prints_the_table(searched: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ragotel losses --cutoff 5` shows a column per population, and their total."""
    from contextlib import nullcontext

    from ragotel.cli import answering
    from ragotel.cli import losses as command

    monkeypatch.setattr(answering, "ready_store", lambda dsn: nullcontext(searched))
    result = CliRunner().invoke(command.losses, ["--cutoff", "5"], standalone_mode=False)
    lines = result.stdout.splitlines()
    assert [line.split() for line in lines[:11]] == [
        ["lost", "at", "golden", "probe", "total"],
        ["not_retrieved_by_any_leg", "6", "5", "11"],
        ["fusion_limit", "4", "5", "9"],
        ["fused_beyond_cutoff", "8", "3", "11"],
        ["filtered", "1", "1"],
        ["rerank_demoted", "3", "5", "8"],
        ["blend_demoted", "5", "5"],
        ["misses", "27", "18", "45"],
        ["not", "decidable", "0", "0", "0"],
        ["found", "237", "13", "250"],
        ["of", "264", "31", "295"],
    ]
    near, other, nothing = (
        tuple(str(SHAPES[population][name]) for population in QUERIES)
        for name in ("final_rank_6_to_10", "right_document_other_chunk", "nothing_of_the_document")
    )
    assert [tuple(line.split()[-3:-1]) for line in lines[12:]] == [
        ("golden", "probe"),
        ("0", "0"),
        *(near, other, nothing),
        *(("0", "0"), ("0", "0"), ("27", "18")),
    ]


def test_a_fault_of_the_label_is_counted_apart(searched: Store) -> None:
    """What a person decided takes a miss out of the misses; verdict and stage stay as they were."""
    other = next(number for number, (_, _, has_sibling) in enumerate(cases("probe")) if has_sibling)
    key = RequestKey(f"probe-{other}", f"probe-{other}")
    write_decision(searched, f"probe-{other}", "sibling_chunk", key=key, decided_by="reader")
    rows = losses_question(Slice(), cutoff=CUTOFF, population="probe").ask(searched)
    found = {
        (row["outcome"], row["defect"]): sum(
            one["requests"]
            for one in rows
            if (one["outcome"], one["defect"]) == (row["outcome"], row["defect"])
        )
        for row in rows
    }
    assert found == {("hit", ""): 13, ("miss", ""): 17, ("evaluation_defect", "sibling_chunk"): 1}
    write_decision(searched, f"probe-{other}", "none", key=key, decided_by="reader")
    rows = losses_question(Slice(), cutoff=CUTOFF, population="probe").ask(searched)
    assert sum(row["requests"] for row in rows if row["outcome"] == "miss") == 18


def test_doubts_name_the_right_document(searched: Store) -> None:
    """Misses whose document came by another chunk are suspected; no decision is made for anyone."""
    rows = searched.rows("select * from triage_label_doubts where population = 'probe'")
    expected = SHAPES["probe"]["right_document_other_chunk"]
    assert [row["suspicion"] for row in rows].count("right_document") == expected
    assert {row["decided_defect"] for row in rows} <= {None, "none"}


def test_each_miss_has_one_shape_and_all_sum_to_the_set(capsys: pytest.CaptureFixture[str]) -> None:
    """What is in no index is near to nothing; what was found and not sent is no near miss."""
    from ragotel.cli import losses as command

    shape = ("near_misses", "right_document_other_chunk", "nothing_of_the_document")

    def row(outcome: str, loss_stage: str, requests: int, *shapes: int) -> dict[str, Any]:
        return {
            "label_set": "s",
            "population": "",
            "outcome": outcome,
            "loss_stage": loss_stage,
            "requests": requests,
            "defect": "sibling_chunk",
            "beyond_rerank_window": 0,
            **dict(zip(shape, shapes or (0, 0, 0), strict=True)),
        }

    command._print(
        [
            row("hit", "none", 5),
            row("miss", "not_indexed", 3, 0, 2, 0),
            row("miss", "rerank_demoted", 6, 1, 2, 0),
            row("miss", "assemble", 2),
            row("evaluation_defect", "filtered", 1, 0, 0, 1),
            row("unknown", "unknown", 4),
        ]
    )
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines() if line] == [
        *("total", "3", "6", "2", "1", "11", "4", "5", "21"),
        *("total", "3", "1", "2", "0", "2", "3", "11"),
    ]
