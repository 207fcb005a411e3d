"""Check: `ragotel check`, for cron and CI: is everything within its limits?

Pipeline: alert views -> triage.check -> [cli]
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from ragotel.cli.options import common_options, ready_store
from ragotel.cli.output import clock, iso, one_line, paint, print_json, prose

if TYPE_CHECKING:
    from ragotel.triage.check import Checked

_NAMES = (
    *("corpus_gap", "bucket_limits", "bucket_deviation", "ingest", "degraded"),
    "capture_losses",
)
_IN_UNITS = ("chunks_deleted", "reranker_fallback")
"""Subjects that are counted, not shared."""


@click.command("check", short_help="Exit 1 where a limit is broken, with the window and why.")
@click.option("--since", default="1d", show_default=True, metavar="TIME", help="From this day on.")
@click.option("--until", default="now", show_default=True, metavar="TIME", help="Up to this day.")
@click.option("--service", metavar="NAME", help="Only this service.")
@click.option("--set", "label_set", metavar="NAME", help="Verdicts by labels of this set only.")
@click.option(
    "--alert",
    "names",
    multiple=True,
    type=click.Choice(_NAMES),
    help="Only this alert; may be given again.",
)
@common_options
def check(
    since: str,
    until: str,
    service: str | None,
    label_set: str | None,
    names: tuple[str, ...],
    dsn: str | None,
    as_json: bool,
) -> int:
    """See whether everything is within its limits: exit 0 and one line, or exit 1 and the reasons.

    Days are judged whole (UTC). `ragotel limits list` has the limits.
    """
    from ragotel.triage.check import ALERTS, Window, show_command
    from ragotel.triage.check import check as judge
    from ragotel.triage.times import parse_moment

    window = Window(parse_moment(since), parse_moment(until), service, label_set)
    if window.start >= window.end:
        raise click.UsageError(f"--since {since} is after --until {until}")
    with ready_store(dsn) as store:
        checked = judge(store, window, names or ALERTS)
    if as_json:
        alerts = [{**alert, "show": show_command(alert)} for alert in checked.alerts]
        print_json(
            {
                "is_fine": checked.is_fine,
                "since": iso(window.start),
                "until": iso(window.end),
                "judged": checked.judged,
                "alerts": alerts,
            }
        )
    elif checked.is_fine:
        click.echo(_fine(checked))
    else:
        for alert in checked.alerts:
            _print(alert, show_command(alert))
        count = len(checked.alerts)
        click.echo(
            f"{count} {'limit is' if count == 1 else 'limits are'} broken; {_days(checked)}."
        )
    return 0 if checked.is_fine else 1


def _fine(checked: Checked) -> str:
    judged = ", ".join(f"{count} {what}" for what, count in checked.judged.items())
    if not any(checked.judged.values()):
        return f"Nothing was there to judge ({judged}), {_days(checked)}."
    return f"All within limits: {judged}, {_days(checked)}."


def _days(checked: Checked) -> str:
    window = checked.window
    first, last = window.start.date(), (window.end - timedelta(days=1)).date()
    return f"{first}" if first == last else f"{first} to {last}"


def _print(alert: dict[str, Any], command: str) -> None:
    where = [alert["service_name"], alert["label_set"] and f"set {alert['label_set']}"]
    head = ", ".join(one_line(part) for part in where if part)
    at = clock(alert["window_at"])
    window = at[:10] if at.endswith("00:00:00") else at
    title = paint(f"{alert['name']}: {one_line(alert['subject'])}", fg="red", bold=True)
    click.echo(f"{title}  {window}  {head}".rstrip())
    click.echo(f"  {prose(one_line(alert['message']), 2)}")
    click.echo(
        f"  observed {_amount(alert, 'observed')}, allowed {_amount(alert, 'allowed')}, "
        f"of {alert['sample_count']}"
    )
    if command:
        click.echo(f"  {one_line(command)}")


def _amount(alert: dict[str, Any], name: str) -> str:
    value = alert[name]
    return f"{value:g}" if alert["subject"] in _IN_UNITS else f"{100 * value:.3g} %"


def register(group: click.Group) -> None:
    """Add `check` to *group*."""
    group.add_command(check)
