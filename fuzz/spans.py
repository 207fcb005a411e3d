"""Odd spans into a store: no insert fails, every view answers, others' rows stay as they are."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

import targets  # noqa: F401 - it says where the tests' modules are
from odd_spans import odd_rows
from small_worlds import deliver, tell
from test_views import HERE as WORLDS
from test_views import VIEWS, read

from ragotel.store import Store, migrate, open_store
from ragotel.store.backfill import settle
from ragotel.store.otlp_rows import COLUMNS, FORMAT, TABLE, encode_rows

FOUND = Path(__file__).resolve().parent / "found" / "spans"
SPANS_A_ROUND = 500
SLOW_S = 20.0
TYPED = ("rag_requests", "rag_stages", "rag_prompts", "rag_chunks", "rag_ingest_runs", "rag_losses")


def main() -> int:
    """Rounds until the time is over; 1 where something broke."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    given = parser.parse_args()
    broken, seed = 0, given.seed
    with (
        tempfile.TemporaryDirectory(prefix="ragotel-fuzz-") as folder,
        open_store(f"chdb://{folder}/store", follow_server=False) as store,
    ):
        migrate(store)
        deliver(store, WORLDS / "worlds" / "hit")
        tell(store, WORLDS / "worlds" / "hit")
        before = {view: read(store, view, True) for view in VIEWS}
        until = time.monotonic() + 60 * given.minutes
        while time.monotonic() < until:
            faults = run_round(store, seed, before)
            print(f"seed {seed}: {SPANS_A_ROUND} spans, {len(faults)} faults", flush=True)
            if faults:
                FOUND.mkdir(parents=True, exist_ok=True)
                (FOUND / f"seed-{seed}.txt").write_text("\n\n".join(faults), "utf-8")
                print("\n".join(fault[:2_000] for fault in faults), flush=True)
            broken += len(faults)
            seed += 1
    return 1 if broken else 0


def run_round(store: Store, seed: int, before: dict[str, str]) -> list[str]:
    """One round: what broke."""
    rows = odd_rows(random.Random(seed), SPANS_A_ROUND)
    encoded = encode_rows(rows)
    faults = []
    try:
        store.client.raw_insert(TABLE, COLUMNS, b"".join(encoded), fmt=FORMAT)
    except Exception:
        faults = [fault for row in encoded if (fault := insert_fault(store, row))]
    try:
        settle(store, {row.trace_id for row in rows})
    except Exception as error:
        faults.append(f"settle: {error}")
    for view, expected in before.items():
        started = time.monotonic()
        try:
            found = read(store, view, True)
        except Exception as error:
            faults.append(f"{view}: {error}")
            continue
        if time.monotonic() - started > SLOW_S:
            print(f"{view} took {time.monotonic() - started:.0f} s", flush=True)
        # A view that names no trace may have rows of these spans as well.
        gone = set(expected.splitlines()) - set(found.splitlines())
        if gone:
            faults.append(f"{view} lost:\n{sorted(gone)}\n{found}")
    for table in ("otel_traces", *TYPED):
        store.command(f"delete from {table} where startsWith({_trace(table)}, 'junk')")
    return faults


def insert_fault(store: Store, row: bytes) -> str:
    """Why one row cannot be inserted; '' where it can."""
    try:
        store.client.raw_insert(TABLE, COLUMNS, row, fmt=FORMAT)
    except Exception as error:
        return f"insert: {str(error)[:1_500]}\n{row!r}"
    return ""


def _trace(table: str) -> str:
    return {"otel_traces": "TraceId", "rag_chunks": "text"}.get(table, "trace_id")


if __name__ == "__main__":
    sys.exit(main())
