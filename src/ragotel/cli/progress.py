"""Progress: a counter on stderr while long work runs, and what a load did, at its end.

Pipeline: file -> triage -> [cli]. Nothing is printed while it runs where stderr is no terminal.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

import click

from ragotel.cli.output import one_line, print_json, say
from ragotel.triage.lines import Report

_EVERY_S = 0.2
_SHOWN_REFUSALS = 20
_SHOWN_NOTES = 5


@contextlib.contextmanager
def counting(what: str) -> Iterator[Callable[[int], None]]:
    """A function that shows how many *what* there are so far, in place, a few times a second."""
    shown_at = time.monotonic()
    is_shown = False

    def show(count: int) -> None:
        nonlocal shown_at, is_shown
        if sys.stderr.isatty() and time.monotonic() - shown_at > _EVERY_S:
            click.echo(f"\r{count:,} {what} ...", nl=False, err=True)
            shown_at, is_shown = time.monotonic(), True

    try:
        yield show
    finally:
        if is_shown:
            click.echo("\r\x1b[K", nl=False, err=True)


def print_report(report: Report, what: str, *, as_json: bool) -> int:
    """Print what a load did, its refusals on stderr; the exit code (1 where lines were refused).

    A file without lines is told and is no fault: on a quiet day nobody graded anything.
    """
    if as_json:
        print_json(report.as_dict())
        return 1 if report.refused else 0
    for refusal in report.refused[:_SHOWN_REFUSALS]:
        say(one_line(str(refusal)), err=True)
    if len(report.refused) > _SHOWN_REFUSALS:
        more = len(report.refused) - _SHOWN_REFUSALS
        say(f"... and {more:,} more (--json names them all)", err=True)
    for note in report.notes[:_SHOWN_NOTES]:
        say(one_line(note), err=True)
    if len(report.notes) > _SHOWN_NOTES:
        say(f"... and {len(report.notes) - _SHOWN_NOTES:,} more notes (--json)", err=True)
    refused = f", {len(report.refused):,} refused" if report.refused else ""
    say(f"{report.loaded:,} {what} loaded{refused}.")
    return 1 if report.refused else 0
