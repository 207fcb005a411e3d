"""Init, sql, pipes and the doctor: programs of their own over a store of their own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cli_store import Ran, run_in
from ragotel.store import Store, catalog, migrate, statements


@pytest.fixture
def ragotel(store: Store, capsys: Any) -> Callable[..., Ran]:
    return run_in(store, capsys)


@contextlib.contextmanager
def _other_database(store: Store, *, create: bool = True) -> Iterator[None]:
    """Step into another, empty database of the same engine."""
    before = store.database
    name = f"{before}_other"
    if create:
        store.command(f"create database `{name}`")
    store.database = store.client.database = name
    try:
        yield
    finally:
        store.database = store.client.database = before
        store.command(f"drop database if exists `{name}`")


def test_init_says_what_is_new_and_twice_is_harmless(store: Store, capsys: Any) -> None:
    """Where there is no database yet, every step is named; the second time there is none."""
    with _other_database(store, create=False):
        ragotel = run_in(store, capsys)
        first, second = ragotel("init"), ragotel("init", "--json").json
    steps = [file.name for file in catalog.tables()]
    assert first.out.splitlines()[:-1] == [f"+ {name}" for name in steps]
    assert f": {len(steps)} steps are new, {len(catalog.views())} views are in place" in first.out
    assert (second["new"], second["views"]) == ([], len(catalog.views()))


def test_the_printed_schema_runs_as_it_stands(store: Store, capsys: Any) -> None:
    """Every statement of `init --print` runs, in order, in an empty database; none is left."""
    with _other_database(store):
        printed = run_in(store, capsys)("init", "--print")
        for file in statements():
            assert f"\n{file.text.rstrip()};\n" in printed.out
            store.command(file.text)
        store.command(printed.out.rstrip().rstrip(";").rpartition("\n")[2])
        assert migrate(store) == []
    assert (printed.code, printed.err) == (0, "")


def test_a_store_without_schema_says_what_to_do(store: Store, capsys: Any) -> None:
    """Reading a database that has no schema is exit 1 and one line."""
    with _other_database(store):
        name = store.database
        ran = run_in(store, capsys)("find")
    assert ran == Ran(
        1,
        "",
        f"ragotel: The database '{name}' of this store has no ragotel schema: "
        "run `ragotel init` with the same --store.\n",
    )


def test_sql_in_every_format(ragotel: Callable[..., Ran]) -> None:
    """Piped it is TSV with names; --json is a list of objects; any format of ClickHouse goes."""
    query = "select number as n, 'a\tb' as t from numbers(2)"
    assert ragotel("sql", query) == Ran(0, "n\tt\n0\ta\\tb\n1\ta\\tb\n", "")
    assert ragotel("sql", query + ";", "--json").json == [
        {"n": 0, "t": "a\tb"},
        {"n": 1, "t": "a\tb"},
    ]
    assert ragotel("sql", query, "--format", "CSV").out == '0,"a\tb"\n1,"a\tb"\n'
    assert ragotel("sql", "-- why\n/* x */ select 1 as n format CSVWithNames").out == '"n"\n1\n'
    assert ragotel("sql", "(select 1 as n) union all (select 1)").out == "n\n1\n1\n"


def test_sql_statements_and_faults(ragotel: Callable[..., Ran], store: Store) -> None:
    """A statement without rows prints nothing; a fault is the engine's reason in one line."""
    assert ragotel("sql", "insert into rag_grades (trace_id) values ('t')") == Ran(0, "", "")
    assert store.scalar("select trace_id from rag_grades") == "t"
    ran = ragotel("sql", "select nope")
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert ran.err.startswith("ragotel: The store refused: Unknown expression identifier `nope`")
    assert ragotel("sql", " ; ").code == 2
    assert ragotel("sql", "select 1", "--json", "--format", "CSV").code == 2


def _program(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ragotel", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def test_commands_that_start_at_once_work_or_say_who_was_quicker(tmp_path: Path) -> None:
    """The embedded engine allows one process; however close the race, the others say so."""
    dsn = f"chdb://{tmp_path}/store"
    ask = [sys.executable, "-m", "ragotel", "sql", "select sleep(1)", "--store", dsn]
    subprocess.run([*ask[:3], "init", "--store", dsn], check=True, stdout=subprocess.DEVNULL)
    running = [
        subprocess.Popen(ask, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    ended = [(*process.communicate(timeout=120), process.returncode) for process in running]
    assert any(code == 0 for _, _, code in ended)
    said = [err.splitlines()[-1] for _, err, code in ended if code != 0]
    assert [line for line in said if f"Another process has {tmp_path}/store open" not in line] == []
    assert [line for line in said if "process " not in line.partition("open (")[2]] == []


def test_a_reader_that_goes_away_is_no_fault(tmp_path: Path) -> None:
    """`ragotel sql … | head` ends without a word on stderr."""
    dsn = f"chdb://{tmp_path}/store"
    assert _program("init", "--store", dsn).wait(60) == 0
    program = _program("sql", "select number from numbers(10000000)", "--store", dsn)
    assert program.stdout is not None
    assert program.stderr is not None
    assert program.stdout.readline() == "number\n"
    program.stdout.close()
    assert (program.wait(60), program.stderr.read()) == (141, "")


def test_the_doctor_with_the_server_down(tmp_path: Path, free_port: int) -> None:
    """No receiver: the doctor says so, and what mends it, and exits 1; the rest is still told."""
    dsn = f"chdb://{tmp_path}/store"
    assert _program("init", "--store", dsn).wait(60) == 0
    program = _program(
        *("doctor", "--json", "--store", dsn), RAGOTEL_ENDPOINT=f"http://127.0.0.1:{free_port}"
    )
    out, err = program.communicate(timeout=120)
    assert (program.returncode, err) == (1, "")
    told = json.loads(out)
    assert told["is_fine"] is False
    assert [(check["name"], check["is_fine"]) for check in told["checks"]] == [
        ("receiver", False),
        ("texts", True),
        ("tracer provider", None),
        ("store", True),
        ("services", None),
    ]
    assert f":{free_port}/v1/traces (http/protobuf) did not take it" in told["checks"][0]["found"]


def test_the_doctor_follows_its_canary(server: Any) -> None:
    """With a server the canary arrives, and is told from the services' own requests."""
    program = _program(
        *("doctor", "--json", "--store", server.dsn), RAGOTEL_ENDPOINT=server.otlp_http
    )
    out, err = program.communicate(timeout=120)
    assert (program.returncode, err) == (0, "")
    assert {check["name"]: check["is_fine"] for check in json.loads(out)["checks"]} == {
        "receiver": True,
        "texts": True,
        "tracer provider": None,
        "store": True,
        "arrival": True,
        "services": None,
    }


def test_the_schema_ships_with_a_head_per_file() -> None:
    """Every statement that `init` runs says what it answers."""
    assert [file.name for file in statements() if "answers" not in file.head] == []
    assert len(catalog.tables()) > 20
