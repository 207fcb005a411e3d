"""A service and its store under even load for long: python benchmarks/soak.py [--minutes 30].

Once a minute it prints what both processes hold in memory, how many parts the store's tables have,
what waits in the queue and what was lost. The figures go to benchmarks/out/soak.json. Exit 1: a
request is missing, or memory went on growing after the first minutes.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tests"))

from running import Service, resident_mb  # noqa: E402

from served import Served, start_server  # noqa: E402

SETTLING_MINUTES = 5
"""Caches fill, and the engine's first merges run: not what a leak looks like."""
MOST_MB_PER_HOUR = 60.0
"""More than that is a leak; less is what merges of growing parts and a noisy heap come to."""


def look(service: Service, served: Served, minute: int) -> dict[str, Any]:
    """One line of the report."""
    told = service.counters()
    tables = served.sql(
        "select sum(c) as parts, max(c) as most from (select table, count() as c from "
        "system.parts where active and database = 'ragotel' group by table)"
    )[0]
    return {
        "minute": minute,
        "service_mb": resident_mb(service.process.pid),
        "serve_mb": resident_mb(served.process.pid),
        "queue_mb": told["queue_bytes"] / 1e6,
        "offered": told["offered"],
        "delivered": told["delivered"],
        "lost": sum(told["lost"].values()),
        "parts": tables["parts"],
        "most_parts_of_a_table": tables["most"],
    }


def slope_mb_per_hour(rows: list[dict[str, Any]], key: str) -> float:
    """Growth after the settling minutes, as a straight line through all minutes sees it."""
    late = [row for row in rows if row["minute"] >= SETTLING_MINUTES]
    if len(late) < 3:
        return 0.0
    fit = statistics.linear_regression([r["minute"] for r in late], [r[key] for r in late])
    return fit.slope * 60


def run(minutes: int, rate: float, folder: Path, candidates: int) -> dict[str, Any]:
    """Put the service under load for *minutes* and give all figures."""
    served = start_server(folder / "store")
    service = Service(served.otlp_http, folder, rate, RAGOTEL_BENCH_DISTINCT=str(candidates))
    rows: list[dict[str, Any]] = []
    try:
        began = time.monotonic()
        for minute in range(minutes + 1):
            time.sleep(max(0.0, began + minute * 60 - time.monotonic()))
            rows.append(look(service, served, minute))
            print(line(rows[-1]), flush=True)
        told = service.end()
        asked = len(service.calls())
        stored = served.sql("select uniqExact(trace_id, request_id) as n from rag_requests")
        return {
            "minutes": minutes,
            "rate_per_s": rate,
            "requests": asked,
            "stored": stored[0]["n"],
            "lost": told["lost"],
            "rows": rows,
            **{
                f"{name}_{figure}": value
                for name in ("service", "serve")
                for figure, value in (
                    ("slope_mb_per_hour", slope_mb_per_hour(rows, f"{name}_mb")),
                    ("most_mb_late", most_late(rows, f"{name}_mb")),
                )
            },
        }
    finally:
        service.kill()
        served.kill()


def most_late(rows: list[dict[str, Any]], key: str) -> float:
    return max((row[key] for row in rows if row["minute"] >= SETTLING_MINUTES), default=0.0)


def line(row: dict[str, Any]) -> str:
    return (
        f"minute {row['minute']:3}: service {row['service_mb']:7.1f} MB, "
        f"serve {row['serve_mb']:7.1f} MB, queue {row['queue_mb']:5.2f} MB, "
        f"offered {row['offered']:7}, delivered {row['delivered']:7}, lost {row['lost']}, "
        f"parts {row['parts']} ({row['most_parts_of_a_table']} of one table)"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=int, default=30)
    parser.add_argument("--rate", type=float, default=50.0, help="requests a second")
    parser.add_argument("--candidates", type=int, default=10, help="of each request, twice")
    arguments = parser.parse_args()
    # Else the two processes outlive a soak that is ended from outside.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="ragotel-soak-") as folder:
        result = run(arguments.minutes, arguments.rate, Path(folder), arguments.candidates)
    out = HERE / "out"
    out.mkdir(exist_ok=True)
    (out / "soak.json").write_text(json.dumps(result, indent=1))
    for name in ("service", "serve"):
        print(
            f"{name}: at most {result[f'{name}_most_mb_late']:.0f} MB after minute "
            f"{SETTLING_MINUTES}, slope {result[f'{name}_slope_mb_per_hour']:+.1f} MB an hour"
        )
    print(f"{result['requests']} requests, {result['stored']} stored, lost {result['lost']}")
    is_whole = result["requests"] == result["stored"] + sum(result["lost"].values())
    slopes = [result[f"{name}_slope_mb_per_hour"] for name in ("service", "serve")]
    return 0 if is_whole and max(slopes) <= MOST_MB_PER_HOUR else 1


if __name__ == "__main__":
    sys.exit(main())
