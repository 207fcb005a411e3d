"""Costs: `ragotel costs`, what a query costs and what another k would make of it.

Pipeline: dist_costs -> triage.costs -> [cli]
"""

from __future__ import annotations

from typing import Any

import click

from ragotel.cli.answering import answer
from ragotel.cli.options import Amount, Whole, common_options, sql_option
from ragotel.cli.output import Column, print_rows, say, say_block
from ragotel.cli.verdicts import slice_of

_NOW = (
    Column("service_name", "service"),
    Column("template"),
    Column("run_id", "run"),
    Column("requests", is_number=True),
    Column("mean_passages", "passages", is_number=True),
    Column("mean_input_tokens", "input tokens", is_number=True),
    Column("tokens_per_passage", "per passage", is_number=True),
    Column("fixed_tokens", "fixed", is_number=True),
    Column("queries_per_day", "queries/day", is_number=True),
    Column("usd_per_query", "USD/query", is_number=True),
    Column("usd_per_day", "USD/day", is_number=True),
)
_AT_K = (
    Column("input_tokens_at_k", "input tokens", is_number=True),
    Column("usd_per_query_at_k", "USD/query", is_number=True),
    Column("usd_per_day_at_k", "USD/day", is_number=True),
)
_SOURCES = {
    "counted": "passages as the record counts them",
    "fitted": "a passage's tokens from prompts with more and fewer of them",
    "estimated": "a passage's tokens at four characters each, as nobody counted them",
    "compared": "a passage's tokens from comparing the rows above",
}


@click.command("costs", short_help="What a query costs, and what another k would cost.")
@click.option(
    "--usd-per-million-input-tokens",
    "usd",
    type=Amount(1_000_000_000),
    required=True,
    metavar="USD",
    help="The model's price.",
)
@click.option(
    "--k", type=Whole(0, 1_000_000), metavar="K", help="And with K passages in the prompt."
)
@click.option(
    "--queries-per-day",
    type=Amount(1_000_000_000_000),
    metavar="N",
    help="Instead of the recorded requests per day.",
)
@click.option("--service", metavar="NAME", help="Only this service.")
@click.option("--template", metavar="NAME", help="Only this prompt template.")
@click.option("--run", metavar="ID", help="Only this evaluation run.")
@click.option("--since", metavar="TIME", help="From this day on (UTC); 7d, ...")
@click.option("--until", metavar="TIME", help="Up to this day.")
@sql_option
@common_options
def costs(
    usd: float,
    k: int | None,
    queries_per_day: float | None,
    service: str | None,
    template: str | None,
    run: str | None,
    since: str | None,
    until: str | None,
    show_sql: bool,
    dsn: str | None,
    as_json: bool,
) -> int:
    """Say what a query costs in input tokens, now and with K passages.

    \b
    ragotel costs --k 20 --usd-per-million-input-tokens 3 --queries-per-day 3000

    Tokens are the recorded ones; those of a passage come from the record, else from prompts that
    took more and fewer passages. Whether answers get better with K it does not say: see
    `ragotel recall`.
    """
    from ragotel.triage.costs import costs_question

    question = costs_question(
        slice_of(since, until, None, run, service),
        usd_per_million=usd,
        template=template,
        k=k,
        queries_per_day=queries_per_day,
    )
    return answer(
        question,
        lambda rows: _print(rows, k),
        nothing="No request is like that, or none has the tokens of its prompt: record them with "
        "`tokens=` on assemble, or the model's usage.",
        show_sql=show_sql,
        dsn=dsn,
        as_json=as_json,
    )


def _print(rows: list[dict[str, Any]], k: int | None) -> None:
    shown = [_shown(row) for row in rows]
    has_run = any(row["run_id"] for row in rows)
    columns = [column for column in _NOW if column.key != "run_id" or has_run]
    print_rows(shown, columns)
    if k is not None:
        say_block(f"\nwith {k} passages")
        print_rows(shown, [*columns[: 3 if has_run else 2], *_AT_K])
        if any(row["input_tokens_at_k"] is None for row in rows):
            say(
                "Blank: the tokens of a passage are not known there; record `tokens` with what "
                "is sent, or requests with another k.",
                err=True,
            )
    for source in sorted({row["tokens_per_passage_source"] for row in rows} - {""}):
        say(f"{source}: {_SOURCES[source]}", err=True)


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """The row as people read money and tokens."""
    decimals = {
        "mean_passages": 1,
        "mean_input_tokens": 0,
        "input_tokens_at_k": 0,
        "tokens_per_passage": 1,
        "fixed_tokens": 0,
        "queries_per_day": 0,
        "usd_per_query": 4,
        "usd_per_query_at_k": 4,
        "usd_per_day": 2,
        "usd_per_day_at_k": 2,
    }
    parts = {
        key: None if row[key] is None else f"{row[key]:,.{places}f}"
        for key, places in decimals.items()
    }
    template = f"{row['template_name']} {row['template_version']}".strip()
    return {**row, **parts, "template": template}


def register(group: click.Group) -> None:
    """Add `costs` to *group*."""
    group.add_command(costs)
