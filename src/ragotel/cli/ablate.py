"""Ablate: `ragotel ablate` asks the model again from recorded prompts; `ablate load`.

Pipeline: recorded prompts -> triage.ablating -> rag_ablations -> triage views; [cli]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ragotel.cli.options import common_options, ready_store
from ragotel.cli.output import Column, print_json, print_rows, say
from ragotel.cli.progress import counting, print_report
from ragotel.cli.rehearsing import (
    echo_failures,
    echo_head,
    echo_reasons,
    figures_of,
    rehearsal_options,
    require,
)

if TYPE_CHECKING:
    from ragotel.store import Store
    from ragotel.triage.ablating import Ablator, Outcome, Plan

_MOST_PASSAGES = 10_000
_MODES = ("gold_only", "full", "position")
_OF_POSITIONS = {"positions": "--positions", "lengths": "--of", "against": "--against"}


def _counts(_: click.Context, option: click.Parameter, value: str) -> tuple[int, ...]:
    """Whole numbers from 1, with commas between."""
    try:
        found = tuple(sorted({int(part) for part in value.split(",")}))
    except ValueError:
        found = ()
    if not found or found[0] < 1 or found[-1] > _MOST_PASSAGES:
        raise click.BadParameter(f"{value!r} is no list of whole numbers such as 1,3,5.")
    return found


def _place(_: click.Context, option: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """A row of the positions' table: position, slash, number of passages."""
    if value is None:
        return None
    position, _slash, of = value.partition("/")
    if not all(part.isdecimal() and len(part) < 7 for part in (position, of)):
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
@rehearsal_options("ablated", "Also requests that were answered right.")
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

    Exit code 1: the model or the judge failed. A run that had nothing to do is fine, and says why.
    """
    if context.invoked_subcommand is not None:
        return 0
    needed = {
        "--generator MODULE:FUNCTION": generator,
        "--judge MODULE:FUNCTION": judge,
        "--set NAME": label_set,
    }
    require(context, needed)
    _refuse_misfits(context, modes)
    if "position" in modes and min(positions) > max(lengths):
        told = [",".join(map(str, counts)) for counts in (positions, lengths)]
        raise click.UsageError(f"None of --positions {told[0]} lies within --of {told[1]}.")
    generator, judge, label_set = str(generator), str(judge), str(label_set)
    from ragotel.rehearsal import Rehearsal
    from ragotel.triage.ablating import Ablator, Plan, make_generator, make_judge
    from ragotel.triage.ablation_rates import ablations_question, positions_question
    from ragotel.triage.probe_targets import has_runs

    plain = tuple(mode for mode in modes if mode != "position")
    plans = [Plan(plain)] if plain else []
    if "position" in modes:
        plans.append(Plan(("position",), positions, lengths))
    with Rehearsal() as rehearsal:
        model, judging = make_generator(rehearsal, generator), make_judge(rehearsal, judge)
        with ready_store(dsn) as store:
            _refuse_strange_row(store, label_set, against, plans[-1])
            has_earlier = has_runs(store, "rag_ablations", label_set, modes)
            ablator = Ablator(store, rehearsal, model, judging, again)
            found = [
                _run(ablator, plan, label_set, limit, is_wrong_only=not is_all) for plan in plans
            ]
            outcome = ablator.outcome
            reason = "" if any(found) else _why_no_case(store, label_set, plain, is_all)
            rates = ablations_question(label_set).ask(store) if plain else []
            places = (
                positions_question(label_set, against).ask(store) if "position" in modes else []
            )
    runs = figures_of(outcome.asked - len(outcome.failures), has_earlier=has_earlier)
    if as_json:
        figures = {"figures_of": runs, "ablations": rates, "positions": places}
        print_json({**vars(outcome), "nothing_found": reason or None, **figures})
    else:
        _print(outcome, reason)
        _print_figures(rates, places, against, runs)
    return 1 if outcome.failures else 0


def _refuse_misfits(context: click.Context, modes: Sequence[str]) -> None:
    """Refuse an option of the positions' table where that mode is not asked for."""
    for name, option in _OF_POSITIONS.items():
        is_given = context.get_parameter_source(name) is not ParameterSource.DEFAULT
        if is_given and "position" not in modes:
            raise click.UsageError(f"{option} goes with --mode position.", context)


