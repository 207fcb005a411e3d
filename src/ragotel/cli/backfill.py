"""Backfill: spans of other instrumentations that were there before the store could read them.

Pipeline: otel_traces -> [cli: backfill] -> store.backfill -> typed tables
"""

from __future__ import annotations

import click

from ragotel.cli.options import common_options, ready_store
from ragotel.cli.output import print_json, say
from ragotel.cli.progress import counting


@click.command("backfill", short_help="Read other instrumentations' spans again.")
@click.option(
    "--since",
    metavar="TIME",
    help="From the day of this time on (UTC); 7d, ...; default all.",
)
@click.option(
    "--convention",
    "conventions",
    multiple=True,
    metavar="NAME",
    help="Only traces of openinference, genai, traceloop, langfuse, mlflow or other.",
)
@common_options
def backfill(
    since: str | None, conventions: tuple[str, ...], dsn: str | None, as_json: bool
) -> None:
    """Derive requests, stages and prompts from the spans that other instrumentations wrote.

    Spans are read as they arrive; this reads those that came before the store's schema knew their
    convention, and traces again whose spans came in several batches: requests of one trace are
    told apart, and a call that two instrumentations wrote counts once. Run it as often as you like.
    """
    from ragotel.store.backfill import backfill as run
    from ragotel.triage.times import parse_moment

    day = None if since is None else parse_moment(since).start.date()
    with ready_store(dsn) as store, counting("spans") as progress:
        report = run(store, since=day, conventions=conventions, progress=progress)
    if as_json:
        print_json(report.as_dict())
        return
    days = len(report.days)
    say(
        f"{report.span_count:,} spans of {report.trace_count:,} traces read "
        f"({days} day{'s' * (days != 1)}), {report.rewritten_count:,} traces written anew."
    )


def register(group: click.Group) -> None:
    """Add `backfill` to *group*."""
    group.add_command(backfill)
