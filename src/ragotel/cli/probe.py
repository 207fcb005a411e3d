"""Probe: `ragotel probe` searches deeply for the gold passages that were missed; `probe load`.

Pipeline: triage views -> triage.probing -> rag_probes -> triage views; file -> triage.probes; [cli]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ragotel.cli.options import Whole, common_options, ready_store
from ragotel.cli.output import Column, counted, one_line, print_json, print_rows, say
from ragotel.cli.progress import counting, print_report
from ragotel.cli.rehearsing import (
    echo_failures,
    echo_head,
    figures_of,
    rehearsal_options,
    require,
)

if TYPE_CHECKING:
    from ragotel.rehearsal import Rehearsal
    from ragotel.triage.probing import Leg, Outcome

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
@click.option("--k", type=Whole(1, 5_000), default=200, show_default=True)
@click.option(
    "--index-version",
    default="",
    metavar="VERSION",
    help="The index version that the search reads; else what the search says itself.",
)
@click.option(
    "--principal", default="", metavar="NAME", help="As whom to search where a label names nobody."
)
@rehearsal_options("probed", "Every passage, not only those missed.")
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

    Exit code 1: a search failed. A run that had nothing to do is fine, and says why.
    """
    if context.invoked_subcommand is not None:
        return 0
    search = "--retriever MODULE:FUNCTION (or --leg NAME=MODULE:FUNCTION)"
    require(context, {search: retriever or legs, "--set NAME": label_set})
    label_set = str(label_set)
    from ragotel.rehearsal import Rehearsal
    from ragotel.triage.probe_targets import find_targets, has_runs
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
            has_earlier = has_runs(store, "rag_probes", label_set)
            questions = counted(prober.questions(targets), "question")
            with counting(f"of {questions}") as progress:
                outcome = prober.run(targets, progress)
            bands = _bands(store, label_set, outcome.versions, is_all)
    runs = figures_of(outcome.kept, has_earlier=has_earlier)
    if as_json:
        print_json(_as_dict(outcome, bands, runs))
    else:
        echo_failures(
            [
                f"{failure['request_id']}: {failure['question']!r}: {failure['error']}"
                for failure in outcome.failures
            ]
        )
        for note in outcome.notes:
            say(one_line(f"note: {note}"), err=True)
        say(_summary(outcome, k, label_set, len(loaded), has_targets=bool(targets)))
        of_legs = " on a leg or more" if len(loaded) > 1 else ""
        for reason, passages in outcome.skipped.items():
            say(f"{counted(len(passages), 'passage')}{of_legs} {_SKIPS[reason]}.")
        if bands is not None:
            echo_head(runs)
            _print_bands(bands)
    return 1 if outcome.failures else 0


def _load_legs(rehearsal: Rehearsal, retriever: str | None, legs: Sequence[str]) -> list[Leg]:
    from ragotel.triage.probing import make_leg

    loaded = [make_leg(rehearsal, retriever)] if retriever else []
    for leg in legs:
        name, equals, target = leg.partition("=")
        if not (name and equals):
            raise click.UsageError(f"--leg {leg!r} is not NAME=MODULE:FUNCTION.")
        if any(name == other.name for other in loaded):
            raise click.UsageError(f"--leg {name} is given twice: a leg has one rank.")
        loaded.append(make_leg(rehearsal, target, name))
    return loaded


def _bands(
    store: Any, label_set: str, versions: Sequence[str], is_all: bool
) -> dict[str, Any] | None:
    """The stored deep ranks of the set; None where no probe says anything of it."""
    from ragotel.triage.probe_bands import bands_question

    rows = bands_question(label_set, versions, is_all=is_all).ask(store)
    return rows[0] if rows and rows[0]["passages"] > rows[0]["not_probed"] else None


def _as_dict(outcome: Outcome, bands: Mapping[str, Any] | None, runs: str) -> dict[str, Any]:
    return {
        "probed": len(outcome.probed),
        "found": len(outcome.found),
        "ranks_stored": outcome.kept,
        "searches": outcome.asked,
        "index_versions": outcome.versions,
        "skipped": {reason: len(passages) for reason, passages in outcome.skipped.items()},
        "failures": outcome.failures,
        "notes": outcome.notes,
        "deep_ranks": bands,
        "deep_ranks_of": runs if bands is not None else None,
    }


def _summary(outcome: Outcome, k: int, label_set: str, legs: int, *, has_targets: bool) -> str:
    if not has_targets:
        return f"Nothing was probed: no gold passage of the set {one_line(label_set)} was missed."
    if not outcome.probed:
        failures, asked = len(outcome.failures), counted(outcome.asked, "search", "es")
        failed = f": {failures:,} of {asked} failed" if failures else ""
        return f"Nothing was probed{failed}."
    versions = f" of index version {', '.join(outcome.versions)}" if outcome.versions else ""
    failed = f", {len(outcome.failures):,} of them failed" if outcome.failures else ""
    probed, found = len(outcome.probed), len(outcome.found)
    on, by = (f" on {legs:,} legs", " by a leg or more") if legs > 1 else ("", "")
    return one_line(
        f"{counted(probed, 'passage')} probed{on} by {counted(outcome.asked, 'search', 'es')}"
        f"{versions}{failed}: {found:,} found within {k:,}{by}, {probed - found:,} not."
    )


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
    print_rows(
        rows,
        (
            Column("band", "deep rank"),
            Column("passages", is_number=True),
            Column("share", is_number=True),
        ),
    )
    say("")
    say(reach_sentence(bands))


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
