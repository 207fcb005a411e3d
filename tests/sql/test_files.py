"""The .sql files: true heads, one statement each, and applying them again is harmless."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sqlglot.tokens import Tokenizer, TokenType

from ragotel.store import Store, catalog, migrate, pending
from ragotel.store.catalog import SqlFile

FILES = [*catalog.functions(), *catalog.tables(), *catalog.views()]
HEAD = ("-- answers: ", "-- grain:   ", "-- reads:   ")


FIRST_STEP = {"0001_migrations": "rag_migrations"}
"""The one file that is not called like what it makes."""


def name_of(file: SqlFile) -> str:
    return FIRST_STEP.get(file.name) or re.sub(r"^\d{4}_", "", file.name)


OBJECTS = {name_of(file) for file in FILES}


def statement_count(text: str) -> int:
    """Statements in *text*; the engine itself would run one after the other without a word."""
    tokens = Tokenizer(dialect="clickhouse").tokenize(text)
    ends = [token.token_type == TokenType.SEMICOLON for token in tokens]
    return 1 + sum(ends[:-1])


def parsed(store: Store, file: SqlFile) -> list[str]:
    """The statement as the engine reads it."""
    text: bytes = store.client.raw_query(f"explain ast {file.text}", fmt="TSVRaw")
    return text.decode().splitlines()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_is_one_statement_with_a_true_head(store: Store, file: SqlFile) -> None:
    """Three lines say what it answers, its grain and what it reads, and that is what it reads."""
    lines = file.text.splitlines()
    assert [line[: len(start)] for line, start in zip(lines, HEAD, strict=False)] == list(HEAD)
    assert statement_count(file.text) == 1
    tree = parsed(store, file)
    made = re.match(r"Create(?:SQLFunction)?Query (\S+)", tree[0])
    assert made is not None
    found = {m.group(1) for line in tree if (m := re.search(r"TableIdentifier (\S+)", line))}
    stated = set(file.head["reads"].split(", ")) - {"nothing"}
    assert stated <= OBJECTS
    assert (made.group(1), found & OBJECTS) == (name_of(file), stated)


def test_a_second_statement_is_noticed() -> None:
    """A semicolon counts between statements, not in a text, in a comment or at the end."""
    assert statement_count("select ';' -- one; only\n;") == 1
    assert statement_count("select 1;\nselect 2") == 2


def test_no_step_inside_a_view_bears_a_table_s_name() -> None:
    """A common table expression called like a table would hide what the statement reads."""
    steps = {
        (file.name, step)
        for file in catalog.views()
        for step in re.findall(r"^\s+(\w+) as \($", file.text, re.MULTILINE)
    }
    assert {(view, step) for view, step in steps if step in OBJECTS} == set()


def schema(store: Store) -> list[Any]:
    columns = "table, name, type"
    return list(
        store.query(
            f"select {columns} from system.columns where database = currentDatabase() "
            "order by table, position"
        ).result_rows
    )


def test_a_dropped_table_is_made_again(store: Store) -> None:
    """A step whose table somebody dropped is pending, and the next migration takes it again."""
    migrate(store)
    store.command("drop table rag_grades")
    assert pending(store) == ["0071_rag_grades"]
    assert migrate(store) == ["0071_rag_grades"]
    assert pending(store) == []
    assert store.scalar("select count() from rag_grades") == 0


def test_migrating_twice_changes_nothing(store: Store) -> None:
    """The second time no step is new, every step stands once, every column is as it was."""
    before = schema(store)
    assert migrate(store) == []
    assert schema(store) == before
    steps = store.query("select name from rag_migrations final order by name").result_rows
    names = [row[0] for row in steps]
    assert [name for name in names if name[0].isdigit()] == [file.name for file in catalog.tables()]
    assert len([name for name in names if name.startswith("views_")]) == 1


@pytest.mark.parametrize(
    "damage",
    [
        "drop view dist_buckets",
        "create or replace view dist_buckets as select 1 as one",
        "create or replace function rag_moved_past as (stage, fused) -> 'nowhere'",
        "alter table rag_losses_mv modify query select TraceId as trace_id from otel_traces",
    ],
)
def test_a_view_or_function_that_somebody_spoiled_is_made_again(store: Store, damage: str) -> None:
    """Migrating restores what was dropped or altered, though no step is pending."""
    kinds = (
        "select name, type from system.columns "
        "where database = currentDatabase() and table = 'dist_buckets' order by position"
    )
    moved = "select rag_moved_past('rerank', true)"
    losses = (
        "select as_select from system.tables "
        "where database = currentDatabase() and name = 'rag_losses_mv'"
    )

    def state() -> tuple[object, ...]:
        return store.query(kinds).result_rows, store.scalar(moved), store.scalar(losses)

    sound = state()
    store.command(damage)
    assert migrate(store) == []
    assert state() == sound


def test_views_that_are_as_they_should_be_are_left_alone(store: Store) -> None:
    """A start of the server costs no making of a hundred views."""
    made = (
        "select name, uuid from system.tables "
        "where database = currentDatabase() and engine = 'View' order by name"
    )
    migrate(store)
    before = store.query(made).result_rows
    assert len(before) == len(catalog.views())
    assert migrate(store) == []
    assert store.query(made).result_rows == before


def test_all_times_are_typed_as_utc(store: Store) -> None:
    """No column of a table or view takes the server's zone: each names UTC."""
    times = [(table, name, kind) for table, name, kind in schema(store) if "DateTime" in kind]
    assert len(times) > 40
    assert [entry for entry in times if not is_utc(entry[2])] == []


def is_utc(kind: str) -> bool:
    """Whether every time inside of the type *kind* names UTC; arrays and tuples hold several."""
    return len(re.findall("DateTime", kind)) == len(
        re.findall(r"DateTime(?:64)?\([^)]*'UTC'\)", kind)
    )


def test_a_time_without_utc_is_noticed() -> None:
    """The check above tells the types apart."""
    assert is_utc("Array(Tuple(DateTime64(9, 'UTC'), DateTime('UTC')))")
    for kind in ("DateTime", "DateTime64(9)", "DateTime64(9, 'Asia/Seoul')"):
        assert not is_utc(kind)
        assert not is_utc(f"Tuple(DateTime('UTC'), {kind})")
