"""What recording costs the service, against a careful hand-written instrumentation in one run.

Each measurement is a process of its own; the configurations take turns, so that a busy moment of
the machine meets all of them. A figure is the median of the rounds. Ratios count, not microseconds.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TIGHT_REQUESTS, SPANS = 20_000, 5


@dataclass(frozen=True)
class Verdict:
    """One line of the report."""

    what: str
    observed: float
    allowed: float
    detail: str

    @property
    def is_met(self) -> bool:
        return self.observed <= self.allowed


@contextmanager
def sink() -> Iterator[str]:
    """Run a receiver in a process of its own and give its URL."""
    with subprocess.Popen(
        [sys.executable, str(HERE / "sink.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()


def measure(configuration: str, mode: str, count: int, url: str) -> dict[str, Any]:
    program = [sys.executable, str(HERE / "measure.py"), configuration, mode, str(count), url]
    done = subprocess.run(program, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{configuration} {mode} failed:\n{done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure_all(is_quick: bool) -> list[dict[str, Any]]:
    """Take every measurement, the configurations in turn."""
    rounds, calls, paced = (1, 500, 300) if is_quick else (5, 2000, 1000)
    plan = [("bare", "calls", calls)]
    for compression in ("gzip", "none"):
        plan += [(f"{name}-{compression}", "calls", calls) for name in ("hand", "ragotel")]
    plan += [(f"{name}-gzip", "paced", paced) for name in ("hand", "ragotel")]
    results = []
    with sink() as url:
        for number in range(rounds):
            for configuration, mode, count in plan:
                print(f"round {number + 1} of {rounds}: {configuration} {mode}", file=sys.stderr)
                results.append(measure(configuration, mode, count, url))
        for configuration in ("hand-gzip", "ragotel-gzip"):
            print(f"{configuration} tight", file=sys.stderr)
            results.append(measure(configuration, "tight", TIGHT_REQUESTS, url))
    return results


def median(results: list[dict[str, Any]], configuration: str, mode: str, figure: str) -> float:
    return statistics.median(
        row[figure]
        for row in results
        if (row["configuration"], row["mode"]) == (configuration, mode)
    )


def judge(results: list[dict[str, Any]]) -> list[Verdict]:
    """Compare with what is promised."""

    def ratio(what: str, mode: str, figure: str, allowed: float, compression: str) -> Verdict:
        ours = median(results, f"ragotel-{compression}", mode, figure)
        theirs = median(results, f"hand-{compression}", mode, figure)
        return Verdict(what, ours / theirs, allowed, f"{ours:,.0f} against {theirs:,.0f}")

    tight = [r for r in results if (r["configuration"], r["mode"]) == ("ragotel-gzip", "tight")][-1]
    lost = TIGHT_REQUESTS - tight["spans"] / SPANS
    return [
        ratio("calling thread p50, x hand-written", "calls", "p50_us", 0.3, "gzip"),
        ratio("calling thread p99, x hand-written", "calls", "p99_us", 0.3, "gzip"),
        ratio("100 requests a second p99, x hand-written", "paced", "p99_us", 0.5, "gzip"),
        ratio("CPU of the process with gzip, x hand-written", "calls", "cpu_us", 0.35, "gzip"),
        ratio("CPU of the process without, x hand-written", "calls", "cpu_us", 0.35, "none"),
        ratio("bytes on the wire with gzip, x hand-written", "calls", "bytes", 1.1, "gzip"),
        Verdict("tight loop of 20,000: requests lost", lost, 0, f"{tight['wall_s']:.1f} s"),
        Verdict("tight loop of 20,000: memory growth, MB", tight["growth_mb"], 20, ""),
    ]


def report(results: list[dict[str, Any]], verdicts: list[Verdict]) -> str:
    lines = [f"{'':44}{'observed':>10}{'allowed':>10}"]
    for verdict in verdicts:
        word = "pass" if verdict.is_met else "FAIL"
        figures = f"{verdict.observed:10.2f}{verdict.allowed:10.2f}"
        lines.append(f"{verdict.what:44}{figures}  {word}  {verdict.detail}")
    bare = median(results, "bare", "calls", "p50_us")
    hand = [r for r in results if (r["configuration"], r["mode"]) == ("hand-gzip", "tight")][-1]
    lines.append(f"the bare service takes {bare:.1f} us; the SDK's own queue lost ")
    lines[-1] += f"{1 - hand['spans'] / SPANS / TIGHT_REQUESTS:.0%} of the spans in the tight loop"
    return "\n".join(lines)
