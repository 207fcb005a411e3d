"""Answering: asks a question of the store and shows its rows, as every command that lists does.

Pipeline: triage.question -> [cli]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ragotel.cli.options import ready_store
from ragotel.cli.output import print_json, say

if TYPE_CHECKING:
    from ragotel.store import Store
    from ragotel.triage.question import Question

Rows = list[dict[str, Any]]


def print_sql(question: Question, *, as_json: bool) -> None:
    """Print the SELECT with its parameters: for `clickhouse client`, or as JSON."""
    if as_json:
        print_json({"sql": question.sql, "parameters": question.parameters})
    else:
        click.echo(question.as_script())


def answer(
    question: Question,
    show: Callable[[Rows], None],
    *,
    nothing: str | Callable[[Store], str],
    show_sql: bool,
    dsn: str | None,
    as_json: bool,
    complete: Callable[[Store, Rows], Rows] | None = None,
) -> int:
    """Print the rows of *question*, or with *show_sql* only its SQL; the exit code.

    Args:
        show: Prints rows for a person; not called where there is none.
        nothing: What to say to a person where there is no row; the exit code is 1 then.
        complete: Adds to the rows what else the store knows, while it is open.
    """
    if show_sql:
        print_sql(question, as_json=as_json)
        return 0
    with ready_store(dsn) as store:
        rows = question.ask(store)
        if complete is not None:
            rows = complete(store, rows)
        told = "" if rows else nothing if isinstance(nothing, str) else nothing(store)
    if as_json:
        print_json(rows)
    elif rows:
        show(rows)
    else:
        say(told, err=True)
    return 0 if rows else 1
