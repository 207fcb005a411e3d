"""What it costs to insert, to find one request and to triage, on a generated embedded store.

RAGOTEL_BENCH_REQUESTS sets the size (default 100,000; a tenth of them labelled);
RAGOTEL_BENCH_FOLDER keeps the store there, for a look at what a statement reads.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from clickhouse_connect.driver.exceptions import DatabaseError
from generated import LABEL_EVERY, decide, fill
from overhead import Verdict

from ragotel.store import Store, migrate, open_store

REQUESTS = int(os.environ.get("RAGOTEL_BENCH_REQUESTS", "100000"))
QUICK_REQUESTS = 2_000
RUNS = 3
MILLION = 1_000_000
MEMORY_BYTES = 6_000_000_000
"""A statement that needs more fails, and says where, instead of taking the machine down."""


def questions(requests: int) -> dict[str, str]:
    """The timed statements by name; they ask for a request in the middle of the store."""
    asked = decide(requests // 2 // LABEL_EVERY * LABEL_EVERY)
    day = asked.started_at.date().isoformat()
    return {
        "request by trace id": f"select * from rag_requests where trace_id = '{asked.trace_id}'",
        "stages by trace id": f"select * from rag_stages where trace_id = '{asked.trace_id}'",
        "prompt by trace id": f"select * from rag_prompts where trace_id = '{asked.trace_id}'",
        "spans by trace id": f"select * from otel_traces where TraceId = '{asked.trace_id}'",
        "requests by user and day": (
            f"select * from rag_requests where user_id = '{asked.user_id}' "
            f"and started_at >= toDateTime64('{day}', 9, 'UTC') "
            f"and started_at < toDateTime64('{day}', 9, 'UTC') + interval 1 day"
        ),
        "requests by words": (
            "select trace_id, query, answer from rag_requests where "
            f"query_norm like '% {asked.number}?%' or answer_norm like '% {asked.number} %' "
            "limit 10"
        ),
        "budget of one trace": f"select * from triage_budgets where trace_id = '{asked.trace_id}'",
        "verdict of one trace": (
            f"select * from triage_requests where trace_id = '{asked.trace_id}'"
        ),
        "triage_requests": "select * from triage_requests",
        "triage_passages": "select * from triage_passages",
        "dist_buckets": "select * from dist_buckets",
        "dist_recall": "select * from dist_recall",
        "dist_coverage": "select * from dist_coverage",
    }


ALLOWED_MS = {
    "request by trace id": 50.0,
    "stages by trace id": 50.0,
    "prompt by trace id": 50.0,
    "spans by trace id": 50.0,
    "requests by user and day": 50.0,
    "requests by words": 500.0,
    "budget of one trace": 50.0,
    "verdict of one trace": 1_000.0,
    "triage_requests": 2_000.0,
    "triage_passages": 2_000.0,
    "dist_buckets": 2_000.0,
    "dist_recall": 2_000.0,
}
"""Promised for a million requests, ten thousand of them labelled, on two cores."""
MOST_GRANULES = 0.01
"""Share of a table's granules that a look-up by trace id may read."""
REQUESTS_PER_MINUTE = 5_000


def measure_all(is_quick: bool) -> list[dict[str, Any]]:
    """Fill a store in a temporary folder and time every statement on it."""
    requests = QUICK_REQUESTS if is_quick else REQUESTS
    with tempfile.TemporaryDirectory(prefix="ragotel-bench-") as temporary:
        folder = os.environ.get("RAGOTEL_BENCH_FOLDER") or temporary
        store = open_store(f"chdb://{folder}/store", follow_server=False)
        migrate(store)
        print(f"inserting {requests:,} requests", file=sys.stderr)
        took_s, cpu = fill_timed(store, requests)
        results: list[dict[str, Any]] = [
            {
                "name": "insert",
                "requests": requests,
                "engine_s": took_s,
                "requests_per_minute": requests / took_s * 60,
                "requests_per_minute_and_core": requests / cpu * 60,
                "disk_mb": disk_mb(store),
            }
        ]
        for name, statement in questions(requests).items():
            print(name, file=sys.stderr)
            results.append({"name": name, "requests": requests, **measure(store, statement)})
        results.append({"name": "memory", "peak_mb": peak_mb()})
        store.close()
    return results


