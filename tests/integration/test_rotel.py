"""rotel, the real program, between the service and the store."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from otlp_bodies import post, rag_request, trace_id
from served import REPOSITORY, Served, find_free_port, wait_until

PACKAGE = importlib.util.find_spec("rotel")
pytestmark = pytest.mark.skipif(PACKAGE is None, reason="rotel has no package for this system")


def configuration() -> dict[str, str]:
    lines = (REPOSITORY / "collector" / "rotel.env").read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


@pytest.fixture
def stored(serve: Callable[..., Served]) -> Served:
    return serve()


@contextmanager
def running_rotel(stored: Served) -> Iterator[str]:
    """Its OTLP address; the configuration is the one that is offered, on free ports."""
    assert PACKAGE is not None
    assert PACKAGE.origin is not None
    port = find_free_port()
    process = subprocess.Popen(
        [str(Path(PACKAGE.origin).parent / "rotel-agent"), "start"],
        env={
            **os.environ,
            **configuration(),
            "ROTEL_CLICKHOUSE_EXPORTER_ENDPOINT": stored.url,
            "ROTEL_OTLP_HTTP_ENDPOINT": f"127.0.0.1:{port}",
            "ROTEL_OTLP_GRPC_ENDPOINT": f"127.0.0.1:{find_free_port()}",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(30)


@pytest.fixture
def rotel(stored: Served) -> Iterator[str]:
    with running_rotel(stored) as url:
        yield url


def test_spans_arrive_through_rotel(rotel: str, stored: Served) -> None:
    """Twenty requests with prompts of 16 KB, and one of 3 MB, each once."""

    def is_taken(number: int, prompt_chars: int) -> bool:
        try:
            return post(rotel, rag_request(number, prompt_chars=prompt_chars)).status == 200
        except OSError:
            return False

    wait_until(lambda: is_taken(0, 16_000), timeout_s=60)
    assert all(is_taken(number, 16_000) for number in range(1, 20))
    assert is_taken(20, 3_000_000)
    sent = {trace_id(number).hex() for number in range(21)}

    def stored_in(table: str) -> set[str]:
        return {row["trace_id"] for row in stored.sql(f"select distinct trace_id from {table}")}

    # One insert is seen in one table before it is in the next.
    for table in ("rag_prompts", "rag_requests", "rag_stages"):
        wait_until(lambda table=table: stored_in(table) == sent, timeout_s=120)
    longest = stored.sql("select max(length(prompt)) as chars from rag_prompts")
    assert longest == [{"chars": 3_000_000}]
