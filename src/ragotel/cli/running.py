"""Running: one command line in, one exit code out; every fault becomes one line on stderr.

Pipeline: views -> triage -> [cli]. The commands themselves stand in commands.py's table.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence

import click

from ragotel.cli.commands import TABLE, group
from ragotel.cli.output import say, visible
from ragotel.errors import ConfigurationError, InputError, RagotelError

INTERRUPTED = 130
READER_GONE = 141


def run_group(arguments: Sequence[str]) -> int:
    """Run *arguments*; see `ragotel.cli.run`."""
    debug = "--debug" in arguments
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    # The driver of the store logs what it raises as well; one fault is one line.
    logging.getLogger("clickhouse_connect").addHandler(logging.NullHandler())
    try:
        _check_text(arguments)
        code = _invoke(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        return _reader_gone()
    except (KeyboardInterrupt, click.Abort):
        if debug:
            raise
        return _say("Interrupted.", INTERRUPTED)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        return _say(_usage(error), error.exit_code)
    except RagotelError as error:
        if debug:
            raise
        wrong_use = isinstance(error, ConfigurationError | InputError)
        return _say(str(error), 2 if wrong_use else 1)
    except ModuleNotFoundError as error:
        if debug:
            raise
        return _say(_missing_package(error, arguments), 1)
    except Exception as error:
        if debug:
            raise
        return _say(_unexpected(error), 1)
    return code


def _invoke(arguments: Sequence[str]) -> int:
    if "_RAGOTEL_COMPLETE" in os.environ:
        group.main(args=list(arguments), prog_name="ragotel")
    try:
        with group.make_context("ragotel", list(arguments)) as context:
            result = group.invoke(context)
    except click.exceptions.Exit as request:
        return request.exit_code
    return result if isinstance(result, int) else 0


def _check_text(arguments: Sequence[str]) -> None:
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"The argument {argument!r} is not UTF-8.") from error


def _usage(error: click.ClickException) -> str:
    message = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    return f"{message} (see: {context.command_path} --help)"


def _missing_package(error: ModuleNotFoundError, arguments: Sequence[str]) -> str:
    entry = TABLE.get(next(iter(arguments), ""))
    if entry is None or not entry.extra or (error.name or "").startswith("ragotel"):
        return _unexpected(error)
    return f"`ragotel {arguments[0]}` needs {error.name}: pip install 'ragotel[{entry.extra}]'"


def _unexpected(error: Exception) -> str:
    first = next((line for line in str(error).splitlines() if line.strip()), "no reason given")
    if "DB::Exception" in first or "clickhouse_connect" in type(error).__module__:
        return f"The store refused: {_database_reason(first)}"
    return f"{type(error).__name__}: {first[:300]} (run again with --debug to see where)"


def _database_reason(message: str) -> str:
    """The reason that ClickHouse gave, without the driver's words around it."""
    _, found, reason = message.partition("DB::Exception: ")
    return (reason if found else message).strip()[:500]


def _say(message: str, code: int) -> int:
    say(visible(f"ragotel: {message}"), err=True)
    return code


def _reader_gone() -> int:
    """Leave quietly, as `head` expects: stdout is closed, so nothing may flush into it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return READER_GONE
