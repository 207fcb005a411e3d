"""Check: `ragotel check`, for cron and CI: is everything within its limits?

Pipeline: alert views -> triage.check -> [cli]
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from ragotel.cli.options import common_options, ready_store
from ragotel.cli.output import clock, iso, one_line, paint, print_json, prose, say, say_block

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
@click.option("--require-data", is_flag=True, help="Exit 1 also where nothing was there to judge.")
@common_options
def check(
    since: str,
    until: str,
    service: str | None,
    label_set: str | None,
    names: tuple[str, ...],
    require_data: bool,
    dsn: str | None,
    as_json: bool,
) -> int:
    """See whether everything is within its limits: exit 0 and one line, or exit 1 and the reasons.

    Days are judged whole (UTC). `ragotel limits list` has the limits. Where nothing was there to
    judge, stderr says so; no limit is broken by that, but with --require-data the exit code is 1.
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
                "is_judged": checked.is_judged,
                "since": iso(window.start),
                "until": iso(window.end),
                "judged": checked.judged,
                "alerts": alerts,
            }
        )
    elif not checked.is_fine:
        for alert in checked.alerts:
            _print(alert, show_command(alert))
        count = len(checked.alerts)
        say(f"{count} {'limit is' if count == 1 else 'limits are'} broken; {_days(checked)}.")
    elif checked.is_judged:
        say(f"All within limits: {_judged(checked)}, {_days(checked)}.")
    else:
        say(f"Nothing was there to judge ({_judged(checked)}), {_days(checked)}.", err=True)
    return 0 if checked.is_fine and (checked.is_judged or not require_data) else 1


def _judged(checked: Checked) -> str:
    return ", ".join(f"{count} {what}" for what, count in checked.judged.items())


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
    say(f"{title}  {window}  {head}".rstrip())
    say_block(f"  {prose(one_line(alert['message']), 2)}")
    say(
        f"  observed {_amount(alert, 'observed')}, allowed {_amount(alert, 'allowed')}, "
        f"of {alert['sample_count']}"
    )
    if command:
        say(f"  {one_line(command)}")


def _amount(alert: dict[str, Any], name: str) -> str:
    value = alert[name]
    return f"{value:g}" if alert["subject"] in _IN_UNITS else f"{100 * value:.3g} %"


def register(group: click.Group) -> None:
    """Add `check` to *group*."""
    group.add_command(check)
