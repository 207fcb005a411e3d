"""Losses: `ragotel losses`, where answers were lost, stage by stage and population by population.

Pipeline: triage_losses -> triage.losses -> [cli]
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import click

from ragotel.cli.answering import answer
from ragotel.cli.options import OneOf, common_options, sql_option
from ragotel.cli.output import Column, print_rows, say
from ragotel.cli.verdicts import slice_of, slice_options
from ragotel.triage.losses import CUTOFFS

_SHAPES = (
    ("near_misses", "near miss"),
    ("right_document_other_chunk", "right document, other chunk"),
    ("nothing_of_the_document", "nothing of it"),
    ("beyond_rerank_window", "beyond the reranker's window"),
)


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
    """One column per population, and their total; then the shapes of the misses."""
    names = _population_names(rows)
    stages: dict[str, dict[str, int]] = {}
    shapes: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    totals: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        name = names[row["label_set"], row["population"]]
        totals[name]["requests"] += row["requests"]
        totals[name][row["outcome"]] += row["requests"]
        if row["outcome"] in ("miss", "evaluation_defect"):
            title = row["loss_stage"] if row["outcome"] == "miss" else f"label: {row['defect']}"
            counts = stages.setdefault(title, defaultdict(int))
            # A population may be called like a column of the table.
            counts[f"of {name}"] += row["requests"]
            counts["total"] += row["requests"]
        if row["outcome"] == "miss":
            for key, _ in _SHAPES:
                shapes[name][key] += row[key]
    populations = list(dict.fromkeys(names.values()))
    table: list[dict[str, Any]] = [{"stage": stage, **counts} for stage, counts in stages.items()]
    for title, outcome in (("misses", "miss"), ("not decidable", "unknown"), ("of", "requests")):
        counts = {f"of {name}": totals[name][outcome] for name in populations}
        table.append({"stage": title, **counts, "total": sum(counts.values())})
    numbers = [Column(f"of {name}", name, is_number=True) for name in populations]
    print_rows(table, (Column("stage", "lost at"), *numbers, Column("total", is_number=True)))
    say("")
    print_rows(
        [
            {"population": name, "misses": totals[name]["miss"], **shapes[name]}
            for name in populations
        ],
        (
            Column("population"),
            Column("misses", is_number=True),
            *(Column(key, title, is_number=True) for key, title in _SHAPES),
        ),
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
