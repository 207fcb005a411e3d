"""Corpus gaps and their causes: ingest spans and manifests in, cause and owner out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gap_worlds import WORLDS, live
from own_database import own_database
from ragotel.store import Store

Rows = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def gaps(engine: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rows]:
    """triage_gap_causes of all worlds, by label, asked once."""
    with own_database(engine):
        live(engine, tmp_path_factory.mktemp("gaps"))
        rows = engine.rows("select * from triage_gap_causes")
        assert len(rows) == sum(len(world.gold) for world in WORLDS)
        yield {row["label_id"]: row for row in rows}


CAUSES = {
    # label: cause, owner, decided by, documents that left the index with it
    "half-the-source:d3#1": ("never_listed", "crawler", "counters", 4),
    "half-the-source:d4#0": ("never_listed", "crawler", "counters", 4),
    "another-bucket:vault#0": ("never_listed", "crawler", "elimination", 0),
    "scans:d3#1": ("parsed_empty", "parser", "counters", 3),
    "title-only:d3#1": ("parsed_empty", "parser", "document", 0),
    "emptied-in-place:d3#1": ("parsed_empty", "parser", "counters", 2),
    "cut-in-two:d3#1": ("chunk_dissolved", "chunker", "document", 0),
    "no-documents-named:d3#1": ("chunk_dissolved", "chunker", "elimination", 0),
    "taken-down:d3#1": ("deleted", "reconciliation", "chunk", 1),
    "truncated-crawl:d3#1": ("deleted", "reconciliation", "counters", 5),
    "nobody-recorded-it:d3#1": ("unknown", "", "", 0),
    "two-faults-at-once:d3#1": ("unknown", "", "", 2),
}


@pytest.mark.parametrize("label_id", CAUSES)
def test_the_cause_of_a_gap(gaps: Rows, label_id: str) -> None:
    """The counters of the run, the chunk record and the documents are read as a set."""
    row = gaps[label_id]
    names = ("cause", "owner", "decided_by", "vanished_documents")
    assert tuple(row[name] for name in names) == CAUSES[label_id], row["why"]


def test_a_truncated_crawl_is_named_as_what_deleted(gaps: Rows) -> None:
    """Listed short and deleted many: the deletion is the cause, the crawl its mechanism."""
    row = gaps["truncated-crawl:d3#1"]
    assert row["mechanism"] == "reconciliation on a truncated crawl"
    assert row["vanished_doc_ids"] == ["d3", "d4", "d5", "d6", "d7"]
    assert row["why"] == (
        "The run listed 5 documents, before 10, and deleted 10 chunks: what a truncated crawl did "
        "not list was deleted. With it 5 documents left the index."
    )
    assert gaps["taken-down:d3#1"]["mechanism"] == "deletion"


def test_the_counters_stand_beside_those_of_the_run_before(gaps: Rows) -> None:
    """Each of the four, now and before, with the run that they are of."""
    row = gaps["scans:d3#1"]
    counters = ("docs_listed", "docs_empty", "mean_chars_per_doc", "chunks_written")
    assert [row[name] for name in counters] == [10, 3, 2800.0, 14]
    assert [row[f"previous_{name}"] for name in counters] == [10, 0, 4000.0, 20]
    assert (row["chunks_deleted"], row["previous_chunks_deleted"]) == (0, 0)
    assert (row["held_by_version"], row["lost_in_version"]) == ("v1", "v2")
    assert len(row["ingest_trace_id"]) == 32


def test_what_else_the_run_broke(gaps: Rows) -> None:
    """Documents and chunks that went with it, and other labels that have a gap by the same run."""
    row = gaps["half-the-source:d3#1"]
    assert row["vanished_doc_ids"] == ["d3", "d4", "d5", "d6"]
    assert row["gone_chunks"] == 8
    assert row["gone_chunk_ids"] == [f"d{doc}#{part}" for doc in (3, 4, 5, 6) for part in (0, 1)]
    assert (row["other_label_count"], row["other_label_ids"]) == (1, ["half-the-source:d4#0"])
    assert gaps["scans:d3#1"]["other_label_ids"] == []
    assert gaps["title-only:d3#1"]["shrunk_doc_ids"] == ["d3"]


def test_a_claim_that_was_cut_in_two_is_seen(gaps: Rows) -> None:
    """All counters are healthy; the document is there, the claim stands across two chunks."""
    row = gaps["cut-in-two:d3#1"]
    assert (row["is_claim_split"], row["claim_in_chunk_id"], row["document_chunks"]) == (
        True,
        "",
        2,
    )
    assert row["why"] == (
        "Its document is in the index by 2 other chunks, but this one is not: "
        "the claim is cut in two between neighbours."
    )


def test_without_evidence_nothing_is_guessed(gaps: Rows) -> None:
    """No run recorded, or two counters that both could be it: unknown, and what is open."""
    row = gaps["nobody-recorded-it:d3#1"]
    assert (row["missing"], row["suspects"]) == (["ingest_run", "earlier_manifest"], [])
    row = gaps["two-faults-at-once:d3#1"]
    assert (row["missing"], row["suspects"]) == ([], ["never_listed", "parsed_empty"])
    assert row["why"] == (
        "Not decidable between never_listed and parsed_empty: the counters leave both open. "
        "With it 2 documents left the index."
    )
