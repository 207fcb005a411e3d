"""The command line itself: help without extras, exit codes, one line per fault."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from ragotel.cli import run
from ragotel.cli.commands import TABLE, group
from ragotel.errors import ConfigurationError, NotFoundError


def test_help_loads_no_engine_and_no_extra() -> None:
    """`ragotel --help` names every command and imports neither store, nor server, nor chDB."""
    script = (
        "import sys; from ragotel.cli import run; code = run(['--help']); "
        "heavy = {'chdb', 'clickhouse_connect', 'starlette', 'rich', 'opentelemetry.sdk'}; "
        "print(sorted(heavy & set(sys.modules)), code)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[] 0"
    assert all(f"  {name} " in ran.stdout for name in TABLE)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("doctor --wait nan", "'--wait': 'nan' is no number from 0 to 86,400."),
        ("doctor --wait inf", "'--wait': 'inf' is no number from 0 to 86,400."),
        ("doctor --wait -1", "'--wait': '-1' is no number from 0 to 86,400."),
        ("doctor --days 0", "'--days': '0' is no whole number from 1 to 36,500."),
        ("costs --usd-per-million-input-tokens inf", "'inf' is no number from 0 to 1,000,000,000."),
        ("costs --usd-per-million-input-tokens 3 --k -1", "'-1' is no whole number from 0 to "),
        ("limits set degraded --max-share nan", "'nan' is no share: write 5% or 0.05."),
        ("limits set degraded --min-sample 1e3", "'1e3' is no whole number from 1 to "),
        ("losses --cutoff 11", "'--cutoff': '11' is no cut-off; there are 1, 2, 3, "),
        ("losses --cutoff x", "'--cutoff': 'x' is no cut-off; there are 1, 2, 3, "),
        ("recall --k 0", "'--k': '0' is no k; there are 1, 2, 3, "),
        ("retention set traces -3", "'-3' is no number of days to keep it: write 1 to 36500, or "),
        ("retention set traces 1.5", "'1.5' is no number of days to keep it: write 1 to 36500, "),
        (f"find --limit {'9' * 5000}", "is no whole number from 1 to 10,000."),
        ("find --since=", "'' is no time: write 2026-11-19"),
        ("buckets --until=", "'' is no time: write 2026-11-19"),
        ("buckets --since 2026-02-01 --until 2026-01-01", "--since 2026-02-01 is after --until "),
        ("find --since 2026-02-01 --until 2026-01-01", "--since 2026-02-01 is after --until "),
        ("find --request=", "--request is empty"),
        ("complaint x --text=", "--text is empty: say what the user said."),
        (
            "ablate --generator a:b --judge a:b --set x --mode position --positions 9 --of 5",
            "None of --positions 9 lies within --of 5.",
        ),
        (
            "ablate --generator a:b --judge a:b --set x --mode position --against ²/3",
            "'²/3' names no row; write 3/5 for position 3 of 5.",
        ),
        ("serve --http-port 70000", "'70000' is no whole number from 0 to 65,535."),
    ],
)
def test_a_number_out_of_reach_is_wrong_use(capsys: Any, arguments: str, says: str) -> None:
    """One line says what was given and what may be, before any store is opened."""
    code = run(arguments.split())
    told = capsys.readouterr()
    assert (code, told.out, told.err.count("\n")) == (2, "", 1)
    assert says in told.err


def test_the_sql_as_json_has_its_parameters_apart(capsys: Any) -> None:
    """--sql with --json is one JSON document, as --json is everywhere."""
    for command in ("triage", "find", "recall"):
        assert run([command, "--service", "o'brien", "--sql", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["parameters"]["service_name"] == "o'brien"
        assert "{service_name:String}" in told["sql"]


@pytest.mark.parametrize("name", sorted(set(TABLE) - {"demo", "serve", "load"}))
def test_the_table_tells_what_the_command_tells(name: str) -> None:
    """`ragotel --help` has the command's own line; each takes --store, --json, --debug."""
    command = group.get_command(click.Context(group), name)
    assert command is not None
    assert command.short_help == TABLE[name].summary
    leaves = command.commands.values() if isinstance(command, click.Group) else [command]
    for leaf in leaves:
        options = {option for parameter in leaf.params for option in parameter.opts}
        assert {"--store", "--json", "--debug"} <= options


