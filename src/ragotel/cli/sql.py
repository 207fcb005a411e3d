"""Sql: any statement, its result in any of ClickHouse's formats.

Pipeline: views -> store -> [cli]
"""

from __future__ import annotations

import io
import re
import sys
from typing import Any

import click

from ragotel.cli.options import common_options
from ragotel.cli.output import is_terminal
from ragotel.store import Store

_COMMENTS = re.compile(r"\s*(?:--[^\n]*(?:\n|$)|/\*.*?\*/)", re.DOTALL)
_ANSWERS = re.compile(
    r"\s*\(*\s*(select|with|show|describe|desc|explain|exists|from|values)\b", re.I
)
_OWN_FORMAT = re.compile(r"\bformat\s+([A-Za-z]\w*)\s*$", re.IGNORECASE)
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BLOCK = 1 << 16


class SqlCommand(click.Command):
    """A query may begin with a comment, as every file of the schema does: that is no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(
            ctx, [f" {entry}" if re.match(r"--\s", entry) else entry for entry in args]
        )


@click.command("sql", cls=SqlCommand, short_help="Ask the store any SQL.")
@click.argument("query", required=False)
@click.option(
    "--format",
    "output_format",
    metavar="NAME",
    help="Any format of ClickHouse (CSVWithNames, JSON, Vertical, ...). "
    "Default: a table on a terminal, TSVWithNames when piped.",
)
@common_options
def sql(query: str | None, output_format: str | None, dsn: str | None, as_json: bool) -> None:
    """Run QUERY (or standard input) and print its result.

    \b
    ragotel sql "select bucket, count() from triage_requests group by bucket"
    """
    from ragotel.store import open_store

    statement = _statement(query)
    if as_json and output_format:
        raise click.UsageError("--json and --format exclude each other")
    chosen = "JSONEachRow" if as_json else output_format
    with open_store(dsn, create=False) as store:
        if _ANSWERS.match(_without_comments(statement)):
            _print_answer(store, statement, chosen, as_list=as_json)
        else:
            _print_outcome(store.command(statement))


def _statement(query: str | None) -> str:
    if query in (None, "-"):
        if sys.stdin.isatty():
            raise click.UsageError("give a query, or pipe one in")
        query = sys.stdin.read()
    statement = (query or "").strip().rstrip(";").rstrip()
    if not _without_comments(statement).strip():
        raise click.UsageError("the query is empty")
    return statement


def _without_comments(statement: str) -> str:
    rest = statement
    while found := _COMMENTS.match(rest):
        rest = rest[found.end() :]
    return rest


def _print_answer(store: Store, statement: str, chosen: str | None, *, as_list: bool) -> None:
    own = _OWN_FORMAT.search(statement)
    if own:
        statement = statement[: own.start()]
        chosen = chosen or own[1]
    is_table = chosen is None and is_terminal()
    name = chosen or ("PrettyCompactMonoBlock" if is_table else "TSVWithNames")
    settings = {"output_format_json_array_of_rows": 1} if as_list else {}
    stream = store.client.raw_stream(statement, fmt=name, settings=settings)
    _copy(stream, visible=is_terminal() and name.startswith(("Pretty", "TSV", "Vertical")))


def _copy(stream: Any, *, visible: bool) -> None:
    """Copy *stream* to stdout; with *visible*, characters that a terminal would obey are shown."""
    out = getattr(sys.stdout, "buffer", None)
    reader = io.BufferedReader(stream, _BLOCK) if isinstance(stream, io.RawIOBase) else stream
    while block := reader.read(_BLOCK):
        if visible or out is None:
            text = block.decode("utf-8", "replace")
            click.echo(_OBEYED.sub(lambda found: f"\\x{ord(found[0]):02x}", text), nl=False)
        else:
            out.write(block)
    if out is not None:
        out.flush()


def _print_outcome(outcome: Any) -> None:
    """What a statement without rows returned: nothing for most, a text for some."""
    if isinstance(outcome, str | int) and outcome != "":
        click.echo(str(outcome))


def register(group: click.Group) -> None:
    """Add `sql` to *group*."""
    group.add_command(sql)
