"""Shared fixtures: one engine per pytest process, an empty migrated database per test, servers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ragotel.store import Store, migrate, open_store

REPOSITORY = Path(__file__).resolve().parent.parent
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
    """Hands out migrated, empty databases; one that kept its schema is emptied and used again."""

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
        if self._objects() != objects:
            self._engine.command(f"drop database `{name}`")
            return
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


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def free_port() -> int:
    """A port on 127.0.0.1 that nobody listens on."""
    return find_free_port()


@dataclass
class Served:
    """A running `ragotel serve`: its addresses, its store's folder and its process."""

    process: subprocess.Popen[str]
    folder: Path
    otlp_http: str
    otlp_grpc: str
    url: str
    token: str = ""
    output: list[str] = field(default_factory=list)

    @property
    def dsn(self) -> str:
        """Of the store itself: opening it reaches this server."""
        return f"chdb://{self.folder}"

    def stop(self) -> int:
        """End it as an operator does; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def kill(self) -> None:
        """End it as the kernel does when memory runs out."""
        self.process.kill()
        self.process.wait(30)

    def command(self, statement: str) -> None:
        """A statement without rows."""
        self._ask(statement, {}).close()

    def sql(self, query: str, **headers: str) -> list[dict[str, Any]]:
        """Rows of a query over the ClickHouse HTTP interface, database `ragotel`."""
        with self._ask(query, headers) as reply:
            rows: list[dict[str, Any]] = json.load(reply)["data"]
        return rows

    def _ask(self, statement: str, headers: dict[str, str]) -> Any:
        request = urllib.request.Request(
            f"{self.url}/?database=ragotel&default_format=JSON"
            "&output_format_json_quote_64bit_integers=0",
            data=statement.encode(),
            headers={**({"X-ClickHouse-Key": self.token} if self.token else {}), **headers},
        )
        return urllib.request.urlopen(request, timeout=60)


def wait_until(condition: Callable[[], Any], *, timeout_s: float = 30.0) -> Any:
    """Wait for *condition* to give something true; that value."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"this never came true: {condition}")
        time.sleep(0.02)
    return value


def start_server(folder: Path, *options: str, token: str = "") -> Served:
    """Start `ragotel serve` on free ports over the store in *folder* and wait until it is ready."""
    command = [
        *(sys.executable, "-m", "ragotel", "serve", "--store", f"chdb://{folder}"),
        *("--otlp-grpc-port", "0", "--otlp-http-port", "0", "--http-port", "0"),
        *(("--token", token) if token else ()),
        *options,
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=REPOSITORY
    )
    output: list[str] = []
    ready: dict[str, str] = {}
    assert process.stdout is not None
    for line in process.stdout:
        output.append(line)
        if line.startswith("ready "):
            ready = dict(word.split("=", 1) for word in line.split()[1:])
            break
    if not ready:
        process.wait(30)
        raise RuntimeError(f"ragotel serve did not start: {''.join(output)}")
    threading.Thread(target=output.extend, args=(process.stdout,), daemon=True).start()
    return Served(
        process=process,
        folder=folder,
        otlp_http=ready["otlp_http"],
        otlp_grpc=ready["otlp_grpc"],
        url=ready["clickhouse_http"],
        token=token,
        output=output,
    )


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
