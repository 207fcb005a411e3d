"""Shared fixtures: one engine per pytest process, an empty migrated database per test, servers."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from own_database import own_database
from ragotel.store import Store, open_store
from served import REPOSITORY, Served, find_free_port, start_server


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


@pytest.fixture
def store(engine: Store) -> Iterator[Store]:
    """A migrated, empty store; costs milliseconds. Its settings and tables are the test's own."""
    with own_database(engine):
        yield engine


@pytest.fixture(scope="module")
def database(engine: Store) -> Iterator[str]:
    """The name of a database that the tests of a module share; step into it where others may."""
    with own_database(engine) as name:
        yield name


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
