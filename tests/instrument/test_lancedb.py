"""LanceDB: vector, full-text and hybrid queries of a table on disk, sync and async."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lancedb")

import lancedb
from corpus import QUESTION, TEXTS, embed, nearest
from laws import Patched, assert_fails, ids, kinds, same_result, scores

from ragotel.testing import Recorded


def table(folder: Path) -> Any:
    made = lancedb.connect(folder / "lance").create_table(
        "docs",
        [{"chunk_id": k, "text": t, "vector": embed(t)} for k, t in TEXTS.items()],
        mode="overwrite",
    )
    made.create_fts_index("text")
    return made


def test_a_vector_query_is_a_retrieval(recorded: Recorded, tmp_path: Path) -> None:
    """Recorded when it is run: ids, distances with their direction, texts, k, filter, table."""
    found = table(tmp_path).search(embed(QUESTION)).metric("cosine").where("chunk_id != 'x'")
    assert kinds(recorded) == []
    found.limit(3).to_list()
    assert kinds(recorded) == ["retrieve"]
    stage = recorded.stage("retrieve")
    assert ids(stage) == [key for key, _ in nearest(QUESTION, 3)]
    assert scores(stage) == pytest.approx([1 - s for _, s in nearest(QUESTION, 3)], abs=1e-6)
    assert stage["rag.score.kind"] == "cosine_distance"
    assert stage["rag.score.higher_is_better"] is False
    assert stage["gen_ai.data_source.id"] == "docs"
    assert stage["gen_ai.retrieval.top_k"] == 3
    assert stage["rag.filter"] == "chunk_id != 'x'"
    assert set(stage["rag.chunks"].values()) == {TEXTS[key] for key in ids(stage)}


def test_a_text_query_is_a_retrieval(recorded: Recorded, tmp_path: Path) -> None:
    """BM25 scores: the higher the better."""
    found = table(tmp_path).search("hardware", query_type="fts").limit(2).to_pandas()
    stage = recorded.stage("retrieve")
    assert ids(stage) == list(found["chunk_id"])
    assert scores(stage) == pytest.approx(list(found["_score"]))
    assert (stage["rag.score.kind"], stage["rag.score.higher_is_better"]) == ("bm25", True)
    assert stage["gen_ai.retrieval.query.text"] == "hardware"


def test_a_hybrid_query_has_its_legs(recorded: Recorded, tmp_path: Path) -> None:
    """The fused list is the query's; both legs are stages inside of it."""
    query = table(tmp_path).search(query_type="hybrid").vector(embed(QUESTION)).text("hardware")
    found = query.limit(3).to_list()
    assert kinds(recorded) == ["retrieve"] * 3
    outer = recorded.stages("retrieve")[0]
    assert ids(outer) == [row["chunk_id"] for row in found]
    assert (outer["rag.score.kind"], outer["rag.score.higher_is_better"]) == ("rrf", True)
    legs = {stage["rag.score.kind"] for stage in recorded.stages("retrieve")[1:]}
    assert legs == {"l2", "bm25"}


async def async_search(folder: Path) -> Any:
    table(folder)
    opened = await (await lancedb.connect_async(folder / "lance")).open_table("docs")
    return await opened.query().nearest_to(embed(QUESTION)).limit(3).to_list()


def test_an_async_query_is_a_retrieval(recorded: Recorded, tmp_path: Path) -> None:
    """It ends when it is awaited."""
    found = asyncio.run(async_search(tmp_path))
    stage = recorded.stage("retrieve")
    assert ids(stage) == [row["chunk_id"] for row in found]
    assert stage["rag.score.higher_is_better"] is False
    assert stage["gen_ai.retrieval.top_k"] == 3

    async def slow() -> None:
        opened = await (await lancedb.connect_async(tmp_path / "lance")).open_table("docs")
        task = asyncio.ensure_future(opened.query().nearest_to(embed(QUESTION)).to_arrow())
        await asyncio.sleep(0)
        task.cancel()
        await task

    recorded.clear()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(slow())
    assert recorded.stage("retrieve")["rag.outcome"] == "cancelled"


def test_failures_pass_on(recorded: Recorded, tmp_path: Path) -> None:
    """The library's own exception is raised."""
    query = table(tmp_path).search(embed(QUESTION)).where("no_such_column = 1")
    assert_fails(recorded, "retrieve", query.to_list, Exception)


def test_results_are_the_same_with_and_without(tmp_path: Path) -> None:
    """What a query returns is byte-identical."""
    made = table(tmp_path)
    same_result(lambda: made.search(embed(QUESTION)).limit(3).to_list())
    same_result(lambda: made.search("hardware", query_type="fts").to_list())
    same_result(lambda: asyncio.run(async_search(tmp_path)))


def test_uninstrumented_is_untouched(patched: Patched) -> None:
    """Every patched object is what it was."""
    patched.assert_reverted("lancedb")


def test_targets_are_there(patched: Patched) -> None:
    """The installed release has all that the patch table names."""
    patched.assert_targets("lancedb")
