"""Miss rates by tag, and flags of the search: decorated functions in, the tables out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import ragotel
from own_database import own_database
from ragotel.store import Store
from ragotel.triage.labels import load_labels
from ragotel.triage.recall import flags_question, slices_question
from ragotel.triage.verdicts import Slice
from seed_service import serving

FACTS = json.loads((Path(__file__).parent / "seed_cases.json").read_text("utf-8"))
GATED = FACTS["miss_shapes"]["gated_queries"]
CUTOFF = FACTS["loss_stages"]["cutoff"]
SECRET = "The board sells the company in May."


def search(question: str, k: int = 10) -> list[dict[str, Any]]:
    """Ten passages; the question says at which rank its own one stands."""
    name, rank = question.split("@")
    hits = [{"id": f"{name}-{n}", "score": 1 - n / 100} for n in range(k)]
    if int(rank):
        hits[int(rank) - 1] = {"id": f"{name}-gold", "score": 1 - int(rank) / 100}
    return hits


find = ragotel.retrieve(leg="dense", index="notes", index_version="v1")(search)


@ragotel.request
def by_parameter(question: str, tags: dict[str, Any]) -> str:
    """Its tags stand in a parameter that is called so."""
    return f"{len(find(question))} found"


@ragotel.request
def by_context(question: str) -> str:
    return f"{len(find(question))} found"


def ask(number: int, is_missed: bool, tags: dict[str, Any] | list[str]) -> dict[str, Any]:
    """Ask one question, tagged in one of the two ways, and make its label."""
    rank = (8 if number % 2 else 0) if is_missed else number % CUTOFF + 1
    question = f"n{number}@{rank}"
    if number % 3:
        by_parameter(question, tags)  # type: ignore[arg-type]
    else:
        with ragotel.context(tags=tags):
            by_context(question)
    passages = [{"chunk_ids": [f"n{number}-gold"]}]
    return {"label_id": f"n{number}", "set": "queries", "question": question, "passages": passages}


@pytest.fixture(scope="module")
def asked(engine: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """All 295 queries: the gated ones say so as a mapping or in a list, the others otherwise."""
    folder = tmp_path_factory.mktemp("queries")
    labels = []
    with own_database(engine):
        with serving(engine, folder):
            for number in range(GATED["gated"]):
                tags: dict[str, Any] | list[str] = ["gated"] if number % 2 else {"gated": True}
                labels.append(ask(number, number < GATED["gated_missed"], tags))
            for number in range(GATED["other"]):
                tags = ["plan=team"] if number % 2 else {"plan": "free"}
                labels.append(ask(1000 + number, number < GATED["other_missed"], tags))
        path = folder / "labels.jsonl"
        path.write_text("".join(json.dumps(label) + "\n" for label in labels), "utf-8")
        assert load_labels(engine, [str(path)]).refused == []
        yield engine


def test_gated_queries_are_missed_more_often(asked: Store) -> None:
    """22 of 106 gated queries are missed (20.8 %), 23 of 189 others (12.2 %)."""
    rows = slices_question(Slice(label_set="queries"), "gated", cutoff=CUTOFF).ask(asked)
    assert [
        (row["tag_value"], row["misses"], row["requests"], round(100 * row["miss_rate"], 1))
        for row in rows
    ] == [
        ("true", GATED["gated_missed"], GATED["gated"], GATED["percent"][0]),
        ("", GATED["other_missed"], GATED["other"], GATED["percent"][1]),
    ]


def test_the_interval_of_a_miss_rate(asked: Store) -> None:
    """22 of 106 is between 14.1 and 29.4 percent (Wilson, 95 %)."""
    row = slices_question(Slice(), "gated", cutoff=CUTOFF).ask(asked)[0]
    assert [round(100 * row[f"miss_rate_{end}"], 1) for end in ("low", "high")] == [14.1, 29.4]


def test_the_command_prints_the_slices(asked: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ragotel recall --by-tag gated --k 5` shows both rates; an unknown tag names the known."""
    from ragotel.cli import answering, recall

    monkeypatch.setattr(answering, "ready_store", lambda dsn: nullcontext(asked))
    result = CliRunner().invoke(recall.recall, ["--by-tag", "gated", "--k", "5"])
    assert [line.split()[:5] for line in result.stdout.splitlines()] == [
        ["value", "missed", "of", "miss", "rate"],
        ["true", "22", "106", "20.8", "%"],
        ["(without)", "23", "189", "12.2", "%"],
    ]
    result = CliRunner().invoke(recall.recall, ["--by-tag", "nobody"])
    assert result.stderr == (
        "No labelled request is like that and has the tag 'nobody'; tags: 'plan', 'gated'.\n"
    )


def hits_of(*ids: str, text: str = "") -> list[dict[str, Any]]:
    return [{"id": id, "score": 0.5, "text": text or f"This is page {id}."} for id in ids]


def flagged(store: Store, folder: Path, *, method: str, searched_filter: str | None) -> set[str]:
    """Run a service with two legs, a fusion of *method* and a permission filter; its flags."""
    forbidden = hits_of("secret", text=SECRET)

    @ragotel.retrieve(leg="dense", index="notes", where=searched_filter)
    def dense(question: str) -> list[dict[str, Any]]:
        return hits_of("a", "b") + forbidden

    @ragotel.retrieve(leg="lexical", index="notes", where=searched_filter)
    def lexical(question: str) -> list[dict[str, Any]]:
        return hits_of("b", "c")

    @ragotel.fuse(method=method)
    def fuse(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return list({hit["id"]: hit for hit in first + second}.values())

    @ragotel.filter(reason="permission")
    def allow(hits: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [hit for hit in hits if hit["id"] != "secret"]

    @ragotel.request
    def answer(question: str) -> str:
        return f"{len(allow(fuse(dense(question), lexical(question))))} pages"

    with serving(store, folder):
        answer("What is new?")
    rows = flags_question(Slice()).ask(store)
    assert {row["checked"] for row in rows} == {1}
    return {row["flag"] for row in rows if row["requests"]}


def test_scores_joined_by_weight_and_permissions_after_the_search(
    store: Store, tmp_path: Path
) -> None:
    """Both are flagged; what the filter took out has an id in the record, its text nowhere."""
    found = flagged(store, tmp_path, method="weighted_sum", searched_filter=None)
    assert found == {"fused_by_weighted_scores", "permission_filtered_after_retrieval"}
    dropped = store.rows("select dropped_ids, drop_reasons from rag_stages where stage = 'filter'")
    assert dropped == [{"dropped_ids": ["secret"], "drop_reasons": ["permission"]}]
    texts = store.scalar("select groupArray(text) from rag_chunks")
    assert (SECRET in texts, len(texts)) == (False, 3)
    spans = store.scalar("select toString(groupArray(SpanAttributes)) from otel_traces")
    assert SECRET not in spans


def test_fusion_by_rank_and_filtered_searches_are_no_finding(store: Store, tmp_path: Path) -> None:
    """Ranks joined by their reciprocals and a filter inside of the search show nothing."""
    found = flagged(store, tmp_path, method="weighted_rrf", searched_filter="team = 'a'")
    assert found == set()
