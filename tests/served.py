"""A running `ragotel serve` for tests: started on free ports, asked, ended or killed."""

from __future__ import annotations

import atexit
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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


@cache
def _migrated_store() -> Path:
    """A store with the schema and nothing else; it is copied, because making one costs seconds."""
    parent = Path(tempfile.mkdtemp(prefix="ragotel-migrated-"))
    atexit.register(shutil.rmtree, parent, ignore_errors=True)
    command = [sys.executable, "-m", "ragotel", "init", "--store", f"chdb://{parent}/store"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=REPOSITORY)
    return parent / "store"


def start_server(
    folder: Path, *options: str, token: str = "", program: str = sys.executable
) -> Served:
    """Start `ragotel serve` on free ports over the store in *folder* and wait until it is ready.

    A folder that is not there begins as a migrated store.
    """
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(_migrated_store(), folder, symlinks=True)
    command = [
        *(program, "-m", "ragotel", "serve", "--store", f"chdb://{folder}"),
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
