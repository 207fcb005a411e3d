"""Field reports about stores: look-ups that read little, old times, late duplicates, zones."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from cli_store import run_in
from otlp_bodies import request, trace_id
from ragotel.store import Store
from ragotel.store.load import load_files
from served import REPOSITORY, Served

INSTANTS = (
    # The night in which Los Angeles has the hour from one to two twice.
    "2026-11-01T08:30:00+00:00",
    "2026-11-01T09:30:00+00:00",
    # The one in which it has none from two to three.
    "2026-03-08T10:00:00.123456+00:00",
    "2026-11-19T23:59:59.999999+00:00",
)


def instant_ns(text: str) -> int:
    moment = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (moment.days * 86_400 + moment.seconds) * 10**9 + moment.microseconds * 1_000


def otlp_file(folder: Path, *instants: str) -> str:
    """One request per instant, called by it, in an order that is not that of time."""
    spans = [
        {
            "trace": text,
            "start_time_unix_nano": instant_ns(text),
            "end_time_unix_nano": instant_ns(text) + 5_000_000,
            "attributes": {"rag.stage": "request", "rag.request.id": text, "rag.query": "when?"},
        }
        for text in instants
    ]
    random.Random(3).shuffle(spans)
    path = folder / "spans.pb"
    path.write_bytes(request(*spans).SerializeToString())
    return str(path)


def ragotel(zone: str, *arguments: str) -> Any:
    """A command of its own in a time zone of its own; its JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "ragotel", *arguments, "--json"],
        env={**os.environ, "TZ": zone},
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def told_times(answer: Any) -> dict[str, datetime]:
    rows = answer["requests"] if isinstance(answer, dict) else answer
    return {
        row["request_id"]: datetime.fromisoformat(row["started_at"].replace("Z", "+00:00"))
        for row in rows
    }


def expected_times() -> dict[str, datetime]:
    return {text: datetime.fromisoformat(text) for text in INSTANTS}


def test_a_server_and_a_client_in_two_zones_tell_one_instant(
    serve: Callable[..., Served], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Server in Seoul, client in Los Angeles: every request has the instant that it had."""
    monkeypatch.setenv("TZ", "Asia/Seoul")
    server = serve()
    path = otlp_file(tmp_path, *INSTANTS)
    ragotel("America/Los_Angeles", "load", path, "--store", server.url + "/ragotel")
    found = ragotel("America/Los_Angeles", "find", "--text", "when", "--store", server.dsn)
    assert told_times(found) == expected_times()
    stored = server.sql(
        "select request_id, toUnixTimestamp64Nano(started_at) as ns from rag_requests"
    )
    assert {row["request_id"]: row["ns"] for row in stored} == {
        text: instant_ns(text) for text in INSTANTS
    }


def test_an_embedded_store_is_written_and_read_in_two_zones(tmp_path: Path) -> None:
    """The engine in the process takes no zone from it either, and days begin at midnight UTC."""
    store = f"chdb://{tmp_path}/store"
    ragotel("Asia/Seoul", "load", otlp_file(tmp_path, *INSTANTS), "--store", store)
    for zone in ("America/Los_Angeles", "Asia/Seoul", "UTC"):
        found = ragotel(zone, "find", "--text", "when", "--store", store)
        assert told_times(found) == expected_times()
    day = ragotel(
        "Asia/Seoul", "find", "--since", "2026-11-19", "--until", "2026-11-19", "--store", store
    )
    assert set(told_times(day)) == {INSTANTS[-1]}


OLD = ("2019-02-03T04:05:06.000007+00:00", "2026-11-08T10:00:00+00:00", "2024-02-29T12:00:00+00:00")


def test_old_requests_are_found_even_without_the_index_of_traces(
    store: Store, tmp_path: Path, capsys: Any
) -> None:
    """Imported late, with random ids and no row in the index of traces: found, never hidden."""
    load_files(store, [otlp_file(tmp_path, *OLD)])
    store.command("truncate table otel_traces_trace_id_ts")
    command = run_in(store, capsys)
    for text in OLD:
        by_trace = command("show", trace_id(text).hex(), "--json")
        assert (by_trace.code, text in by_trace.out) == (0, True), by_trace.err
        by_request = command("find", "--request", text, "--json")
        assert set(told_times(by_request.json)) == {text}


def test_old_requests_stand_in_the_order_of_their_own_time(
    store: Store, tmp_path: Path, capsys: Any
) -> None:
    """The event's time orders them; the time of arrival is a column of its own."""
    before = datetime.now(timezone.utc).replace(microsecond=0)
    load_files(store, [otlp_file(tmp_path, *OLD)])
    rows = store.query(
        "select request_id, toUnixTimestamp(ingested_at) from rag_requests order by started_at"
    ).result_rows
    assert [row[0] for row in rows] == sorted(OLD)
    assert all(row[1] >= before.timestamp() for row in rows)


def test_a_batch_sent_twice_counts_once_before_any_merge(store: Store, tmp_path: Path) -> None:
    """Both copies stand in parts that were not merged, and still each view counts one."""
    store.command("system stop merges")
    try:
        path = otlp_file(tmp_path, *INSTANTS)
        for _ in range(2):
            load_files(store, [path])
        copies = store.scalar("select count() from rag_requests")
        covered = store.scalar("select sum(requests) from dist_coverage")
    finally:
        store.command("system start merges")
    assert (copies, covered) == (2 * len(INSTANTS), len(INSTANTS))


REQUESTS = 300_000
LOOK_UPS = {
    "rag_requests": ("user_id", "concat('user-', toString(number % 2000))"),
    "rag_stages": ("stage", "'retrieve'"),
    "rag_prompts": ("template_name", "'answer'"),
}
"""Tables that are asked for one trace, each with a column of its own to fill."""


def fill(store: Store, table: str) -> None:
    name, value = LOOK_UPS[table]
    store.command(
        f"insert into {table} (trace_id, request_id, span_id, started_at, {name}) "
        "select lower(hex(MD5(toString(number)))) as id, substring(id, 1, 16), 's', "
        "toDateTime64('2026-11-01 00:00:00', 9, 'UTC') + toIntervalSecond(number * 4), "
        f"{value} from numbers({REQUESTS})"
    )


@pytest.mark.parametrize("table", LOOK_UPS)
def test_a_look_up_by_trace_id_reads_under_a_hundredth(store: Store, table: str) -> None:
    """One request among 300,000 with random ids: less than 1 % of the granules are read."""
    fill(store, table)
    wanted = "lower(hex(MD5('123456')))"
    found = store.scalar(f"select count() from {table} where trace_id = {wanted}")
    ((_, _, _, _, marks),) = store.query(
        f"explain estimate select * from {table} where trace_id = {wanted}"
    ).result_rows
    whole = store.scalar(
        "select sum(marks - 1) from system.parts where active and table = {table:String} "
        "and database = currentDatabase()",
        {"table": table},
    )
    assert found == 1
    assert 0 < marks < whole / 100
