"""Ablate: `ragotel ablate` asks the model again from recorded prompts; `ablate load`.

Pipeline: recorded prompts -> triage.ablating -> rag_ablations -> triage views; [cli]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ragotel.cli.options import common_options, ready_store
from ragotel.cli.output import Column, one_line, print_json, print_rows
from ragotel.cli.progress import counting, print_report

if TYPE_CHECKING:
    from ragotel.store import Store
    from ragotel.triage.ablating import Ablator, Outcome

_MODES = ("gold_only", "full", "position")
_IN_PROMPT = ("generation_error", "passed", "ungraded")
_SHOWN = 5


def _counts(_: click.Context, option: click.Parameter, value: str) -> tuple[int, ...]:
    """Whole numbers from 1, with commas between."""
    try:
        found = tuple(sorted({int(part) for part in value.split(",")}))
    except ValueError:
        found = ()
    if not found or found[0] < 1:
        raise click.BadParameter(f"{value!r} is no list of whole numbers such as 1,3,5.")
    return found


def _place(_: click.Context, option: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """A row of the positions' table: position, slash, number of passages."""
    if value is None:
        return None
    position, _slash, of = value.partition("/")
    if not (position.isdigit() and of.isdigit()):
        raise click.BadParameter(f"{value!r} names no row; write 3/5 for position 3 of 5.")
    return int(position), int(of)


