"""Doctor: `ragotel doctor`, is everything that triage needs recorded, and does it arrive?

Pipeline: triage.doctor | triage.parity -> [cli]
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from ragotel.cli.options import Amount, Whole, common_options, ready_store
from ragotel.cli.output import one_line, paint, print_json, say
from ragotel.cli.progress import counting

if TYPE_CHECKING:
    from ragotel.triage.parity import Difference, Parity

_MARKS = {True: ("ok", "green"), False: ("NO", "red"), None: ("--", "yellow")}


@click.command("doctor", short_help="Send a canary through the real path and say what is captured.")
@click.option(
    "--wait",
    "wait_s",
    type=Amount(86_400),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long it may take to arrive.",
)
@click.option(
    "--days",
    type=Whole(1, 36_500),
    default=7,
    show_default=True,
    help="Look at services over so many days.",
)
@click.option(
    "--parity",
    metavar="MODULE:FUNCTION",
    help="No canary: call this function traced and untraced, and compare the results.",
)
@click.option("--questions", metavar="FILE", help="Questions for --parity, one a line.")
@click.option("--set", "label_set", metavar="NAME", help="The questions of these labels instead.")
@click.option(
    "--attempts",
    type=Whole(1, 10),
    default=2,
    show_default=True,
    help="Ask a question that differs so many times before it counts.",
)
@common_options
def doctor(
    wait_s: float,
    days: int,
    parity: str | None,
    questions: str | None,
    label_set: str | None,
    attempts: int,
    dsn: str | None,
    as_json: bool,
) -> int:
    """Send a canary through the real path and say what is captured, what is not, and what mends it.

    The path is the one that a service with this environment would take (RAGOTEL_*, OTEL_*).

    With --parity the function is called with each question, once with its decorators and once
    without: "295 of 295 equal" proves that recording changes no result. Nothing is sent or stored.
    Exit code 1: a result differs.
    """
    if parity is not None:
        found = _prove(parity, questions, label_set, attempts, dsn)
        return _print_parity(found, as_json=as_json)
    if questions or label_set:
        raise click.UsageError("--questions and --set are questions for --parity.")
    from ragotel.triage.doctor import examine

    diagnosis = examine(dsn, wait_s=wait_s, days=days)
    if as_json:
        checks = [dataclasses.asdict(check) for check in diagnosis.checks]
        print_json({"is_fine": diagnosis.is_fine, "checks": checks})
    else:
        for check in diagnosis.checks:
            mark, colour = _MARKS[check.is_fine]
            say(f"{paint(mark, fg=colour)}  {check.name}: {one_line(check.found)}")
            if check.mend:
                say(f"      {paint(check.mend, bold=True)}")
    return 0 if diagnosis.is_fine else 1


def _prove(
    target: str, questions: str | None, label_set: str | None, attempts: int, dsn: str | None
) -> Parity:
    from ragotel.rehearsal import Rehearsal
    from ragotel.triage.parity import label_questions, prove, read_questions

    if (questions is None) == (label_set is None):
        raise click.UsageError("--parity needs --questions FILE or --set NAME, one of them.")
    if questions is not None:
        asked = read_questions(questions)
    else:
        with ready_store(dsn) as store:
            asked = label_questions(store, str(label_set))
    with Rehearsal() as rehearsal, counting("questions") as progress:
        return prove(rehearsal, target, asked, attempts=attempts, progress=progress)


def _print_parity(found: Parity, *, as_json: bool) -> int:
    if as_json:
        print_json({"is_equal": found.is_equal, **dataclasses.asdict(found)})
        return 0 if found.is_equal else 1
    say(f"{found.equal} of {found.asked} equal")
    if found.second_attempts:
        say(f"{found.second_attempts} of them not at the first attempt")
    for mark, colour, entries in (
        ("NO", "red", found.different),
        ("--", "yellow", found.unstable),
    ):
        for entry in entries:
            _print_difference(mark, colour, entry)
    if found.unstable:
        say(
            f"{len(found.unstable)} differ from call to call without tracing as well (--): "
            "fix seeds and caches, then prove again"
        )
    if not found.stages:
        say("nothing was recorded: neither the function nor what it calls is decorated")
    return 0 if found.is_equal else 1


def _print_difference(mark: str, colour: str, entry: Difference) -> None:
    say(f"{paint(mark, fg=colour)}  {one_line(entry.question)}")
    for place in entry.places:
        say(f"      {one_line(place)}")


def register(group: click.Group) -> None:
    """Add `doctor` to *group*."""
    group.add_command(doctor)
