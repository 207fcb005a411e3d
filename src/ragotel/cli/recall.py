"""Recall: `ragotel recall`, and the tables beside it that say what it means.

Pipeline: dist_recall and the views beside it -> triage.recall -> [cli]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ragotel.cli.answering import answer
from ragotel.cli.options import OneOf, common_options, sql_option
from ragotel.cli.output import Column, print_rows, prose, say_block
from ragotel.cli.verdicts import slice_of, slice_options
from ragotel.triage.recall import KS

if TYPE_CHECKING:
    from ragotel.triage.question import Question
    from ragotel.triage.verdicts import Slice

F = TypeVar("F", bound=Callable[..., Any])

_RATES = ("share", "miss_rate", "miss_rate_low", "miss_rate_high")
_GOES_WITH = {
    "--grain": ("", "--classes"),
    "--k": ("", "--legs", "--what-if-rrf", "--by-tag"),
    "--rrf-k": ("--what-if-rrf",),
    "--run": ("", "--classes", "--ceiling", "--legs", "--what-if-rrf", "--drift", "--by-tag"),
    "--set": ("", "--classes", "--ceiling", "--legs", "--what-if-rrf", "--drift", "--by-tag"),
}
"""Options that some tables only know; '' is the table that stands without any."""


def _numbers(**titles: str) -> tuple[Column, ...]:
    return tuple(Column(name, title, is_number=True) for name, title in titles.items())


_TABLES: dict[str, tuple[Column, ...]] = {
    "": (
        Column("stage"),
        Column("stage_name", "name"),
        *_numbers(k="k", recall="recall@k", any_present="any@k", all_present="all@k", mrr="mrr"),
        *_numbers(ndcg="ndcg", recall_at_k_prompt="recall@k_prompt", mean_k_prompt="k_prompt"),
        *_numbers(requests="of", unreadable_requests="unread"),
    ),
    "--classes": _numbers(
        missing="missing", buried="buried", top="top", passages="of", missing_share="missing %",
        buried_share="buried %", top_share="top %", undecided="unread",
    ),
    "--ceiling": (
        Column("label_set", "set"),
        Column("index_version", "index"),
        *_numbers(ceiling_candidates="found", candidates_measured="of"),
        *_numbers(ceiling_prompt="sent", prompts_measured="of", accuracy="right", graded="of"),
        *_numbers(requests="requests", right_without_gold="right without gold"),
        Column("note"),
    ),
    "--legs": (
        Column("leg"),
        *_numbers(k="k", recall="recall@k", passages="of", only_this_leg="only this leg"),
        *_numbers(union_recall="all legs@k", recall_without="without it@k"),
        *_numbers(lost_if_off="lost if off", undecided="undecided", unreadable_passages="unread"),
    ),
    "--what-if-rrf": _numbers(
        rrf_k="rrf k", k="k", recorded_recall="recorded@k", what_if_recall="rrf@k", gained="gained",
        lost="lost", ties="tied at the cut", passages="of", unreadable_passages="unread",
    ),
    "--drift": (
        Column("day"),
        Column("label_set", "set"),
        Column("run_id", "run"),
        Column("arm"),
        *_numbers(recall_at_10="recall@10", recall_at_k_prompt="recall@k_prompt"),
        *_numbers(mean_k_prompt="k_prompt", difference="difference", change="change in 7 days"),
        *_numbers(requests="of", unreadable_requests="unread"),
    ),
    "--flags": (
        Column("flag"),
        *_numbers(requests="requests", checked="checked", share="share"),
        Column("example_trace_id", "example"),
    ),
    "--by-tag": (
        Column("tag_value", "value"),
        *_numbers(misses="missed", requests="of", miss_rate="miss rate", miss_rate_low="from"),
        *_numbers(miss_rate_high="to", undecided="undecided"),
        Column("example_trace_id", "example"),
    ),
}  # fmt: skip
_SUMMARIES = {
    "--flags": "Ways of searching that are known to fail.",
    "--drift": "recall@10 beside recall@k_prompt, day by day.",
    "--what-if-rrf": "The legs fused by rank instead.",
    "--legs": "What each search leg brings alone.",
    "--ceiling": "What could be right at most, and what was.",
    "--classes": "Missing from the reranker's list, buried in it, or first.",
}
_OPTIONAL = ("run_id", "arm", "undecided", "unreadable_passages")
"""Columns that are left out where they say nothing."""
_SIGNED = ("difference", "change")
_CHOSEN = "ragotel.recall.table"


def _choose(ctx: click.Context, option: click.Parameter, value: Any) -> Any:
    """Note which table an option asks for; two at once are refused."""
    if value is not None and value is not False:
        other = ctx.meta.setdefault(_CHOSEN, option.opts[0])
        if other != option.opts[0]:
            raise click.UsageError(f"{other} and {option.opts[0]} are two tables: ask for one")
    return value


def _table_options(function: F) -> F:
    """Give a command the options that choose the table; without any it is recall by stage."""
    function = click.option(
        "--by-tag", metavar="KEY", callback=_choose, help="Misses by the values of this tag."
    )(function)
    for name, summary in _SUMMARIES.items():
        function = click.option(
            name, is_flag=True, expose_value=False, callback=_choose, help=summary
        )(function)
    return function


@click.command("recall", short_help="Recall at k of every stage, and at the k that was sent.")
@slice_options
@click.option(
    "--grain",
    type=click.Choice(("chunk", "document")),
    help="Count chunks, or documents.  [default: chunk]",
)
@click.option("--k", type=OneOf(KS, "k"), metavar="K", help="Only this k; a miss is beyond it.")
@click.option(
    "--rrf-k",
    type=click.Choice(("10", "30", "60", "100")),
    help="Constant of --what-if-rrf.  [default: 60]",
)
@_table_options
@sql_option
@common_options
def recall(
    since: str | None,
    until: str | None,
    label_set: str | None,
    run: str | None,
    service: str | None,
    grain: str | None,
    k: int | None,
    rrf_k: str | None,
    by_tag: str | None,
    show_sql: bool,
    dsn: str | None,
    as_json: bool,
) -> int:
    """Recall of every leg and stage at k, and beside it at the k that was really sent.

    `of` requests are in the means; those whose list could not be read are counted as `unread`.
    Several services are never pooled. Another table instead: --classes, --ceiling, --legs,
    --what-if-rrf, --drift, --flags, --by-tag KEY; one at a time.
    """
    chosen: str = click.get_current_context().meta.get(_CHOSEN, "")
    given = {"--grain": grain, "--k": k, "--rrf-k": rrf_k, "--run": run, "--set": label_set}
    _refuse_misfits(chosen, given)
    part = slice_of(since, until, label_set, run, service)
    question = _question(part, chosen, grain=grain, k=k, rrf_k=rrf_k, by_tag=by_tag)
    return answer(
        question,
        lambda rows: _print(chosen, rows),
        nothing=lambda store: _nothing(store, by_tag),
        show_sql=show_sql,
        dsn=dsn,
        as_json=as_json,
    )


def _refuse_misfits(chosen: str, given: dict[str, Any]) -> None:
    for option, value in given.items():
        if value is not None and chosen not in _GOES_WITH[option]:
            raise click.UsageError(f"{option} does not go with {chosen or 'this table'}")


def _question(
    part: Slice,
    chosen: str,
    *,
    grain: str | None,
    k: int | None,
    rrf_k: str | None,
    by_tag: str | None,
) -> Question:
    from ragotel.triage import recall as questions

    if by_tag is not None:
        return questions.slices_question(part, by_tag, cutoff=k or 0)
    if chosen == "--classes":
        return questions.classes_question(part, grain=grain or "chunk")
    if chosen == "--ceiling":
        return questions.ceilings_question(part)
    if chosen == "--legs":
        return questions.legs_question(part, k=k)
    if chosen == "--what-if-rrf":
        return questions.what_if_rrf_question(part, rrf_k=int(rrf_k or 60), k=k)
    if chosen == "--drift":
        return questions.drift_question(part)
    if chosen == "--flags":
        return questions.flags_question(part)
    return questions.recall_question(part, grain=grain or "chunk", k=k)


def _nothing(store: Any, by_tag: str | None) -> str:
    from ragotel.triage.recall import tag_keys

    if by_tag is None:
        return "No labelled request is like that; labels meet requests by id, grade or question."
    known = ", ".join(map(repr, tag_keys(store))) or "none: ragotel.request(tags=...) records them"
    return f"No labelled request is like that and has the tag {by_tag!r}; tags: {known}."


def _print(chosen: str, rows: list[dict[str, Any]]) -> None:
    """The table; the service stands in it where there are several, and what is asked of flags."""
    columns = [
        column
        for column in _TABLES[chosen]
        if column.key not in _OPTIONAL or any(row[column.key] for row in rows)
    ]
    if len({row["service_name"] for row in rows}) > 1:
        columns.insert(0, Column("service_name", "service"))
    print_rows([_shown(row) for row in rows], columns)
    if chosen == "--flags":
        for flag, meaning in {r["flag"]: r["meaning"] for r in rows if r["requests"]}.items():
            say_block(f"\n{flag}\n    {prose(meaning, 4)}")


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """Shares as a person reads them."""
    shown: dict[str, Any] = {}
    for name, value in row.items():
        if not isinstance(value, float) or value != value:
            shown[name] = value
        elif name in _RATES or name.endswith("_share"):
            shown[name] = f"{100 * value:.1f} %"
        else:
            shown[name] = f"{value:+.3f}" if name in _SIGNED else f"{value:.3f}"
    if "tag_value" in row:
        shown["tag_value"] = row["tag_value"] or "(without)"
    if "what_if_at_most" in row:
        shown["ties"] = row["what_if_at_most"] - row["what_if_at_least"]
    if row.get("passes_ceiling"):
        shown["note"] = (
            "of {compared} graded and read {compared_correct} were right and {compared_in_prompt} "
            "had their gold: memory of the model, or wrong labels".format_map(row)
        )
    return shown


def register(group: click.Group) -> None:
    """Add `recall` to *group*."""
    group.add_command(recall)