@click.group(
    "ablate",
    invoke_without_command=True,
    short_help="Ask the model again with the gold passage alone, or elsewhere.",
)
@click.option("--generator", metavar="MODULE:FUNCTION", help="Your model: (prompt) to answer.")
@click.option(
    "--judge",
    metavar="MODULE:FUNCTION",
    help="Your judge: (question, expected_answer, answer[, label]) to true, false or a grade.",
)
@click.option("--set", "label_set", metavar="NAME", help="The labels whose requests are ablated.")
@click.option(
    "--mode",
    "modes",
    multiple=True,
    type=click.Choice(_MODES),
    default=("gold_only",),
    show_default="gold_only",
    help="gold_only: the gold passage alone; full: the recorded prompt once more; position: the "
    "gold passage at other places. May be repeated.",
)
@click.option(
    "--positions", callback=_counts, metavar="N,N,...", default="1,3,5,10", show_default=True
)
@click.option(
    "--of", "lengths", callback=_counts, metavar="N,N,...", default="5,10", show_default=True
)
@click.option(
    "--against", callback=_place, metavar="POSITION/OF", help="Points lost against this row."
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the N newest requests.")
@click.option("--all", "is_all", is_flag=True, help="Also requests that were answered right.")
@click.option("--again", is_flag=True, help="Also what was ablated before.")
@common_options
@click.pass_context
def ablate(
    context: click.Context,
    generator: str | None,
    judge: str | None,
    label_set: str | None,
    modes: tuple[str, ...],
    positions: tuple[int, ...],
    lengths: tuple[int, ...],
    against: tuple[int, int] | None,
    limit: int | None,
    is_all: bool,
    again: bool,
    dsn: str | None,
    as_json: bool,
) -> int:
    """Ask the model again with the gold passage alone, or elsewhere: distraction or misuse?

    gold_only and full take requests whose claim stood in the prompt and whose answer was graded
    wrong; position takes all whose claim stood there. Prompts are made from the recorded one:
    template, question and instructions stay as they are, and nothing is retrieved again. One call
    of your model and one of your judge per run; what was ablated before is left out.

    Exit code 1: the model or the judge failed.
    """
    if context.invoked_subcommand is not None:
        return 0
    if not (generator and judge) or label_set is None:
        raise click.UsageError(
            "Give --generator and --judge MODULE:FUNCTION and --set NAME, or `load FILE`.", context
        )
    from ragotel.rehearsal import Rehearsal
    from ragotel.triage.ablating import Ablator, Plan, make_generator, make_judge
    from ragotel.triage.ablation_rates import ablations_question, positions_question

    with Rehearsal() as rehearsal:
        model, judging = make_generator(rehearsal, generator), make_judge(rehearsal, judge)
        with ready_store(dsn) as store:
            ablator = Ablator(store, rehearsal, model, judging, again)
            plain = tuple(mode for mode in modes if mode != "position")
            if plain:
                _run(ablator, Plan(plain), label_set, limit, is_wrong_only=not is_all)
            if "position" in modes:
                plan = Plan(("position",), positions, lengths)
                _run(ablator, plan, label_set, limit, is_wrong_only=False)
            rates = ablations_question(label_set).ask(store) if plain else []
            places = (
                positions_question(label_set, against).ask(store) if len(plain) < len(modes) else []
            )
    if as_json:
        print_json({**vars(ablator.outcome), "ablations": rates, "positions": places})
    else:
        _print(ablator.outcome, rates, places, against)
    return 1 if ablator.outcome.failures else 0


def _run(
    ablator: Ablator, plan: Any, label_set: str, limit: int | None, *, is_wrong_only: bool
) -> None:
    from ragotel.triage.ablation_cases import WRONG, find_cases

    store: Store = ablator.store
    if is_wrong_only:
        cases = find_cases(
            store, label_set, buckets=("generation_error",), grades=WRONG, limit=limit
        )
    else:
        cases = find_cases(store, label_set, buckets=_IN_PROMPT, limit=limit)
    with counting(f"of {len(cases):,} cases") as progress:
        ablator.run(cases, plan, progress)


def _print(
    outcome: Outcome,
    rates: Sequence[Mapping[str, Any]],
    places: Sequence[Mapping[str, Any]],
    against: tuple[int, int] | None,
) -> None:
    for failure in outcome.failures[:_SHOWN]:
        where = f"{failure['request_id']} ({failure['label_id']}, {failure['mode']})"
        click.echo(one_line(f"failed: {where}: {failure['reason']}"), err=True)
    if len(outcome.failures) > _SHOWN:
        more = len(outcome.failures) - _SHOWN
        click.echo(f"... and {more:,} more (--json names them all)", err=True)
    reasons = Counter(entry["reason"] for entry in outcome.skipped)
    for reason, count in reasons.most_common(_SHOWN):
        click.echo(one_line(f"skipped, {count:,} runs: {reason}"), err=True)
    if len(reasons) > _SHOWN:
        click.echo(f"... and {len(reasons) - _SHOWN:,} more reasons (--json)", err=True)
    failed = f", {len(outcome.failures):,} failed" if outcome.failures else ""
    skipped = f", {len(outcome.skipped):,} skipped" if outcome.skipped else ""
    before = f", {outcome.done_before:,} done before" if outcome.done_before else ""
    click.echo(f"{outcome.cases:,} cases, {outcome.asked:,} runs{failed}{skipped}{before}.")
    if rates:
        click.echo()
        print_rows([_percent(row, "distraction_delta") for row in rates], _RATES)
    if places:
        click.echo()
        print_rows([_percent(row, "share") for row in places], _places(against))


def _percent(row: Mapping[str, Any], column: str) -> dict[str, Any]:
    return {**row, column: f"{100 * row[column]:.1f} %"}


_RATES = (
    Column("service_name", "service"),
    Column("template_name", "template"),
    Column("template_version", "version"),
    Column("cases", is_number=True),
    Column("gold_only_correct", "right alone", is_number=True),
    Column("full_context_correct", "right in full", is_number=True),
    Column("distraction", "distraction (2b)", is_number=True),
    Column("misuse", "misuse (3)", is_number=True),
    Column("distraction_delta", "delta", is_number=True),
)


def _places(against: tuple[int, int] | None) -> tuple[Column, ...]:
    columns = [
        Column("service_name", "service"),
        Column("position", is_number=True),
        Column("of", is_number=True),
        Column("correct", is_number=True),
        Column("cases", "n", is_number=True),
        Column("share", is_number=True),
    ]
    if against is not None:
        title = f"points lost to {against[0]} of {against[1]}"
        return (*columns, Column("points_lost", title, is_number=True))
    return (
        *columns,
        Column("points_lost_by_length", "lost by length", is_number=True),
        Column("points_lost_by_position", "lost by position", is_number=True),
    )


@ablate.command("load", short_help="Load ablations (JSON lines).")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@common_options
def load_ablation(files: tuple[str, ...], dsn: str | None, as_json: bool) -> int:
    """Load FILEs of {"trace_id" | "request_id", "label_id", "mode", "position", "of", "correct"};
    mode is gold_only, position or full."""
    from ragotel.triage.ablations import load_ablations

    with ready_store(dsn) as store, counting("lines") as progress:
        report = load_ablations(store, files, progress)
    return print_report(report, "ablations", as_json=as_json)


def register(group: click.Group) -> None:
    """Add `ablate` to *group*."""
    group.add_command(ablate)
