"""Retention: `ragotel retention`, how long each kind is kept; `set` and `apply`.

Pipeline: person -> triage.retention -> rag_retention and the tables; [cli]
"""

from __future__ import annotations

import re
from dataclasses import asdict

import click

from ragotel.cli.options import common_options, ready_store
from ragotel.cli.output import Column, print_json, print_rows, say

_NO_DAYS = "{!r:.80} is no number of days to keep it: write 1 to 36500, or forever."
_KINDS = ("traces", "prompts", "requests", "chunks", "losses")
_TABLES = (
    Column("kind"),
    Column("days", is_number=True),
    Column("table_name", "table"),
    Column("older", is_number=True),
    Column("exempt", is_number=True),
    Column("deleted", is_number=True),
)


@click.group("retention", short_help="Say how long each kind is kept, and delete what is older.")
def retention() -> None:
    """How long traces, prompts, requests, chunks and losses are kept; for good unless set.

    Requests with a label, grade, complaint, attachment, probe, ablation or decision are exempt,
    and chunks that a manifest or a request names.
    """


@retention.command("show", short_help="Show days, and what `apply` would delete.")
@common_options
def show(dsn: str | None, as_json: bool) -> None:
    """Show how long each kind is kept, and count what is older; nothing is deleted."""
    _apply(dsn, as_json, is_dry=True)


class SetCommand(click.Command):
    """A number of days below 0 is no option, so that it is told for what it is."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for entry in args:
            if re.fullmatch(r"-[0-9.]+", entry):
                raise click.UsageError(_NO_DAYS.format(entry), ctx)
        return super().parse_args(ctx, args)


@retention.command("set", cls=SetCommand, short_help="Keep a kind for so many days.")
@click.argument("kind", metavar="KIND", type=click.Choice(_KINDS))
@click.argument("days", metavar="DAYS|forever")
@common_options
def set_days(kind: str, days: str, dsn: str | None, as_json: bool) -> None:
    """Keep KIND for DAYS; `forever` undoes it. Nothing is deleted before `apply`."""
    from ragotel.triage.retention import set_days as write_days

    limit = None if days == "forever" else _days(days)
    with ready_store(dsn) as store:
        write_days(store, kind, limit)
    if as_json:
        print_json({"kind": kind, "days": limit})
        return
    say(f"{kind} are kept {'for good' if limit is None else f'for {limit} days'}.")


def _days(text: str) -> int:
    days = text.strip()
    if not (days.isdecimal() and len(days) < 9 and 1 <= int(days) <= 36_500):
        raise click.UsageError(_NO_DAYS.format(text))
    return int(days)


@retention.command("apply", short_help="Delete what is older.")
@click.option("--dry-run", "is_dry", is_flag=True, help="Count what would go; delete nothing.")
@common_options
def apply(is_dry: bool, dsn: str | None, as_json: bool) -> None:
    """Delete what is older than its kind allows and not exempt; to be run once a day."""
    _apply(dsn, as_json, is_dry=is_dry)


def _apply(dsn: str | None, as_json: bool, is_dry: bool) -> None:
    from ragotel.triage.retention import apply as apply_days

    with ready_store(dsn) as store:
        rows = [asdict(row) for row in apply_days(store, is_dry=is_dry)]
    if as_json:
        print_json({"is_dry_run": is_dry, "tables": rows})
        return
    shown = [{**row, "days": "forever" if row["days"] is None else row["days"]} for row in rows]
    titled = [*_TABLES[:5], Column("deleted", "to delete", is_number=True)] if is_dry else _TABLES
    print_rows(shown, titled)


def register(group: click.Group) -> None:
    """Add `retention` to *group*."""
    group.add_command(retention)