def _run(capsys: Any, *arguments: str) -> tuple[int, str, str]:
    code = run(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_mistyped_command_is_wrong_use(capsys: Any) -> None:
    """Exit 2, one line, with the nearest name."""
    assert _run(capsys, "fnd") == (
        2,
        "",
        "ragotel: There is no command 'fnd'; did you mean 'find'?. (see: ragotel --help)\n",
    )


def test_an_unknown_option_is_wrong_use(capsys: Any) -> None:
    """Exit 2, one line, with where the help is."""
    code, out, err = _run(capsys, "buckets", "--nope")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.endswith("(see: ragotel buckets --help)\n")


@pytest.mark.parametrize(
    ("fault", "code", "line"),
    [
        (ConfigurationError("Write it so."), 2, "ragotel: Write it so."),
        (NotFoundError("It is not there."), 1, "ragotel: It is not there."),
        (KeyboardInterrupt(), 130, "ragotel: Interrupted."),
        (
            RuntimeError("Code: 60. DB::Exception: Unknown table. (UNKNOWN_TABLE)\nstack"),
            1,
            "ragotel: The store refused: Unknown table. (UNKNOWN_TABLE)",
        ),
        (
            ZeroDivisionError("division by zero"),
            1,
            "ragotel: ZeroDivisionError: division by zero (run again with --debug to see where)",
        ),
    ],
)
def test_every_fault_is_one_line(
    capsys: Any, monkeypatch: pytest.MonkeyPatch, fault: BaseException, code: int, line: str
) -> None:
    """No traceback: what was wrong, on stderr, with the exit code of its kind."""

    @click.command("find")
    def failing() -> None:
        raise fault

    monkeypatch.setitem(group.commands, "find", failing)
    assert _run(capsys, "find") == (code, "", line + "\n")


def test_debug_lets_the_fault_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """With --debug the exception is Python's own."""

    @click.command("find")
    @click.option("--debug", is_flag=True)
    def failing(debug: bool) -> None:
        raise ZeroDivisionError

    monkeypatch.setitem(group.commands, "find", failing)
    with pytest.raises(ZeroDivisionError):
        run(["find", "--debug"])


def test_a_store_that_is_none_is_wrong_use(capsys: Any) -> None:
    """A DSN of another kind is refused before anything is opened; no password is repeated."""
    code, _, err = _run(capsys, "find", "--store", "postgres://ana:secret@host/db")
    assert (code, err.count("\n"), "secret" in err) == (2, 1, False)


def test_a_store_that_is_not_there_is_no_answer(capsys: Any) -> None:
    """Reading makes no folder: exit 1 and the command that would make one."""
    assert _run(capsys, "find", "--store", "chdb:///nowhere/store") == (
        1,
        "",
        "ragotel: There is no store at /nowhere/store; "
        "`ragotel init --store chdb:///nowhere/store` makes one.\n",
    )


def test_what_is_no_store_is_left_as_it_is(capsys: Any, tmp_path: Path) -> None:
    """A file, and a folder of something else, are told apart from a store; nothing is written."""
    (tmp_path / "notes.txt").write_text("mine")
    assert _run(capsys, "find", "--store", f"chdb://{tmp_path}/notes.txt") == (
        1,
        "",
        f"ragotel: {tmp_path}/notes.txt is a file, and a store is a folder: name another place.\n",
    )
    code, _, err = _run(capsys, "find", "--store", f"chdb://{tmp_path}")
    assert (code, err.startswith(f"ragotel: There is no store at {tmp_path}; ")) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_server_that_does_not_answer_is_one_short_line(capsys: Any, free_port: int) -> None:
    """The line says where nobody answered, and why."""
    assert _run(capsys, "find", "--store", f"http://127.0.0.1:{free_port}/x") == (
        1,
        "",
        f"ragotel: No ClickHouse answers at 127.0.0.1:{free_port}: Connection refused\n",
    )


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["show", "\udcff"], "The argument '\\udcff' is not UTF-8."),
        (
            ["triage", "--store", "http://[::1"],
            "The store 'http://[::1' is no URL: Invalid IPv6 URL.",
        ),
    ],
)
def test_odd_arguments_are_wrong_use(capsys: Any, arguments: list[str], line: str) -> None:
    """Bytes that are no text, half an address: one line, exit code 2."""
    assert run(arguments) == 2
    assert capsys.readouterr().err == f"ragotel: {line}\n"
