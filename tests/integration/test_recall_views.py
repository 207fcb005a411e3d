"""Recall as a ceiling: recorded lists in; legs, ceilings, drift, flags and fusion by rank out."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import datetime, timedelta, timezone
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from own_database import own_database
from ragotel.store import Store
from ragotel.triage import recall as questions
from ragotel.triage.grades import load_grades
from ragotel.triage.labels import load_labels
from ragotel.triage.verdicts import Slice

NOON = datetime(2026, 11, 2, 12, 0, tzinfo=timezone.utc)
COLUMNS = (
    *("Timestamp", "TraceId", "SpanId", "ParentSpanId", "SpanName", "ServiceName"),
    *("ScopeName", "SpanAttributes", "Duration", "StatusCode"),
)
EVERYTHING = Slice()


class Written:
    """Requests as span rows, and what is told about them."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.labels: list[dict[str, Any]] = []
        self.grades: list[dict[str, Any]] = []
        self._numbers = count(1)

    def ask(
        self,
        *stages: tuple[str, str, list[str], dict[str, Any]],
        gold: str,
        label_set: str,
        service: str = "notes",
        day: int = 0,
        grade: str = "",
    ) -> str:
        """One request with a label of its own; *stages* are (stage, name, ids, attributes)."""
        query = f"q{next(self._numbers)}"
        moment = NOON + timedelta(days=day)
        told: list[tuple[str, dict[str, Any]]] = [("request", {"rag.label.id": query})]
        for stage, name, ids, more in stages:
            told.append(
                (
                    stage,
                    {
                        "rag.stage.name": name,
                        "rag.candidates": [{"id": id} for id in ids],
                        "rag.candidates.count": len(ids),
                        **more,
                    },
                )
            )
        for at, (stage, attributes) in enumerate(told):
            texts = {
                key: value if isinstance(value, str) else json.dumps(value)
                for key, value in attributes.items()
            }
            own = {"rag.schema": "1", "rag.stage": stage, "rag.request.id": query}
            self.rows.append(
                (
                    *(moment + timedelta(milliseconds=10 * at), query, f"{query}-{at}"),
                    *("" if at == 0 else f"{query}-0", f"rag.{stage}", service, "ragotel"),
                    *({**own, **texts}, 2_000_000, "Ok"),
                )
            )
        passages = [{"chunk_ids": [gold]}]
        label = {"label_id": query, "set": label_set, "question": query, "passages": passages}
        self.labels.append(label)
        if grade:
            self.grades.append({"request_id": query, "label_id": query, "grade": grade})
        return query

    def into(self, store: Store, folder: Path) -> None:
        store.insert("otel_traces", self.rows, COLUMNS)
        for name, lines, load in (
            ("labels", self.labels, load_labels),
            ("grades", self.grades, load_grades),
        ):
            path = folder / f"{name}.jsonl"
            path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
            assert load(store, [str(path)]).refused == []


def leg(name: str, ids: list[str], **more: Any) -> tuple[str, str, list[str], dict[str, Any]]:
    return ("retrieve", name, ids, {"gen_ai.data_source.id": "notes", **more})


def filler(prefix: str, length: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(length)]


def with_gold(prefix: str, length: int, rank: int, gold: str = "gold") -> list[str]:
    """A list of *length* with the gold passage at *rank*; 0: without it."""
    ids = filler(prefix, length)
    if rank:
        ids[rank - 1] = gold
    return ids


def fuse_by_rank(lists: list[list[str]], k: int) -> dict[str, float]:
    """Reciprocal rank fusion: each list adds 1 / (k + rank)."""
    scores: dict[str, float] = {}
    for ids in lists:
        for rank, one in enumerate(ids, 1):
            scores[one] = scores.get(one, 0.0) + 1 / (k + rank)
    return scores


RANDOM = random.Random(7)
POOL = filler("p", 30)
FUSED = [
    [RANDOM.sample(POOL, RANDOM.randint(1, 20)) for _ in range(RANDOM.randint(1, 3))]
    for _ in range(60)
]
"""Legs of sixty requests; the gold passage of each is p0."""


