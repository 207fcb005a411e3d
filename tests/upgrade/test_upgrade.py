"""A store of the first release, with rows in it, brought to the schema of today."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_worlds import deliver

from own_database import own_database, step_into
from ragotel.store import Store, catalog, migrate
from ragotel.store.catalog import SqlFile

HERE = Path(__file__).resolve().parent
WORLD = HERE.parent / "sql" / "worlds" / "hit"
FIRST = HERE / "schema_0.1.0.sql"
_BLOCK = re.compile(r"(?m)^-- (?:functions/.+\.sql|tables/.+\.sql|so that .+)$")

# What commands of the first release wrote, by its columns.
ROWS = [
    "insert into rag_labels_in (label_id, passage, passage_count, label_set, question, answerable,"
    " chunk_ids, doc_ids, spans) values ('L-sla', 1, 1, 'golden', 'What is the SLA credit?', true,"
    " ['sla#0'], [], [])",
    "insert into rag_grades (trace_id, request_id, label_id, grade, source)"
    " values ('t3', 'r3', 'L-sla', 'wrong', 'human')",
    "insert into rag_complaints (complaint_id, trace_id, request_id, text)"
    " values ('c1', 't3', 'r3', 'That is not right.')",
    "insert into rag_index_chunks (index_name, chunk_id, version, load_id, doc_id)"
    " values ('docs', 'sla#0', 'v2', 'l1', 'sla')",
    "insert into rag_index_versions (index_name, version, load_id, chunk_rows)"
    " values ('docs', 'v2', 'l1', 1)",
    "insert into rag_chunks_in (chunk_sha, text) values ('sha256:0123456789abcdef', 'The credit.')",
    "insert into rag_limits (limit_name, service_name, max_share) values ('corpus_gap', '', 0.1)",
]


def blocks() -> list[str]:
    """The statements of the first release, in order."""
    texts = _BLOCK.split(FIRST.read_text("utf-8"))[1:]
    return [text.strip().removesuffix(";") for text in texts]


def first_steps() -> set[str]:
    """The numbered steps that the first release says it has taken."""
    return set(re.findall(r"'(\d{4}_\w+)'", blocks()[-1]))


def row_counts(store: Store) -> dict[str, int]:
    """Rows of every table that keeps rows, but of the list of steps."""
    return dict(
        store.query(
            "select name, toUInt64(total_rows) from system.tables "
            "where database = currentDatabase() and engine like '%MergeTree' and total_rows > 0 "
            "and name != 'rag_migrations' order by name"
        ).result_rows
    )


@pytest.fixture
def first(engine: Store) -> Iterator[Store]:
    """A store as the first release left it: its schema, a day of spans, and what people wrote."""
    name = "upgraded"
    step_into(engine, "default")
    engine.command(f"create database `{name}`")
    step_into(engine, name)
    try:
        for statement in blocks():
            engine.command(statement)
        engine.command("create view triage_requests as select 'of the first release' as bucket")
        deliver(engine, WORLD)
        for statement in ROWS:
            engine.command(statement)
        yield engine
    finally:
        step_into(engine, "default")
        engine.command(f"drop database `{name}`")


def test_an_upgrade_takes_the_later_steps_and_keeps_every_row(first: Store) -> None:
    """No step is taken twice, none is left out, and old requests get a verdict of today's views."""
    before = row_counts(first)
    assert before["rag_requests"] == 5
    assert min(before.values()) > 0
    assert len(before) == 14
    new = migrate(first)
    assert new == [file.name for file in catalog.tables() if file.name not in first_steps()]
    assert {table: count for table, count in row_counts(first).items() if table in before} == before
    verdict = (
        "select trace_id, label_id, matched_by, bucket from triage_requests "
        "where label_id = 'L-sla'"
    )
    assert first.query(verdict).result_rows == [("t3", "L-sla", "grade", "retrieval_miss")]
    assert migrate(first) == []


def test_an_upgrade_reads_spans_as_a_new_store_does(first: Store) -> None:
    """The materialized views of the first release get the queries, and the functions, of today."""
    upgraded = "upgraded"
    before = feeds(first)
    migrate(first)
    after = feeds(first)
    with own_database(first) as fresh:
        today = {
            name: text.replace(f"{fresh}.", f"{upgraded}.") for name, text in feeds(first).items()
        }
    assert after == today
    assert before != today


def feeds(store: Store) -> dict[str, str]:
    """What each materialized view selects."""
    return dict(
        store.query(
            "select name, as_select from system.tables "
            "where database = currentDatabase() and engine = 'MaterializedView'"
        ).result_rows
    )


def test_a_later_step_is_taken_once(first: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that brings one more table makes it beside the rows that are there."""
    later = SqlFile(
        "tables",
        "9999_rag_later",
        "create table if not exists rag_later (id String) engine = MergeTree order by id",
    )
    tables = [*catalog.tables(), later]
    monkeypatch.setattr(catalog, "tables", lambda: tables)
    # The views are the other test's matter.
    monkeypatch.setattr(catalog, "views", list)
    before = row_counts(first)
    assert migrate(first)[-1] == "9999_rag_later"
    first.command("insert into rag_later values ('kept')")
    assert migrate(first) == []
    assert row_counts(first) == {**before, "rag_later": 1}


def test_no_step_of_the_first_release_has_changed_its_name() -> None:
    """A step that was renamed would be taken again in every store that has it."""
    assert first_steps() <= {file.name for file in catalog.tables()}
