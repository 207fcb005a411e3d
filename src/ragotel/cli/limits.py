"""Limits: `ragotel limits set`, `ragotel limits list`.

Pipeline: person -> triage.limits -> rag_limits; [cli]
"""

from __future__ import annotations

import math

import click

from ragotel.cli.options import Whole, common_options, ready_store
from ragotel.cli.output import Column, print_json, print_rows, say

_LIST = (
    Column("limit_name", "limit"),
    Column("service", "service"),
    Column("max_share_text", "max share", is_number=True),
    Column("max_deviation_text", "max deviation", is_number=True),
    Column("min_sample", "min sample", is_number=True),
    Column("written_at", "set (UTC)"),
)


def _share(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A share, `5%` or `0.05`, or a factor: a finite number of 0 or more."""
    if value is None:
        return None
    text = value.strip()
    try:
        number = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise click.BadParameter(f"{value!r} is no share: write 5% or 0.05.", ctx, param)
    return number


@click.group("limits", short_help="Set and list what is allowed before an alert is raised.")
def limits() -> None:
    """What `ragotel check` and the alert views allow.

    Each limit is built in; what is set for a service comes before what is set for all.
    """


@limits.command("set", short_help="Set a limit.")
@click.argument("limit_name", metavar="NAME")
@click.option("--service", default="", metavar="NAME", help="For this service only.")
@click.option(
    "--max-share", callback=_share, metavar="SHARE", help="Above it is an alert: 5%, 0.05."
)
@click.option(
    "--max-deviation",
    callback=_share,
    metavar="SHARE",
    help="So far from the baseline is an alert; for chunks_deleted, so many times the usual.",
)
@click.option(
    "--min-sample",
    type=Whole(1, 4_000_000_000),
    metavar="N",
    help="With fewer nothing is judged; for reranker_fallback, N requests running.",
)
@click.option("--built-in", is_flag=True, help="Go back to what is built in.")
@common_options
def set_limit(
    limit_name: str,
    service: str,
    max_share: float | None,
    max_deviation: float | None,
    min_sample: int | None,
    built_in: bool,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Set the limit NAME, for all services or one; what is not named stays as it is built in.

    \b
    ragotel limits set generation_error --max-share 10%
    ragotel limits set spans_lost --max-share 0.1% --service support-bot
    """
    from ragotel.triage.limits import Limit, check_limit, write_limit

    limit = Limit(limit_name, service.strip(), max_share, max_deviation, min_sample)
    if bool(limit.given) == built_in:
        raise click.UsageError(
            "Name --max-share, --max-deviation or --min-sample, or --built-in to undo them."
        )
    check_limit(limit)
    if max_share is not None and max_share > 1:
        raise click.UsageError(f"--max-share {max_share:g} is more than all: write 5% or 0.05")
    with ready_store(dsn) as store:
        write_limit(store, limit)
    if as_json:
        print_json({**vars(limit), "is_built_in": built_in})
        return
    values = ", ".join(f"{name} {_text(limit_name, name, v)}" for name, v in limit.given.items())
    whose = service.strip() or "all services"
    say(f"{limit_name} of {whose}: {values or 'as it is built in'}.")


@limits.command("list", short_help="List the limits in force.")
@common_options
def list_limits(dsn: str | None, as_json: bool) -> None:
    """List every limit in force; one without a time is built in."""
    from ragotel.triage.limits import limits_in_force

    with ready_store(dsn) as store:
        rows = limits_in_force(store)
    if as_json:
        print_json(rows)
        return
    shown = [
        {
            **row,
            "service": row["service_name"] or "all",
            **{
                f"{name}_text": _text(row["limit_name"], name, row[name])
                for name in ("max_share", "max_deviation")
            },
        }
        for row in rows
    ]
    print_rows(shown, _LIST)


def _text(limit_name: str, name: str, value: float | int | None) -> str:
    """A value as a person reads it: shares in per cent, a factor as `3 x`, no limit as blank."""
    if value is None:
        return ""
    if name == "min_sample":
        return str(value)
    if limit_name == "chunks_deleted" and name == "max_deviation":
        return f"{value:g} x"
    return f"{100 * value:.4g} %"


def register(group: click.Group) -> None:
    """Add `limits` to *group*."""
    group.add_command(limits)
