"""Verdicts: `ragotel triage`, `ragotel buckets`.

Pipeline: triage views -> triage.verdicts -> [cli]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ragotel.cli.answering import answer
from ragotel.cli.options import Whole, common_options, sql_option
from ragotel.cli.output import Column, paint, print_rows, say, say_block
from ragotel.cli.show import fix_lines
from ragotel.triage.recut import resolve_advice

if TYPE_CHECKING:
    from ragotel.triage.verdicts import Slice

F = TypeVar("F", bound=Callable[..., Any])

_BUCKETS = (
    *("corpus_gap", "retrieval_miss", "context_problem", "generation_error", "passed"),
    *("ungraded", "not_answerable", "unknown"),
)
_NOTHING = "No labelled request is like that; labels meet requests by id, grade or question."
_TRIAGE = (
    Column("started_at", "time (UTC)"),
    Column("bucket"),
    Column("state"),
    Column("attribution"),
    Column("loss_stage", "lost at"),
    Column("request_id", "request"),
    Column("label_id", "label"),
    Column("question", is_text=True),
    Column("why", is_text=True),
)


def slice_options(function: F) -> F:
    """Give a command the options that make a Slice."""
    for option in (
        click.option("--service", metavar="NAME", help="Only this service."),
        click.option("--run", metavar="ID", help="Only this evaluation run."),
        click.option("--set", "label_set", metavar="NAME", help="Only labels of this set."),
        click.option("--until", metavar="TIME", help="Before this time, or up to this day's end."),
        click.option("--since", metavar="TIME", help="From this time or day on (UTC); 7d, ..."),
    ):
        function = option(function)
    return function


def slice_of(
    since: str | None,
    until: str | None,
    label_set: str | None,
    run: str | None,
    service: str | None,
) -> Slice:
    """The Slice that the options of `slice_options` mean; one that cannot hold anything is refused.

    Raises:
        UsageError: It ends before it begins.
    """
    from ragotel.triage.times import parse_moment
    from ragotel.triage.verdicts import Slice

    begin = None if since is None else parse_moment(since)
    end = None if until is None else parse_moment(until)
    if begin is not None and end is not None and begin.start >= max(end.end, end.start):
        raise click.UsageError(f"--since {since} is after --until {until}")
    return Slice(
        since=begin,
        until=end,
        label_set=label_set,
        run=run,
        service=service,
    )


@click.command("triage", short_help="List the verdicts of labelled requests.")
@slice_options
@click.option("--bucket", type=click.Choice(_BUCKETS), help="Only this verdict.")
@click.option("--limit", type=Whole(1, 10_000_000), default=50, show_default=True)
@sql_option
@common_options
def triage(
    since: str | None,
    until: str | None,
    label_set: str | None,
    run: str | None,
    service: str | None,
    bucket: str | None,
    limit: int,
    show_sql: bool,
    dsn: str | None,
    as_json: bool,
) -> int:
    """List the verdicts of labelled requests, newest first.

    A bucket is the first thing that went wrong; `unknown` says that the evidence for the next
    test was never recorded, and which.
    """
    from ragotel.triage.verdicts import triage_question, with_fixes

    question = triage_question(
        slice_of(since, until, label_set, run, service), bucket=bucket, limit=limit
    )
    return answer(
        question,
        _print_verdicts,
        nothing=_NOTHING,
        show_sql=show_sql,
        dsn=dsn,
        as_json=as_json,
        complete=with_fixes,
    )


def _print_verdicts(rows: list[dict[str, Any]]) -> None:
    """The verdicts, then what can be done, once for each kind of them."""
    columns = list(_TRIAGE)
    if any(row["arm"] for row in rows):
        columns.insert(1, Column("arm"))
    print_rows([_rounded(row) for row in rows], columns)
    kinds: dict[tuple[str, str, str, bool], list[dict[str, Any]]] = {}
    for row in rows:
        kind = (row["bucket"], row["loss_stage"], row["attribution"], bool(row["restated_in"]))
        kinds.setdefault(kind, []).append(row)
    for (bucket, loss_stage, attribution, is_behind), alike in sorted(kinds.items()):
        row = alike[0]
        if is_behind:
            row = {**row, "fixes_that_work": _of_labels(alike)}
        if row["fixes_that_work"]:
            say("")
            behind = " · stated under another id" if is_behind else ""
            say(paint(f"{bucket} · {attribution} · lost at {loss_stage}{behind}", bold=True))
            for line in fix_lines(row):
                say_block(line)


def _of_labels(rows: list[dict[str, Any]]) -> list[str]:
    """What brings the labels of *rows* up to date, all of them by one command for each set."""
    label_ids = sorted({row["label_id"] for row in rows})
    label_sets = sorted({row["label_set"] for row in rows})
    return resolve_advice(label_ids, label_sets, rows[0]["restated_in"][0])


@click.command("buckets", short_help="Count the verdicts by day, service, index, template or run.")
@slice_options
@click.option(
    "--by",
    type=click.Choice(("day", "service", "index", "template", "run", "set")),
    help="One group of rows for each.",
)
@sql_option
@common_options
def buckets(
    since: str | None,
    until: str | None,
    label_set: str | None,
    run: str | None,
    service: str | None,
    by: str | None,
    show_sql: bool,
    dsn: str | None,
    as_json: bool,
) -> int:
    """Count labelled requests by bucket; the shares of a group sum to 100 %.

    --since and --until count whole days.
    """
    from ragotel.triage.verdicts import GROUPINGS, buckets_question

    question = buckets_question(slice_of(since, until, label_set, run, service), by=by)
    columns = (
        *(Column(name) for name in (GROUPINGS[by] if by else ())),
        Column("bucket"),
        Column("requests", is_number=True),
        Column("percent", "share", is_number=True),
        Column("labelled_requests", "of", is_number=True),
    )
    return answer(
        question,
        lambda rows: print_rows([_rounded(row) for row in rows], columns),
        nothing=_NOTHING,
        show_sql=show_sql,
        dsn=dsn,
        as_json=as_json,
    )


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Shares as a person reads them; the request's id where it has one."""
    shown: dict[str, Any] = {
        name: f"{value:.3f}" if isinstance(value, float) and value == value else value
        for name, value in row.items()
    }
    if "share" in row:
        shown["percent"] = f"{100 * row['share']:.1f} %"
    if "request_id" in row:
        shown["request_id"] = row["request_id"] or row["trace_id"]
    return shown


def register(group: click.Group) -> None:
    """Add `triage` and `buckets` to *group*."""
    group.add_command(triage)
    group.add_command(buckets)