def fill_timed(store: Store, requests: int) -> tuple[float, float]:
    """Seconds that the engine took, and seconds of processor time of the whole filling."""
    cpu = time.process_time()
    took_s = fill(store, requests)
    return took_s, time.process_time() - cpu


def measure(store: Store, statement: str) -> dict[str, Any]:
    """One run to warm up, then the median; planned apart, as views are deep.

    Never `explain plan`: it writes out every name of a view of this depth and takes gigabytes even
    on an empty store, where the select itself takes none.
    """
    try:
        times = [timed(store, statement) for _ in range(1 + RUNS)]
    except DatabaseError as error:
        return {"error": str(error).splitlines()[0][:200]}
    return {
        "first_ms": times[0],
        "median_ms": statistics.median(times[1:]),
        "plan_ms": timed(store, f"explain estimate {statement}"),
        "rows": store.scalar(f"select count() from ({statement})"),
        "granules": granules(store, statement),
    }


def timed(store: Store, statement: str) -> float:
    began = time.perf_counter()
    store.client.raw_query(statement, fmt="Null", settings={"max_memory_usage": MEMORY_BYTES})
    return (time.perf_counter() - began) * 1e3


def granules(store: Store, statement: str) -> dict[str, list[int]]:
    """By table the granules read, over all its readings, those that it has, and its parts."""
    sizes = store.query(
        "select table, sum(marks - 1), count() from system.parts "
        "where active and database = currentDatabase() group by table"
    ).result_rows
    found = {table: [0, marks, parts] for table, marks, parts in sizes}
    for _, table, _, _, marks in store.query(f"explain estimate {statement}").result_rows:
        found[table][0] += marks
    return {table: entry for table, entry in found.items() if entry[0]}


def disk_mb(store: Store) -> dict[str, float]:
    rows = store.query(
        "select table, sum(bytes_on_disk) / 1e6 from system.parts "
        "where active and database = currentDatabase() group by table"
    ).result_rows
    return {table: round(size, 1) for table, size in rows}


def peak_mb() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def judge(results: list[dict[str, Any]]) -> list[Verdict]:
    """Compare with what is promised; words are searched in time that grows with the store."""
    by_name = {row["name"]: row for row in results}
    requests = by_name["insert"]["requests"]
    verdicts = []
    rate = by_name["insert"]["requests_per_minute_and_core"]
    verdicts.append(
        Verdict(
            "insert: ms of processor per request",
            60_000 / rate,
            60_000 / REQUESTS_PER_MINUTE,
            f"{rate:,.0f} requests per minute and core, generating them included",
        )
    )
    for name, allowed in ALLOWED_MS.items():
        row = by_name[name]
        if "error" in row:
            verdicts.append(Verdict(f"{name}, ms", math.inf, allowed, row["error"]))
            continue
        if name == "requests by words":
            allowed = max(allowed * requests / MILLION, 50.0)
        shares = [f"{table} {a}/{b}" for table, (a, b, _) in row["granules"].items() if a < b]
        detail = f"{row['rows']:,} rows, plan {row['plan_ms']:.0f} ms; {', '.join(shares[:3])}"
        verdicts.append(Verdict(f"{name}, ms", row["median_ms"], allowed, detail))
    for name in ("request", "stages", "prompt"):
        row = by_name[f"{name} by trace id"]
        for table, (read, whole, parts) in row["granules"].items():
            # No part can be asked for less than one granule.
            most = max(MOST_GRANULES, parts / whole)
            verdicts.append(Verdict(f"share of {table}'s granules read", read / whole, most, ""))
    return verdicts


def report(results: list[dict[str, Any]], verdicts: list[Verdict]) -> str:
    lines = [f"{'':44}{'observed':>10}{'allowed':>10}"]
    for verdict in verdicts:
        word = "pass" if verdict.is_met else "FAIL"
        figures = f"{verdict.observed:10.3f}{verdict.allowed:10.3f}"
        lines.append(f"{verdict.what:44}{figures}  {word}  {verdict.detail}")
    insert, memory = results[0], results[-1]
    lines.append(
        f"{insert['requests']:,} requests inserted in {insert['engine_s']:.1f} s of the engine "
        f"({insert['requests_per_minute']:,.0f} a minute); peak {memory['peak_mb']:,.0f} MB; "
        f"on disk {sum(insert['disk_mb'].values()):,.0f} MB: {insert['disk_mb']}"
    )
    return "\n".join(lines)
