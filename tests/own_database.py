"""Databases in the process's one engine: migrated, empty, used again by the tests that follow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from ragotel.store import Store, migrate

_OBJECTS = (
    "select name, engine, toString(metadata_modification_time) from system.tables "
    "where database = currentDatabase() order by name"
)
_FILLED = (
    "select name from system.tables where database = currentDatabase() "
    "and engine like '%MergeTree' and total_rows > 0 and name != 'rag_migrations'"
)


def step_into(store: Store, name: str) -> None:
    store.client.database = store.database = name


class Databases:
    """Hands out migrated, empty databases; one that has its whole schema yet is used again.

    Making one costs seconds, emptying one milliseconds.
    """

    def __init__(self, engine: Store) -> None:
        self._engine = engine
        self._made: dict[str, list[Any]] = {}
        self._free: list[str] = []
        self._count = 0

    def take(self) -> str:
        """The name of a database that nobody else has, stepped into."""
        if self._free:
            name = self._free.pop()
            step_into(self._engine, name)
            return name
        self._count += 1
        name = f"test_{self._count}"
        # The database that the engine stands in may be one that was dropped since.
        step_into(self._engine, "default")
        self._engine.command(f"create database `{name}`")
        step_into(self._engine, name)
        migrate(self._engine)
        self._made[name] = self._objects()
        return name

    def give_back(self, name: str) -> None:
        step_into(self._engine, name)
        made, left = set(self._made[name]), set(self._objects())
        if not made <= left:
            step_into(self._engine, "default")
            self._engine.command(f"drop database `{name}`")
            return
        for extra, _, _ in sorted(left - made):
            self._engine.command(f"drop table if exists `{extra}`")
        for (table,) in self._engine.query(_FILLED).result_rows:
            self._engine.command(f"truncate table `{table}`")
        self._free.append(name)

    def _objects(self) -> list[Any]:
        return list(self._engine.query(_OBJECTS).result_rows)


@cache
def databases_of(engine: Store) -> Databases:
    return Databases(engine)


@contextmanager
def own_database(engine: Store) -> Iterator[str]:
    """A database that the tests of one module share, stepped into; they may step elsewhere."""
    databases = databases_of(engine)
    name = databases.take()
    try:
        yield name
    finally:
        databases.give_back(name)
