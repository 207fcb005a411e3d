"""Compare: `ragotel compare A B --rule rule.toml`, adopt or reject, and by which figures.

Pipeline: ab_results -> triage.comparing -> [cli]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ragotel.cli.options import common_options, ready_store
from ragotel.cli.output import (
    Column,
    clock,
    flat,
    paint,
    print_json,
    print_rows,
    prose,
    say,
    say_block,
)

if TYPE_CHECKING:
    from ragotel.triage.arms import Arm
    from ragotel.triage.comparing import Comparison, Figures

REFUSED = 2
_VERDICTS = {"adopt": (0, "green"), "reject": (1, "red")}


@click.command("compare", short_help="Compare two arms under a rule that was set in advance.")
@click.argument("a", metavar="BASE")
@click.argument("b", metavar="CANDIDATE")
@click.option(
    "--rule", "path", required=True, metavar="FILE", help="The adoption rule (docs/comparing.md)."
)
@common_options
def compare(a: str, b: str, path: str, dsn: str | None, as_json: bool) -> int:
    """Compare two arms, question by question: 0 adopt CANDIDATE, 1 reject it, 2 refused.

    BASE and CANDIDATE are values of rag.arm, of rag.run.id, or RUN/ARM. A rule that the store does
    not know yet is registered first; an arm that began before its rule is refused.
    """
    from ragotel.triage.arms import RefusedError
    from ragotel.triage.comparing import compare as run_comparison
    from ragotel.triage.rules import read_rule

    rule, text = read_rule(path)
    with ready_store(dsn) as store:
        try:
            found = run_comparison(store, a, b, rule, text)
        except RefusedError as refusal:
            if not as_json:
                raise
            print_json({"verdict": "refused", "reasons": refusal.reasons})
            return REFUSED
    if as_json:
        print_json(_as_document(found))
    else:
        _print(found)
    return _VERDICTS[found.verdict][0]


def _as_document(found: Comparison) -> dict[str, Any]:
    return {
        "verdict": found.verdict,
        "failed": found.failed,
        "rule": {
            "name": found.registered.rule_name,
            "sha256": found.registered.rule_hash,
            "registered_at": found.registered.registered_at,
            "split": found.rule.split,
            "repeats": found.rule.repeats,
            "alpha": found.rule.alpha,
        },
        "arms": [_arm_document(arm) for arm in (found.base, found.candidate)],
        "criteria": [vars(criterion) for criterion in found.criteria],
        "populations": [
            {
                "name": one.name,
                "population": one.population,
                "label_set": one.label_set,
                "questions": one.questions,
                "metrics": list(one.rows.values()),
                "latency": {
                    key: one.latency[key]
                    for key in ("p50_ms_a", "p95_ms_a", "p50_ms_b", "p95_ms_b")
                },
            }
            for one in found.figures
        ],
        "pooled": None if found.pooled is None else vars(found.pooled),
        "warnings": found.warnings,
    }


def _arm_document(arm: Arm) -> dict[str, Any]:
    return {**vars(arm), "unlabelled_requests": arm.unlabelled_requests}


def _print(found: Comparison) -> None:
    rule = found.registered
    say(
        f"rule       {rule.rule_name} ({rule.rule_hash[:12]}), "
        f"registered {clock(rule.registered_at)} UTC"
    )
    for title, arm in (("base", found.base), ("candidate", found.candidate)):
        say(
            f"{title:9}  {arm.kind} {arm.name}: {arm.requests} requests, "
            f"began {clock(arm.began_at)} UTC"
        )
    for one in found.figures:
        _print_population(found, one)
    if found.pooled is not None:
        pooled = found.pooled
        say("")
        say(
            f"pooled     {' + '.join(pooled.entries)}: {pooled.gained} gained, "
            f"{pooled.lost} lost, p = {pooled.p_value:.2g}"
        )
    _print_verdict(found)


def _print_population(found: Comparison, one: Figures) -> None:
    say("")
    half = "" if found.rule.split == "all" else f", {found.rule.split} half"
    title = f"{one.name}: {one.questions} questions asked in both arms{half}"
    say(paint(title, bold=True))
    rows = [_figure(row) for key, row in one.rows.items() if not key.endswith("_ms")]
    rows += [_latency(one.latency, "p50_ms"), _latency(one.latency, "p95_ms")]
    columns = [
        Column("metric"),
        Column("a", found.base.name, is_number=True),
        Column("a_rate", "rate", is_number=True),
        Column("a_range", "95 %", is_number=True),
        Column("b", found.candidate.name, is_number=True),
        Column("b_rate", "rate", is_number=True),
        Column("b_range", "95 %", is_number=True),
        Column("change", is_number=True),
        Column("gained", is_number=True),
        Column("lost", is_number=True),
        Column("p", is_number=True),
        Column("step", "one question", is_number=True),
    ]
    print_rows(rows, columns)


def _figure(row: dict[str, Any]) -> dict[str, Any]:
    """One line of a population's table."""
    line: dict[str, Any] = {
        "metric": row["metric"],
        "gained": row["gained"],
        "lost": row["lost"],
        "p": f"{row['p_value']:.2g}",
        "change": "" if row["difference"] is None else f"{row['difference']:+.4f}",
    }
    for side in ("a", "b"):
        line[side] = f"{row[f'numerator_{side}']}/{row[f'denominator_{side}']}"
        if row[f"rate_{side}"] is not None:
            line[f"{side}_rate"] = f"{row[f'rate_{side}']:.4f}"
            line[f"{side}_range"] = f"{row[f'low_{side}']:.3f}-{row[f'high_{side}']:.3f}"
    steps = [row[f"one_question_{side}"] for side in ("a", "b")]
    told = [f"{step:.4f}" for step in steps if step is not None]
    line["step"] = " / ".join(dict.fromkeys(told))
    return line


def _latency(row: dict[str, Any], name: str) -> dict[str, Any]:
    from ragotel.triage.criteria import ms

    a, b = row[f"{name}_a"], row[f"{name}_b"]
    return {
        "metric": name,
        "a": ms(a),
        "b": ms(b),
        "change": ms(b - a, signed=True),
    }


def _print_verdict(found: Comparison) -> None:
    say("")
    for criterion in found.criteria:
        mark, colour = ("ok", "green") if criterion.is_met else ("NO", "red")
        say(f"{paint(mark, fg=colour)}  {criterion.text}  ({criterion.found})")
    for warning in found.warnings:
        say_block(f"{paint('--', fg='yellow')}  {prose(flat(warning), 4)}")
    _, colour = _VERDICTS[found.verdict]
    verdict = paint(f"{found.verdict} {found.candidate.name}", fg=colour, bold=True)
    count = len(found.criteria)
    say("")
    if found.failed:
        say(f"{verdict}: {len(found.failed)} of {count} criteria failed")
    else:
        say(f"{verdict}: all {count} criteria hold")


def register(group: click.Group) -> None:
    """Add `compare` to *group*."""
    group.add_command(compare)
