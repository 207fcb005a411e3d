"""A real OpenTelemetry Collector between the service and the store, with kills in between.

It is the one that `make collector` builds from collector/builder.yaml; where it was not built, or
RAGOTEL_COLLECTOR names no binary, these tests are skipped.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from otlp_bodies import post, rag_request, trace_id
from served import REPOSITORY, Served, find_free_port, start_server, wait_until

MANIFEST = REPOSITORY / "collector" / "builder.yaml"
BUILT = Path(
    os.environ.get("RAGOTEL_COLLECTOR")
    or Path.home()
    / ".cache/ragotel/collector"
    / hashlib.sha256(MANIFEST.read_bytes()).hexdigest()[:16]
    / "otelcol-ragotel"
)
pytestmark = pytest.mark.skipif(
    not BUILT.exists(), reason="the collector was not built (make collector)"
)


@dataclass
class Collector:
    """A running collector; started again it takes up the queue that it left."""

    store_url: str
    queue: Path
    port: int = field(default_factory=find_free_port)
    health: int = field(default_factory=find_free_port)

    def start(self) -> Collector:
        self.process = subprocess.Popen(
            [str(BUILT), "--config", str(REPOSITORY / "collector" / "otelcol.yaml")],
            env={
                **os.environ,
                "CLICKHOUSE_ENDPOINT": self.store_url,
                "OTELCOL_QUEUE": str(self.queue),
                "OTELCOL_HTTP": f"127.0.0.1:{self.port}",
                "OTELCOL_GRPC": f"127.0.0.1:{find_free_port()}",
                "OTELCOL_HEALTH": f"127.0.0.1:{self.health}",
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(self.is_ready, timeout_s=60)
        return self

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health}", timeout=5) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

    @property
    def otlp_http(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)


@pytest.fixture
def stored(serve: Callable[..., Served]) -> Served:
    return serve()


@pytest.fixture
def collector(stored: Served, tmp_path: Path) -> Iterator[Collector]:
    running = Collector(stored.url, tmp_path / "queue").start()
    yield running
    running.kill()


def arrived(served: Served, table: str = "rag_requests") -> set[str]:
    return {row["trace_id"] for row in served.sql(f"select distinct trace_id from {table}")}


def send(collector: Collector, numbers: range) -> set[str]:
    """Post one request each; the trace ids of those that the collector acknowledged."""
    acknowledged = set()
    for number in numbers:
        try:
            if post(collector.otlp_http, rag_request(number, prompt_chars=2000)).status == 200:
                acknowledged.add(trace_id(number).hex())
        except OSError:
            continue
    return acknowledged


def test_spans_arrive_through_a_collector(collector: Collector, stored: Served) -> None:
    """The exporter's inserts, in blocks of its own form, fill the typed tables."""
    sent = send(collector, range(20))
    assert len(sent) == 20
    # One insert is seen in one table before it is in the next.
    for table in ("rag_requests", "rag_stages", "rag_prompts"):
        wait_until(lambda table=table: arrived(stored, table) == sent, timeout_s=120)


def test_a_killed_collector_loses_nothing(collector: Collector, stored: Served) -> None:
    """What it acknowledged before kill -9 it delivers when it runs again."""
    sent = send(collector, range(100, 140))
    collector.kill()
    collector.start()
    sent |= send(collector, range(140, 150))
    assert len(sent) == 50
    wait_until(lambda: arrived(stored) >= sent, timeout_s=90)


def test_a_killed_store_loses_nothing(collector: Collector, stored: Served, tmp_path: Path) -> None:
    """While the store is down the collector keeps what it took; the store takes it later."""
    sent = send(collector, range(200, 220))
    port = stored.url.rsplit(":", 1)[1]
    stored.kill()
    sent |= send(collector, range(220, 240))
    assert len(sent) == 40
    time.sleep(1)
    again = start_server(stored.folder, "--http-port", port)
    try:
        wait_until(lambda: arrived(again) >= sent, timeout_s=120)
    finally:
        again.stop()


def test_a_prompt_of_3_mb_passes(collector: Collector, stored: Served) -> None:
    """Neither the receiver's limit nor the exporter's cuts it."""
    assert post(collector.otlp_http, rag_request(300, prompt_chars=3_000_000)).status == 200
    wait_until(lambda: trace_id(300).hex() in arrived(stored, "rag_prompts"), timeout_s=60)
    rows = stored.sql("select length(prompt) as chars from rag_prompts")
    assert [row["chars"] for row in rows] == [3_000_000]
