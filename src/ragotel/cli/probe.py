"""Probe: `ragotel probe` searches deeply for the gold passages that were missed; `probe load`.

Pipeline: triage views -> triage.probing -> rag_probes -> triage views; file -> triage.probes; [cli]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ragotel.cli.options import common_options, ready_store
from ragotel.cli.output import Column, one_line, print_json, print_rows
from ragotel.cli.progress import counting, print_report

if TYPE_CHECKING:
    from ragotel.rehearsal import Rehearsal
    from ragotel.triage.probing import Leg, Outcome

_SHOWN_FAILURES = 5
_SKIPS = {
    "already_probed": "probed before, as deeply (--again repeats them)",
    "other_version": "not probed: another index version served their requests",
    "version_not_recorded": "not probed: their requests do not say which index version served",
    "no_principal": "not probed: the search needs a principal, and neither label nor --principal "
    "names one",
}
_BANDS = {
    "within_k": "within k",
    "near_misses": "near miss: up to 2 k",
    "distant": "distant: beyond 2 k",
    "k_unknown": "found; the request's k is not recorded",
    "not_found": "not found by the probe",
    "not_probed": "not probed",
}


@click.group(
    "probe",
    invoke_without_command=True,
    short_help="Search deeply for the gold passages that were missed.",
)
@click.option("--retriever", metavar="MODULE:FUNCTION", help="Your search: (question, k).")
@click.option(
    "--leg",
    "legs",
    multiple=True,
    metavar="NAME=MODULE:FUNCTION",
    help="One search of several, under its own name; may be repeated.",
)
@click.option("--set", "label_set", metavar="NAME", help="The labels whose requests are probed.")
@click.option("--k", type=click.IntRange(1, 5000), default=200, show_default=True)
@click.option(
    "--index-version",
    default="",
    metavar="VERSION",
    help="The index version that the search reads; else what the search says itself.",
)
@click.option(
    "--principal", default="", metavar="NAME", help="As whom to search where a label names nobody."
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the N newest requests.")
@click.option("--all", "is_all", is_flag=True, help="Every passage, not only those missed.")
@click.option("--again", is_flag=True, help="Also what was probed before.")
@common_options
@click.pass_context
def probe(
    context: click.Context,
    retriever: str | None,
    legs: tuple[str, ...],
    label_set: str | None,
    k: int,
    index_version: str,
    principal: str,
    limit: int | None,
    is_all: bool,
    again: bool,
    dsn: str | None,
    as_json: bool,
) -> int:
    """Search deeply for the gold passages that were missed: near miss, or far away?

    Your own search is called once per question and principal, with a large k. It may be sync or
    async and return any shape of candidates. Nothing of it is recorded as a request. Only requests
    that the same index version served are probed; what was probed before is left out, so that a run
    that was broken off goes on.

    Exit code 1: a search failed.
    """
    if context.invoked_subcommand is not None:
        return 0
    if not (retriever or legs) or label_set is None:
        raise click.UsageError(
            "Give --retriever MODULE:FUNCTION and --set NAME, or `load FILE`.", context
        )
    from ragotel.rehearsal import Rehearsal
    from ragotel.triage.probe_targets import find_targets
    from ragotel.triage.probing import Prober

    with Rehearsal() as rehearsal:
        loaded = _load_legs(rehearsal, retriever, legs)
        with ready_store(dsn) as store:
            targets = find_targets(store, label_set, is_all=is_all, limit=limit)
            prober = Prober(
                store=store,
                rehearsal=rehearsal,
                legs=loaded,
                k=k,
                given_version=index_version,
                default_principal=principal,
                again=again,
            )
            questions = len({(target.question, target.principal) for target in targets})
            with counting(f"of {questions:,} questions") as progress:
                outcome = prober.run(targets, progress)
            bands = _bands(store, label_set, outcome.versions, is_all)
    if as_json:
        print_json(_as_dict(outcome, bands))
    else:
        _print(outcome, bands, k)
    return 1 if outcome.failures else 0


def _load_legs(rehearsal: Rehearsal, retriever: str | None, legs: Sequence[str]) -> list[Leg]:
    from ragotel.triage.probing import make_leg

    loaded = [make_leg(rehearsal, retriever)] if retriever else []
    for leg in legs:
        name, equals, target = leg.partition("=")
        if not (name and equals):
            raise click.UsageError(f"--leg {leg!r} is not NAME=MODULE:FUNCTION.")
        loaded.append(make_leg(rehearsal, target, name))
    return loaded


def _bands(
    store: Any, label_set: str, versions: Sequence[str], is_all: bool
) -> dict[str, Any] | None:
    from ragotel.triage.probe_bands import bands_question

    rows = bands_question(label_set, versions, is_all=is_all).ask(store)
    return rows[0] if rows and rows[0]["passages"] else None


def _as_dict(outcome: Outcome, bands: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        "probed": outcome.probed,
        "found": outcome.found,
        "searches": outcome.asked,
        "index_versions": outcome.versions,
        "skipped": dict(outcome.skipped),
        "failures": outcome.failures,
        "notes": outcome.notes,
        "deep_ranks": bands,
    }


def _print(outcome: Outcome, bands: Mapping[str, Any] | None, k: int) -> None:
    for failure in outcome.failures[:_SHOWN_FAILURES]:
        where = f"{failure['request_id']}: {failure['question']!r}: {failure['error']}"
        click.echo(one_line(f"failed: {where}"), err=True)
    if len(outcome.failures) > _SHOWN_FAILURES:
        more = len(outcome.failures) - _SHOWN_FAILURES
        click.echo(f"... and {more:,} more (--json names them all)", err=True)
    for note in outcome.notes:
        click.echo(one_line(f"note: {note}"), err=True)
    if not outcome.asked and not outcome.skipped:
        click.echo("No passage of this set was missed." if bands is None else "Nothing was probed.")
        return
    versions = f" of index version {', '.join(outcome.versions)}" if outcome.versions else ""
    failed = f", {len(outcome.failures):,} of them failed" if outcome.failures else ""
    click.echo(
        f"{outcome.probed:,} passages probed by {outcome.asked:,} searches{versions}{failed}: "
        f"{outcome.found:,} found within {k:,}, {outcome.probed - outcome.found:,} not."
    )
    for reason, count in outcome.skipped.items():
        click.echo(f"{count:,} passages {_SKIPS[reason]}.")
    if bands is not None:
        _print_bands(bands)


def _print_bands(bands: Mapping[str, Any]) -> None:
    from ragotel.triage.probe_bands import REACHES, reach_sentence

    count = bands["passages"]
    rows = [
        {"band": title, "passages": bands[name], "share": f"{100 * bands[name] / count:.1f} %"}
        for name, title in _BANDS.items()
        if bands[name]
    ]
    rows += [
        {
            "band": f"a reranker over the top {reach} can reach",
            "passages": bands[f"reachable_within_{reach}"],
            "share": f"{100 * bands[f'reachable_within_{reach}'] / count:.1f} %",
        }
        for reach in REACHES
    ]
    click.echo()
    print_rows(
        rows,
        (
            Column("band", "deep rank"),
            Column("passages", is_number=True),
            Column("share", is_number=True),
        ),
    )
    click.echo(f"\n{reach_sentence(bands)}")


@probe.command("load", short_help="Load probes (JSON lines).")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@common_options
def load_probe(files: tuple[str, ...], dsn: str | None, as_json: bool) -> int:
    """Load FILEs of {"trace_id" | "request_id", "label_id", "passage", "leg", "principal", "k",
    "deep_rank", "score", "index_version"}; deep_rank null means: not within k."""
    from ragotel.triage.probes import load_probes

    with ready_store(dsn) as store, counting("lines") as progress:
        report = load_probes(store, files, progress)
    return print_report(report, "probes", as_json=as_json)


def register(group: click.Group) -> None:
    """Add `probe` to *group*."""
    group.add_command(probe)
