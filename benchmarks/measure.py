"""One measurement in a process of its own: python measure.py CONFIGURATION MODE COUNT URL.

Modes: `calls` times each call, delivery flushed outside of the timing after every 20th; `paced`
sends 100 requests a second with the exporter running; `tight` calls without a pause.
"""

from __future__ import annotations

import gc
import json
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import workload

WARM_UP = 500
FLUSH_EVERY = 20
RATE_PER_S = 100


def open_service(
    configuration: str, url: str
) -> tuple[workload.Service, Callable[[], object], Callable[[], object]]:
    """Give the service, its flush and its shutdown."""
    name, _, compression = configuration.partition("-")
    if name == "bare":
        return workload.Service(), bool, bool
    if name == "hand":
        from hand import HandWritten

        by_hand = HandWritten(url, compression or "gzip")
        return by_hand, by_hand.provider.force_flush, by_hand.provider.shutdown
    from decorated import Decorated

    import ragotel

    decorated = Decorated(url, compression or "gzip")
    return decorated, ragotel.flush, ragotel.shutdown


def ask(url: str, path: str) -> dict[str, int]:
    with urllib.request.urlopen(f"{url}/{path}") as answer:
        return dict(json.load(answer))


def resident_bytes(what: str) -> int:
    """Read VmRSS or VmHWM, the highest since it was last reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) * 1024
    return 0


def run_calls(call: Callable[[int], int], flush: Callable[[], object], count: int) -> list[int]:
    times = []
    for n in range(count):
        times.append(call(n))
        if n % FLUSH_EVERY == FLUSH_EVERY - 1:
            flush()
    return times


def run_paced(call: Callable[[int], int], flush: Callable[[], object], count: int) -> list[int]:
    start = time.perf_counter_ns()
    times = []
    for n in range(count):
        due = start + n * 1_000_000_000 // RATE_PER_S
        while (left := due - time.perf_counter_ns()) > 0:
            time.sleep(left / 1e9)
        times.append(call(n))
    return times


def run_tight(call: Callable[[int], int], flush: Callable[[], object], count: int) -> list[int]:
    return [call(n) for n in range(count)]


MODES = {"calls": run_calls, "paced": run_paced, "tight": run_tight}


def measure(configuration: str, mode: str, count: int, url: str) -> dict[str, Any]:
    prepared = workload.prepare()
    service, flush, shutdown = open_service(configuration, url)
    clock, answer = time.perf_counter_ns, service.answer

    def call(n: int) -> int:
        request = service.now = prepared[n % workload.REQUESTS]
        query = request.query
        began = clock()
        answer(query)
        return clock() - began

    run_calls(call, flush, WARM_UP)
    flush()
    ask(url, "reset")
    gc.collect()
    gc.freeze()
    before = resident_bytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    cpu, wall = time.process_time(), time.perf_counter()
    times = MODES[mode](call, flush, count)
    wall = time.perf_counter() - wall
    flush()
    cpu = time.process_time() - cpu
    growth = resident_bytes("VmHWM") - before
    shutdown()
    times.sort()
    arrived = ask(url, "stats")
    return {
        "configuration": configuration,
        "mode": mode,
        "requests": count,
        "p50_us": times[count // 2] / 1e3,
        "p99_us": times[count * 99 // 100] / 1e3,
        "max_us": times[-1] / 1e3,
        "cpu_us": cpu / count * 1e6,
        "wall_s": wall,
        "bytes": arrived["bytes"] / count,
        "spans": arrived["spans"],
        "growth_mb": growth / 1e6,
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])))
