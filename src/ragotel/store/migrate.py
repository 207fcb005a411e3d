"""Migrate: bring a store to this package's schema.

Every statement is idempotent, so two processes that migrate at once both succeed: tables are
created `if not exists`, functions and views `or replace`, and a step's record is written after the
step. A materialized view is made by a step, and holds no data: its query is set anew with the
views, because it has the functions' text in it.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace

from ragotel.errors import MigrationError
from ragotel.store import catalog
from ragotel.store.catalog import SqlFile
from ragotel.store.open import Store

_STANDING = """
    select hex(sipHash128(arraySort(groupArray((name, made)))))
    from (
        select name, create_table_query as made
        from system.tables
        where database = currentDatabase() and name in {views:Array(String)}
        union all
        select name, create_query as made
        from system.functions
        where name in {functions:Array(String)}
    )
"""
"""A hash of the functions and all views as the store has them now, whoever made them."""
_FEED = re.compile(r"^create materialized view if not exists (\w+) to \w+ as\n", re.MULTILINE)
_MAKES = re.compile(r"^create (?:table|materialized view) if not exists (\w+)", re.MULTILINE)


def pending(store: Store) -> list[str]:
    """Names of the numbered steps that this store has not taken, or whose table is gone."""
    done = _applied(store)
    return [file.name for file in catalog.tables() if file.name not in done]


def migrate(store: Store) -> list[str]:
    """Apply what is missing and the functions and views; returns the new steps' names.

    Functions and views, materialized ones too, are applied again whenever this package's or the
    store's differ from what was applied last: somebody may have dropped or altered one.

    Raises:
        MigrationError: A statement failed; the message names its file. Running again goes on from
            there.
    """
    done = _applied(store)
    if not (set(_names(catalog.tables())) - done) and _mark(store) in done:
        return []
    for file in catalog.functions():
        _apply(store, file)
    new = []
    for file in catalog.tables():
        if file.name not in done:
            _apply(store, file)
            store.insert("rag_migrations", [(file.name,)], ["name"])
            new.append(file.name)
    for name, file in _feeds().items():
        if file.name not in new:
            text = _FEED.sub(f"alter table {name} modify query\n", file.text)
            _apply(store, replace(file, text=text))
    for file in _in_reading_order(catalog.views()):
        _apply(store, file)
    store.insert("rag_migrations", [(_mark(store),)], ["name"])
    return new


def _mark(store: Store) -> str:
    """What stands in rag_migrations once these functions and views were applied to this store."""
    functions, feeds, views = catalog.functions(), _feeds(), catalog.views()
    texts = "\0".join(file.text for file in (*functions, *feeds.values(), *views))
    names = {"views": [*feeds, *_names(views)], "functions": _names(functions)}
    standing = store.scalar(_STANDING, names)
    return f"views_{hashlib.sha256(texts.encode()).hexdigest()[:16]}_{standing}"


def _feeds() -> dict[str, SqlFile]:
    """The steps that make a materialized view, by its name."""
    found = ((_FEED.search(file.text), file) for file in catalog.tables())
    return {made[1]: file for made, file in found if made}


def _names(files: list[SqlFile]) -> list[str]:
    return [file.name for file in files]


def statements() -> list[SqlFile]:
    """Every file of the schema in the order in which it can be run on an empty database."""
    return [*catalog.functions(), *catalog.tables(), *_in_reading_order(catalog.views())]


def _applied(store: Store) -> set[str]:
    """The steps that were taken; a step whose table somebody dropped has to be taken again."""
    there = {
        row[0]
        for row in store.query(
            "select name from system.tables where database = currentDatabase()"
        ).result_rows
    }
    if "rag_migrations" not in there:
        return set()
    taken = {row[0] for row in store.query("select distinct name from rag_migrations").result_rows}
    made = {file.name: _MAKES.search(file.text) for file in catalog.tables()}
    gone = {name for name, make in made.items() if make and make[1] not in there}
    return taken - gone


def _apply(store: Store, file: SqlFile) -> None:
    try:
        store.command(file.text)
    except Exception as error:
        reason = str(error).strip().splitlines()[0][:400]
        raise MigrationError(f"{file.layer}/{file.name}.sql failed: {reason}") from error


def _in_reading_order(views: list[SqlFile]) -> list[SqlFile]:
    """Order views so that each comes after those that it reads (their names stand in its text)."""
    names = {file.name for file in views}
    reads = {
        file.name: (set(re.findall(r"\b[a-z][a-z0-9_]+\b", file.text)) & names) - {file.name}
        for file in views
    }
    ordered: list[SqlFile] = []
    waiting = list(views)
    while waiting:
        ready = [file for file in waiting if not reads[file.name] & {w.name for w in waiting}]
        if not ready:
            raise MigrationError(f"Views read each other in a circle: {[w.name for w in waiting]}")
        ordered += ready
        waiting = [file for file in waiting if file not in ready]
    return ordered