def write_legs(written: Written) -> None:
    """Ten requests: three golds by the dense leg alone, two by the lexical alone, four by both."""
    for dense, lexical in ((1, 0), (4, 0), (9, 0), (0, 1), (0, 6), *[(2, 2)] * 4, (0, 0)):
        legs = [with_gold("d", 10, dense), with_gold("l", 10, lexical)]
        scores = fuse_by_rank(legs, 60)
        fused = sorted(scores, key=lambda one: -scores[one])[:10]
        if "gold" not in fused and (dense or lexical):
            fused[-1] = "gold"
        written.ask(
            leg("dense", legs[0]),
            leg("lexical", legs[1]),
            ("fuse", "fuse", fused, {"rag.fuse.method": "rrf"}),
            ("assemble", "prompt", fused[:3], {}),
            gold="gold",
            label_set="legs",
        )


def write_ceilings(written: Written) -> None:
    """Of ten questions seven are found and four are sent; `lucky` gets five right all the same."""
    for service, right in (("careful", 4), ("lucky", 5)):
        for number in range(10):
            found = with_gold("c", 10, 2 if number < 4 else 7 if number < 7 else 0)
            written.ask(
                leg("dense", found),
                ("assemble", "prompt", found[:3], {}),
                gold="gold",
                label_set="ceilings",
                service=service,
                grade="correct" if number < right else "wrong",
            )


def write_days(written: Written) -> None:
    """Four days of one request each, then the search doubles its k and the prompt is cut shorter.

    At first the gold stands at rank 2 of 10 and three are sent; then at rank 9 of 20, of which
    three are sent.
    """
    for day in range(6):
        is_raised = day >= 4
        found = with_gold("k", 20 if is_raised else 10, 9 if is_raised else 2)
        written.ask(
            leg("dense", found, **{"gen_ai.retrieval.top_k": len(found)}),
            ("assemble", "prompt", found[:3], {}),
            gold="gold",
            label_set="days",
            service="growing",
            day=day,
        )


def write_rankers(written: Written) -> None:
    """One request for each way of reranking; all but the last show one flag."""
    ten = with_gold("r", 10, 2)
    half = ten[:5]
    shapes = {
        "idle": [("rerank", "rerank", ten, {"rag.rerank.effect": "identity"})],
        "deep": [("rerank", "rerank", half, {"rag.limit": 50, "rag.candidates.in_count": 10})],
        "deep-uncounted": [("rerank", "rerank", half, {"rag.limit": 11})],
        "late": [("assemble", "prompt", half, {}), ("rerank", "rerank", half, {})],
        # A second search begins anew: its reranker has a whole list again.
        "agent": [
            ("assemble", "prompt", half, {}),
            ("generate", "think", [], {}),
            leg("dense", ten),
            ("rerank", "rerank", half, {"rag.limit": 5, "rag.candidates.in_count": 10}),
        ],
    }
    for name, stages in shapes.items():
        written.ask(
            leg("dense", ten),
            *stages,
            ("assemble", "prompt", half, {}),
            gold="gold",
            label_set="rankers",
            service=name,
        )