def _refuse_strange_row(
    store: Store, label_set: str, against: tuple[int, int] | None, plan: Plan
) -> None:
    """Refuse points lost against a row that there is not and will not be, before any call."""
    from ragotel.triage.ablation_rates import stored_places

    if against is None:
        return
    asked = sorted({(position, of) for _, position, of in plan.runs()})
    stored = [] if against in asked else stored_places(store, label_set)
    if against not in (*asked, *stored):
        rows = [", ".join(f"{at}/{of}" for at, of in kind) or "none" for kind in (asked, stored)]
        raise click.UsageError(
            f"--against {against[0]}/{against[1]} is no row of the table: those asked for are "
            f"{rows[0]}, those stored are {rows[1]}."
        )


def _run(
    ablator: Ablator, plan: Plan, label_set: str, limit: int | None, *, is_wrong_only: bool
) -> int:
    """Ablate the set's cases; how many there were."""
    from ragotel.triage.ablation_cases import IN_PROMPT, WRONG, find_cases

    store: Store = ablator.store
    if is_wrong_only and "position" not in plan.modes:
        cases = find_cases(
            store, label_set, buckets=("generation_error",), grades=WRONG, limit=limit
        )
    else:
        cases = find_cases(store, label_set, buckets=IN_PROMPT, limit=limit)
    with counting(f"of {len(cases):,} cases") as progress:
        ablator.run(cases, plan, progress)
    return len(cases)


def _why_no_case(store: Store, label_set: str, plain: Sequence[str], is_all: bool) -> str:
    """What the set's requests are, where none of them is a case."""
    from ragotel.triage.ablation_cases import IN_PROMPT, verdicts_of

    verdicts = verdicts_of(store, label_set)
    is_wrong_only = bool(plain) and not is_all
    wanted = (
        "was graded wrong though its claim stood in the prompt"
        if is_wrong_only
        else "had its claim in the prompt"
    )
    told = f"no request of the set {label_set} {wanted}; "
    if not verdicts:
        return told + "no request met a label of it"
    told += "its verdicts are " + ", ".join(f"{name} {count:,}" for name, count in verdicts.items())
    if is_wrong_only and any(verdicts.get(name) for name in IN_PROMPT):
        told += " (--all takes those whose claim stood there)"
    return told


def _print(outcome: Outcome, reason: str) -> None:
    echo_failures(
        [
            f"{entry['request_id']} ({entry['label_id']}, {entry['mode']}): {entry['reason']}"
            for entry in outcome.failures
        ]
    )
    echo_reasons(Counter(entry["reason"] for entry in outcome.skipped).most_common())
    failed = len(outcome.failures)
    counts = (
        (failed, "failed"),
        (len(outcome.skipped), "skipped"),
        (outcome.done_before, "done before (--again repeats them)"),
    )
    told = [(f"{count:,}", what) for count, what in counts if count]
    if outcome.asked > failed:
        rest = "".join(f", {count} {what}" for count, what in told)
        say(f"{outcome.cases:,} cases, {outcome.asked:,} runs{rest}.")
    else:
        say(f"Nothing was ablated: {reason or ', '.join(f'{n} runs {what}' for n, what in told)}.")


def _print_figures(
    rates: Sequence[Mapping[str, Any]],
    places: Sequence[Mapping[str, Any]],
    against: tuple[int, int] | None,
    runs: str,
) -> None:
    """The tables of what is stored, under a head that says which runs they stand on."""
    if rates:
        echo_head(runs)
        print_rows([_percent(row, "distraction_delta") for row in rates], _RATES)
    if not places:
        return
    if against is not None and all(row["points_lost"] is None for row in places):
        say(f"--against {against[0]}/{against[1]}: no run of it is stored.", err=True)
        against = None
    echo_head(runs)
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
