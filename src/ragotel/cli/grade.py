"""Grade and complaint: `ragotel grade REQUEST GRADE`, `ragotel grade load`, `ragotel complaint`.

Pipeline: person | file -> triage.grades | triage.complaints -> store; [cli]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ragotel.cli.options import common_options, ready_store
from ragotel.cli.output import print_json, say
from ragotel.cli.progress import counting, print_report

if TYPE_CHECKING:
    from ragotel.store import Store

_GRADES = ("correct", "wrong", "abstained")
_SOURCES = ("human", "exact", "judge")


class GradeGroup(click.Group):
    """`grade load FILE`, and `grade REQUEST GRADE` for everything else."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            args = ["REQUEST", *args]
        return super().resolve_command(ctx, args)


@click.group(
    "grade",
    cls=GradeGroup,
    short_help="Say whether an answer was right.",
    context_settings={"ignore_unknown_options": True},
)
def grade() -> None:
    """Say whether an answer was right.

    \b
    ragotel grade REQUEST correct|wrong|abstained
    ragotel grade load FILE...

    Where sources differ, human comes before exact before judge, then the newest.
    """


@grade.command("REQUEST", hidden=True)
@click.argument("request_ref", metavar="REQUEST")
@click.argument("value", metavar="GRADE", type=click.Choice(_GRADES))
@click.option("--label", "label_id", default="", metavar="ID", help="The label it is judged by.")
@click.option("--source", type=click.Choice(_SOURCES), default="human", show_default=True)
@click.option("--by", "graded_by", default="", metavar="NAME", help="Who or what graded.")
@click.option("--note", default="", help="Anything worth keeping.")
@common_options
def grade_one(
    request_ref: str,
    value: str,
    label_id: str,
    source: str,
    graded_by: str,
    note: str,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Grade the answer of REQUEST (a request or trace id, or the beginning of one)."""
    from ragotel.triage.grades import Grade, write_grades
    from ragotel.triage.references import resolve_request

    with ready_store(dsn) as store:
        key = resolve_request(store, request_ref)
        _check_label(store, label_id)
        write_grades(store, [Grade(key, value, source, label_id, graded_by, note)])
    if as_json:
        print_json({**key._asdict(), "grade": value, "source": source, "label_id": label_id})
        return
    say(f"{key.request_id or key.trace_id} is graded {value} ({source}).")


@grade.command("load", short_help="Load grades (JSON lines).")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@common_options
def load(files: tuple[str, ...], dsn: str | None, as_json: bool) -> int:
    """Load FILEs of {"trace_id" | "request_id", "label_id", "grade", "source", "by", "note"}."""
    from ragotel.triage.grades import load_grades

    with ready_store(dsn) as store, counting("lines") as progress:
        report = load_grades(store, files, progress)
    return print_report(report, "grades", as_json=as_json)


@click.command("complaint", short_help="Record what a user complained about.")
@click.argument("request_ref", metavar="REQUEST")
@click.option("--text", required=True, help="What the user said.")
@click.option("--grade", "value", type=click.Choice(_GRADES), help="Whether the answer was right.")
@click.option("--label", "label_id", default="", metavar="ID", help="The label it is judged by.")
@click.option("--by", "reported_by", default="", metavar="NAME", help="Who complained.")
@click.option("--at", "at", metavar="TIME", help="When, if not now: 2026-11-19, 11d, ... (UTC).")
@common_options
def complaint(
    request_ref: str,
    text: str,
    value: str | None,
    label_id: str,
    reported_by: str,
    at: str | None,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Record a complaint about the answer of REQUEST; a grade given with it is a person's."""
    from ragotel.triage.complaints import write_complaint
    from ragotel.triage.references import resolve_request
    from ragotel.triage.times import parse_moment

    if not text.strip():
        raise click.UsageError("--text is empty: say what the user said.")
    moment = None if at is None else parse_moment(at).middle
    with ready_store(dsn) as store:
        key = resolve_request(store, request_ref)
        _check_label(store, label_id)
        complaint_id = write_complaint(
            store,
            key,
            text=text,
            grade=value or "",
            label_id=label_id,
            reported_by=reported_by,
            complained_at=moment,
        )
    if as_json:
        print_json({"complaint_id": complaint_id, **key._asdict()})
        return
    say(f"Complaint {complaint_id} is kept with {key.request_id or key.trace_id}.")


def _check_label(store: Store, label_id: str) -> None:
    from ragotel.triage.labels import check_label

    if label_id:
        check_label(store, label_id)


def register(group: click.Group) -> None:
    """Add `grade` and `complaint` to *group*."""
    group.add_command(grade)
    group.add_command(complaint)
