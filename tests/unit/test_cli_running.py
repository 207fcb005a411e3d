"""The command line itself: help without extras, exit codes, one line per fault."""

from __future__ import annotations

import subprocess
import sys
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
