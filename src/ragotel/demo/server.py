"""Beside the demo's pipeline: its own `ragotel serve`, a process on free ports of this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ragotel.errors import RagotelError

_STOP_S = 30


@dataclass(frozen=True)
class Served:
    """Where the demo's server keeps its store and takes OTLP."""

    dsn: str
    otlp_http: str


@contextmanager
def own_server(folder: Path) -> Iterator[Served]:
    """Run `ragotel serve` over a store in *folder* until the block ends.

    Raises:
        RagotelError: It does not come up; the message has its own last line.
    """
    dsn = f"chdb://{folder}"
    ports = ("--otlp-grpc-port", "0", "--otlp-http-port", "0", "--http-port", "0")
    process = subprocess.Popen(
        [sys.executable, "-m", "ragotel", "serve", "--store", dsn, "--json", *ports],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield Served(dsn, _wait_until_ready(process.stdout)["otlp_http"])
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _wait_until_ready(output: IO[str]) -> dict[str, str]:
    last = "it said nothing"
    for line in output:
        if line.startswith("{"):
            facts: dict[str, str] = json.loads(line)
            # A pipe that nobody reads would stop the server once it is full.
            threading.Thread(target=output.read, daemon=True).start()
            return facts
        last = line.strip() or last
    raise RagotelError(f"The demo's own `ragotel serve` did not start: {last}")