@pytest.fixture(scope="module")
def asked(engine: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    written = Written()
    write_legs(written)
    write_ceilings(written)
    write_days(written)
    write_rankers(written)
    for legs in FUSED:
        scores = fuse_by_rank(legs, 60)
        fused = sorted(scores, key=lambda one: -scores[one])
        named = [leg(f"leg{number}", ids) for number, ids in enumerate(legs)]
        written.ask(
            *named,
            ("fuse", "fuse", fused, {"rag.fuse.method": "rrf"}),
            gold="p0",
            label_set="fused",
        )
    cut = [{"id": id} for id in filler("t", 3)]
    written.ask(
        leg("dense", with_gold("t", 5, 1)),
        leg("lexical", [], **{"rag.candidates": cut, "rag.candidates.count": 50}),
        ("fuse", "fuse", with_gold("t", 5, 1), {}),
        gold="gold",
        label_set="cut",
    )
    with own_database(engine):
        written.into(engine, tmp_path_factory.mktemp("recall"))
        yield engine


def test_fusion_by_rank_as_it_would_have_been(asked: Store) -> None:
    """For each constant the view gives the places that the formula gives, ties as a range."""
    found = {
        (row["label_id"], row["rrf_k"]): (
            row["what_if_rank"],
            row["what_if_rank_last"],
            row["best_leg_rank"],
        )
        for row in asked.rows("select * from what_if_rrf where label_set = 'fused'")
    }
    labels = [
        row["label_id"]
        for row in asked.rows(
            "select label_id from rag_labels where label_set = 'fused' "
            "order by toUInt32(substring(label_id, 2))"
        )
    ]
    expected = {}
    for label, legs in zip(labels, FUSED, strict=True):
        ranks = [ids.index("p0") + 1 for ids in legs if "p0" in ids]
        for k in questions.RRF_KS:
            scores = {one: round(score, 12) for one, score in fuse_by_rank(legs, k).items()}
            own = scores.get("p0")
            places = (
                (
                    1 + sum(score > own for score in scores.values()),
                    sum(score >= own for score in scores.values()),
                )
                if own is not None
                else (None, None)
            )
            expected[label, k] = (*places, min(ranks, default=None))
    assert found == expected


def test_a_cut_leg_leaves_no_what_if(asked: Store) -> None:
    """Where a leg's list is not whole nobody can say what fusion would have given."""
    rows = asked.rows("select * from what_if_rrf where label_set = 'cut'")
    assert {(r["what_if_rank"], r["what_if_rank_last"], r["recorded_rank"]) for r in rows} == {
        (None, None, 1)
    }


def test_what_each_leg_brings_by_itself(asked: Store) -> None:
    """Recall of the leg alone, what only it has, and what its switching off would lose."""
    rows = questions.legs_question(Slice(label_set="legs"), k=5).ask(asked)
    names = ("leg", "passages", "recall", "only_this_leg", "union_recall", "recall_without")
    assert [{name: row[name] for name in (*names, "lost_if_off")} for row in rows] == [
        {
            "leg": "dense",
            "passages": 10,
            "recall": 0.6,
            "only_this_leg": 2,
            "union_recall": 0.7,
            "recall_without": 0.5,
            "lost_if_off": 3,
        },
        {
            "leg": "lexical",
            "passages": 10,
            "recall": 0.5,
            "only_this_leg": 1,
            "union_recall": 0.7,
            "recall_without": 0.6,
            "lost_if_off": 2,
        },
    ]


def test_accuracy_beside_its_ceiling(asked: Store) -> None:
    """Seven of ten found, four sent: five right answers pass the ceiling, four do not."""
    rows = questions.ceilings_question(Slice(label_set="ceilings")).ask(asked)
    names = ("ceiling_candidates", "ceiling_prompt", "accuracy", "graded", "passes_ceiling")
    assert {
        row["service_name"]: [row[name] for name in (*names, "right_without_gold")] for row in rows
    } == {
        "careful": [0.7, 0.4, 0.4, 10, False, 0],
        "lucky": [0.7, 0.4, 0.5, 10, True, 1],
    }


def test_missing_buried_and_first(asked: Store) -> None:
    """The classes of the list that the reranker was given sum to all passages."""
    rows = questions.classes_question(Slice(label_set="ceilings", service="lucky")).ask(asked)
    assert [[row[name] for name in ("missing", "buried", "top", "passages")] for row in rows] == [
        [3, 7, 0, 10]
    ]


def test_recall_at_ten_and_at_k_prompt_drift_apart(asked: Store) -> None:
    """recall@10 stays at one while nothing of it is sent any more: the difference says so."""
    rows = questions.drift_question(Slice(label_set="days")).ask(asked)
    names = ("recall_at_10", "recall_at_k_prompt", "mean_k_prompt", "difference", "change")
    assert [[row[name] for name in names] for row in rows] == [
        [1.0, 1.0, 3.0, 0.0, None],
        [1.0, 1.0, 3.0, 0.0, 0.0],
        [1.0, 1.0, 3.0, 0.0, 0.0],
        [1.0, 1.0, 3.0, 0.0, 0.0],
        [1.0, 0.0, 3.0, 1.0, 1.0],
        [1.0, 0.0, 3.0, 1.0, 0.8],
    ]


def test_flags_of_ranking(asked: Store) -> None:
    """Each way of reranking shows its own flag and no other; a raised k is seen on both days."""
    flagged: dict[str, dict[str, int]] = {}
    for row in questions.flags_question(EVERYTHING).ask(asked):
        if row["requests"]:
            flagged.setdefault(row["service_name"], {})[row["flag"]] = row["requests"]
    assert flagged == {
        "idle": {"reranker_idle": 1},
        "deep": {"reranker_deeper_than_its_list": 1},
        "deep-uncounted": {"reranker_deeper_than_its_list": 1},
        "late": {"reranked_after_truncation": 1},
        "growing": {"k_raised_without_recall": 2},
    }


def test_recall_by_document_takes_the_manifest_s_documents(asked: Store) -> None:
    """Candidates that name no document take the one of their chunk; k counts documents."""
    query = asked.scalar("select min(label_id) from rag_labels where label_set = 'rankers'")
    chunks = [(id, "notes", "v1", f"doc-{id[0]}", "load") for id in with_gold("r", 10, 2)]
    asked.insert(
        "rag_index_chunks", chunks, ("chunk_id", "index_name", "version", "doc_id", "load_id")
    )
    found = asked.rows(
        "select document_rank, is_absent from rag_document_ranks "
        "where label_id = {query:String} and stage = 'retrieve'",
        {"query": query},
    )
    # One document of nine chunks, the gold chunk's own after the first of them.
    assert found == [{"document_rank": 2, "is_absent": 0}]
    question = questions.recall_question(
        Slice(label_set="rankers", service="idle"), grain="document", k=2
    )
    rows = {row["stage"]: (row["recall"], row["requests"]) for row in question.ask(asked)}
    assert rows == {"retrieve": (1.0, 1), "rerank": (1.0, 1), "assemble": (1.0, 1)}


def command(store: Store, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> list[str]:
    from ragotel.cli import answering, recall

    monkeypatch.setattr(answering, "ready_store", lambda dsn: nullcontext(store))
    result = CliRunner().invoke(recall.recall, [*arguments], standalone_mode=False)
    assert result.exception is None, result.exception
    return result.stdout.splitlines()


def test_services_are_never_pooled(asked: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where several services answered, the table has a row and a column for each."""
    lines = command(asked, monkeypatch, "--set", "ceilings", "--k", "5")
    assert [line.split()[:5] for line in lines] == [
        ["service", "stage", "name", "k", "recall@k"],
        ["careful", "retrieve", "dense", "5", "0.400"],
        ["careful", "assemble", "prompt", "5", "0.400"],
        ["lucky", "retrieve", "dense", "5", "0.400"],
        ["lucky", "assemble", "prompt", "5", "0.400"],
    ]


def test_the_command_prints_every_table(asked: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ceiling says where it is passed, fusion by rank what it gains and loses."""
    ceiling = command(asked, monkeypatch, "--ceiling", "--set", "ceilings")
    assert ceiling[0].split()[:10] == [
        *("service", "set", "index", "found", "of", "sent", "of", "right", "of", "requests"),
    ]
    assert ceiling[-1].split()[:10] == [
        *("lucky", "ceilings", "0.700", "10", "0.400", "10", "0.500", "10", "10", "1"),
    ]
    assert ceiling[-1].endswith(
        "of 10 graded and read 5 were right and 4 had their gold: memory of the model, or wrong "
        "labels"
    )
    rrf = command(asked, monkeypatch, "--what-if-rrf", "--set", "fused", "--k", "5")
    recorded, what_if = rrf[-1].split()[2:4]
    assert (rrf[0].split()[:3], recorded >= what_if) == (["rrf", "k", "k"], True)
    flags = command(asked, monkeypatch, "--flags", "--service", "late")
    assert flags[1].split() == ["reranked_after_truncation", "1", "1", "100.0", "%", "q40"]
    assert "could no longer bring back" in flags[-1]
