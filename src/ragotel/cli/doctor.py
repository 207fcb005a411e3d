"""Doctor: `ragotel doctor`, is everything that triage needs recorded, and does it arrive?

Pipeline: triage.doctor -> [cli]
"""

from __future__ import annotations

import dataclasses

import click

from ragotel.cli.options import common_options
from ragotel.cli.output import one_line, paint, print_json

_MARKS = {True: ("ok", "green"), False: ("NO", "red"), None: ("--", "yellow")}


@click.command("doctor", short_help="Send a canary through the real path and say what is captured.")
@click.option("--wait", "wait_s", default=10.0, show_default=True, help="Seconds until it arrives.")
@click.option("--days", default=7, show_default=True, help="Look at services over so many days.")
@common_options
def doctor(wait_s: float, days: int, dsn: str | None, as_json: bool) -> int:
    """Send a canary through the real path and say what is captured, what is not, and what mends it.

    The path is the one that a service with this environment would take (RAGOTEL_*, OTEL_*).
    """
    from ragotel.triage.doctor import examine

    diagnosis = examine(dsn, wait_s=wait_s, days=days)
    if as_json:
        checks = [dataclasses.asdict(check) for check in diagnosis.checks]
        print_json({"is_fine": diagnosis.is_fine, "checks": checks})
    else:
        for check in diagnosis.checks:
            mark, colour = _MARKS[check.is_fine]
            click.echo(f"{paint(mark, fg=colour)}  {check.name}: {one_line(check.found)}")
            if check.mend:
                click.echo(f"      {paint(check.mend, bold=True)}")
    return 0 if diagnosis.is_fine else 1


def register(group: click.Group) -> None:
    """Add `doctor` to *group*."""
    group.add_command(doctor)
