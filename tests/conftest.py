"""Shared fixtures: one engine per pytest process, an empty migrated database per test, servers."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ragotel.store import Store, migrate, open_store
from served import REPOSITORY, Served, find_free_port, start_server

_OBJECTS = (
    "select name, engine, toString(metadata_modification_time) from system.tables "
    "where database = currentDatabase() order by name"
)
_FILLED = (
    "select name from system.tables where database = currentDatabase() "
    "and engine like '%MergeTree' and total_rows > 0 and name != 'rag_migrations'"
)


@pytest.fixture(scope="session")
def engine() -> Iterator[Store]:
    """The process's one embedded engine, in memory-backed storage where there is some."""
    shm = Path("/dev/shm")
    parent = str(shm) if shm.is_dir() and os.access(shm, os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(prefix="ragotel-test-", dir=parent) as folder,
        open_store(f"chdb://{folder}/store", follow_server=False) as store,
    ):
        yield store


class Databases:
    """Hands out migrated, empty databases; one that has its whole schema yet is emptied and used again."""

    def __init__(self, engine: Store) -> None:
        self._engine = engine
        self._count = 0
        self._free: list[tuple[str, list[Any]]] = []

    def take(self) -> str:
        if not self._free:
            self._count += 1
            name = f"test_{self._count}"
            self._engine.command(f"create database `{name}`")
            self._engine.client.database = self._engine.database = name
            migrate(self._engine)
            self._free.append((name, self._objects()))
        self._current = self._free.pop()
        self._engine.client.database = self._engine.database = self._current[0]
        return self._current[0]

    def give_back(self) -> None:
        name, objects = self._current
        self._engine.client.database = self._engine.database = name
        left = self._objects()
        if not set(objects) <= set(left):
            self._engine.command(f"drop database `{name}`")
            return
        for extra, _, _ in sorted(set(left) - set(objects)):
            self._engine.command(f"drop table if exists `{extra}`")
        for (table,) in self._engine.query(_FILLED).result_rows:
            self._engine.command(f"truncate table `{table}`")
        self._free.append(self._current)

    def _objects(self) -> list[Any]:
        return list(self._engine.query(_OBJECTS).result_rows)


@pytest.fixture(scope="session")
def databases(engine: Store) -> Databases:
    return Databases(engine)


@pytest.fixture
def store(engine: Store, databases: Databases) -> Iterator[Store]:
    """A migrated, empty store; costs milliseconds. Its settings and tables are the test's own."""
    databases.take()
    yield engine
    databases.give_back()


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The labelled corpora beside the checkout; the test is skipped where they are absent."""
    folder = Path(os.environ.get("RAGOTEL_SHARED") or REPOSITORY.parent / "shared")
    if not folder.is_dir():
        pytest.skip("the labelled corpora are not beside the checkout")
    return folder


@pytest.fixture
def free_port() -> int:
    """A port on 127.0.0.1 that nobody listens on."""
    return find_free_port()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Start servers: ``serve(*options, folder=None, token="")``; all are ended after the test."""
    started: list[Served] = []

    def start(*options: str, folder: Path | None = None, token: str = "") -> Served:
        started.append(start_server(folder or tmp_path / "store", *options, token=token))
        return started[-1]

    yield start
    for served in started:
        if served.process.poll() is None:
            served.kill()


@pytest.fixture
def server(serve: Callable[..., Served]) -> Served:
    """A running `ragotel serve` over an empty store."""
    return serve()


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One `ragotel serve` for the tests of a module that do not mind each other's rows."""
    served = start_server(tmp_path_factory.mktemp("served") / "store")
    yield served
    if served.process.poll() is None:
        served.kill()
