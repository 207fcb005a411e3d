"""Growth: whether `ragotel serve` keeps memory that it no longer needs, told apart by who holds it.

    python benchmarks/growth.py [--minutes 10] [--settle 2]

An even load that the cores keep up with, then none. Every 15 s it notes the memory of the process,
what the engine says that it holds, and its parts; the least of each minute shows what stays.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path
from statistics import linear_regression
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from otlp_bodies import post, rag_request  # noqa: E402
from served import Served, start_server  # noqa: E402

A_SECOND = 10
A_MESSAGE = 10
SAMPLE_S = 15
MB = 1 << 20
ENGINE = """select
    (select value from system.metrics where metric = 'MemoryTracking') as tracked,
    (select sum(primary_key_bytes_in_memory_allocated) from system.parts where active) as keys,
    (select count() from system.parts) as parts,
    (select count() from rag_requests) as requests"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--settle", type=float, default=2, help="minutes without load")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ragotel-growth-") as folder:
        server = start_server(Path(folder) / "store")
        try:
            samples = watch(server, given.minutes * 60, given.settle * 60)
        finally:
            server.stop()
    report(samples, given.minutes)


Sample = tuple[float, float, float, dict[str, Any]]
"""Minutes, MB in memory, MB of these that are no file's, and the engine's own figures."""


def watch(server: Served, load_s: float, settle_s: float) -> list[Sample]:
    """Load the server, then leave it alone."""
    samples: list[Sample] = []
    began = time.monotonic()
    sent, sample_at = 0, 0.0
    while (at := time.monotonic() - began) < load_s + settle_s:
        if at < load_s and sent < at * A_SECOND:
            numbers = range(sent, sent + A_MESSAGE)
            # Messages of protobuf end to end are one.
            body = b"".join(rag_request(number, prompt_chars=2_000) for number in numbers)
            assert post(server.otlp_http, body).status == 200
            sent += A_MESSAGE
        if at >= sample_at:
            sample_at += SAMPLE_S
            (engine,) = server.sql(ENGINE)
            rss, private = memory(server.process.pid)
            samples.append((at / 60, rss, private, engine))
            print(
                f"{at / 60:5.2f} min  {rss:6.1f} MB  private {private:6.1f} MB  "
                f"engine {int(engine['tracked']) / MB:6.1f} MB  keys "
                f"{int(engine['keys'] or 0) / MB:4.1f} MB  parts {engine['parts']}  "
                f"requests {engine['requests']} of {sent}",
                flush=True,
            )
        time.sleep(0.05)
    return samples


def memory(pid: int) -> tuple[float, float]:
    """Give what is in memory and what of it is no file's, in MB."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    found = dict(re.findall(r"(VmRSS|RssAnon):\s+(\d+) kB", status))
    return int(found["VmRSS"]) / 1024, int(found["RssAnon"]) / 1024


def report(samples: list[Sample], load_minutes: float) -> None:
    least: dict[int, float] = {}
    for at, _, private, _ in samples:
        if 2 <= at < load_minutes:
            least[int(at)] = min(private, least.get(int(at), private))
    if len(least) > 1:
        slope = linear_regression(list(least), list(least.values())).slope
        print(f"least private memory of each minute from the third: {least}")
        print(f"a straight line through these: {slope:+.2f} MB a minute")


if __name__ == "__main__":
    main()
