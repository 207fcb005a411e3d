"""Losses: `ragotel losses`, where answers were lost, stage by stage and population by population.

Pipeline: triage_losses -> triage.losses -> [cli]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import click

from ragotel.cli.answering import answer
from ragotel.cli.options import OneOf, common_options, sql_option
from ragotel.cli.output import Column, print_rows, say
from ragotel.cli.verdicts import slice_of, slice_options
from ragotel.triage.losses import CUTOFFS

_RECORDED = {
    "near_misses": "near miss",
    "right_document_other_chunk": "right document, other chunk",
    "nothing_of_the_document": "nothing of it",
}
_NOT_INDEXED, _NOT_SENT = "not indexed", "found, not sent"
_OTHER = "farther off, or not recorded"
_SHAPES = (_NOT_INDEXED, *_RECORDED.values(), _NOT_SENT, _OTHER)
_SUMS = {"misses": "miss", "not decidable": "unknown", "found": "hit", "of": "requests"}


@click.command("losses", short_help="Where answers were lost, stage by stage.")
@slice_options
@click.option(
    "--cutoff",
    type=OneOf(CUTOFFS, "cut-off"),
    metavar="K",
    help="A miss is a final rank above K; without it each request's own k, and assembly after it.",
)
@click.option("--population", metavar="NAME", help="Only labels of this population.")
@sql_option
@common_options
def losses(
    since: str | None,
    until: str | None,
    label_set: str | None,
    run: str | None,
    service: str | None,
    cutoff: int | None,
    population: str | None,
    show_sql: bool,
    dsn: str | None,
    as_json: bool,
) -> int:
    """Count misses by the stage that lost them, and say how near they were.

    \b
    near miss                    the final list has it above the cutoff, up to twice the cutoff
    right document, other chunk  the final list has another chunk of the document
    nothing of it                nothing of the document is in the final list
    found, not sent              it was within the cutoff, and left out of the prompt

    A miss that `labels decide` calls a fault of the label is counted apart.
    """
    from ragotel.triage.losses import losses_question

    question = losses_question(
        slice_of(since, until, label_set, run, service),
        cutoff=cutoff or 0,
        population=population,
    )
    return answer(
        question,
        _print,
        nothing="No labelled request is like that.",
        show_sql=show_sql,
        dsn=dsn,
        as_json=as_json,
    )


def _print(rows: list[dict[str, Any]]) -> None:
    """One column per population, and their total; then the shapes of the misses, which sum."""
    names = _population_names(rows)
    populations = list(dict.fromkeys(names.values()))
    stages: dict[str, Counter[str]] = {}
    shapes = {title: Counter(dict.fromkeys(populations, 0)) for title in _SHAPES}
    sums = {outcome: Counter(dict.fromkeys(populations, 0)) for outcome in _SUMS.values()}
    beyond = Counter(dict.fromkeys(populations, 0))
    for row in rows:
        name, outcome = names[row["label_set"], row["population"]], row["outcome"]
        sums["requests"][name] += row["requests"]
        if outcome in sums:
            sums[outcome][name] += row["requests"]
        if outcome in ("miss", "evaluation_defect"):
            title = row["loss_stage"] if outcome == "miss" else f"label: {row['defect']}"
            stages.setdefault(title, Counter())[name] += row["requests"]
        if outcome == "miss":
            beyond[name] += row["beyond_rerank_window"]
            for title, count in _shapes_of(row).items():
                shapes[title][name] += count
    titles = {title: sums[outcome] for title, outcome in _SUMS.items()}
    _print_table("lost at", {**stages, **titles}, populations)
    if not sums["miss"].total():
        return
    say("")
    window = {"beyond the reranker's window": beyond} if beyond.total() else {}
    _print_table("misses by shape", {**shapes, "misses": sums["miss"], **window}, populations)


def _shapes_of(row: Mapping[str, Any]) -> dict[str, int]:
    """How near the misses of one row were; each is counted once."""
    if row["loss_stage"] == "not_indexed":
        return {_NOT_INDEXED: row["requests"]}
    counts = {title: row[key] for key, title in _RECORDED.items()}
    rest = _NOT_SENT if row["loss_stage"] == "assemble" else _OTHER
    return {**counts, rest: row["requests"] - sum(counts.values())}


def _print_table(
    head: str, lines: Mapping[str, Mapping[str, int]], populations: Sequence[str]
) -> None:
    """A line for each title, a column for each population and their total."""
    numbers = [Column(f"of {name}", name, is_number=True) for name in populations]
    print_rows(
        [
            # A population may be called like a column of the table.
            {"title": title, **{f"of {name}": counts.get(name) for name in populations}}
            | {"total": sum(counts.values())}
            for title, counts in lines.items()
        ],
        (Column("title", head), *numbers, Column("total", is_number=True)),
    )


def _population_names(rows: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """A heading for each (set, population): the set is named only where there are several."""
    keys = list(dict.fromkeys((row["label_set"], row["population"]) for row in rows))
    is_one_set = len({label_set for label_set, _ in keys}) == 1
    return {
        (label_set, population): (population or label_set)
        if is_one_set
        else f"{label_set}/{population}".rstrip("/")
        for label_set, population in keys
    }


def register(group: click.Group) -> None:
    """Add `losses` to *group*."""
    group.add_command(losses)
