"""Comparing: two arms under a rule that was set before either began.

Pipeline: rule.toml -> rag_rules; ab_results -> [triage] -> cli
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ragotel.store import Store
from ragotel.triage.arms import Arm, RefusedError, find_arms
from ragotel.triage.criteria import Criterion, Pooled, Rows, judge, pool_counts, wanted_metrics
from ragotel.triage.measures import nearest
from ragotel.triage.registry import Registered, register_rule
from ragotel.triage.rules import Rule

SHOWN = 5
"""So many ids are named in a sentence; --json and ab_pairs have all."""
_COUNTED = ("accuracy", "asked", 0)
"""A row that every population has: its latencies and counts, whatever the rule measures."""
_EVIDENCED = ("recall", "document_recall", "all_present", "current", "accuracy")
"""Measures that, asked of every question, are null only where evidence is missing."""


@dataclass(frozen=True)
class Figures:
    """One population under one name of the rule; *rows* by metric, as ab_results has them."""

    name: str
    population: str
    label_set: str
    questions: int
    rows: dict[str, dict[str, Any]]
    latency: dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """All that was found; *verdict* is adopt or reject, *failed* the criteria as the rule says."""

    rule: Rule
    registered: Registered
    base: Arm
    candidate: Arm
    figures: list[Figures]
    criteria: list[Criterion]
    pooled: Pooled | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def failed(self) -> list[str]:
        return [criterion.text for criterion in self.criteria if not criterion.is_met]

    @property
    def verdict(self) -> str:
        return "reject" if self.failed else "adopt"


def compare(store: Store, a: str, b: str, rule: Rule, text: str) -> Comparison:
    """Compare the arms *a* (the base) and *b* (the candidate) under *rule*.

    The rule is registered if it is new. The store is asked once for all figures.

    Raises:
        RefusedError: An arm is unknown or began before the rule was registered, a population
            is in no arm, a leg failed, the reranker was idle, or a criterion cannot be measured.
    """
    registered = register_rule(store, rule, text)
    base, candidate = find_arms(store, a, b)
    _check_times(registered, (base, candidate))
    found = _ask(store, rule, base, candidate)
    figures = _sort_out(rule, found)
    _check_runs(rule, figures)
    rows: Rows = {
        (one.name, key): row
        for one in figures
        for key, row in {_COUNTED[0]: one.latency, **one.rows}.items()
    }
    pooled = pool_counts(store, rule, rows)
    return Comparison(
        rule=rule,
        registered=registered,
        base=base,
        candidate=candidate,
        figures=figures,
        criteria=list(judge(rule, rows, pooled)),
        pooled=pooled,
        warnings=list(_warnings(rule, figures, found, (base, candidate))),
    )


def _check_times(registered: Registered, arms: Iterable[Arm]) -> None:
    early = [arm for arm in arms if arm.began_at < registered.registered_at]
    if not early:
        return
    began = " and ".join(f"{arm.name!r} began at {arm.began_at:%Y-%m-%d %H:%M:%S}" for arm in early)
    now = "only now" if registered.is_new else f"at {registered.registered_at:%Y-%m-%d %H:%M:%S}"
    raise RefusedError(
        f"The rule {registered.rule_name!r} ({registered.rule_hash[:12]}) was registered {now} "
        f"and {began} (UTC): a rule judges only what began after it. It stands registered: run "
        "both arms again under a new run id, then compare RUN/ARM with RUN/ARM; the figures "
        "without a verdict are in ab_results."
    )


def _ask(store: Store, rule: Rule, base: Arm, candidate: Arm) -> list[dict[str, Any]]:
    metrics = {
        f"{metric.measure}/{metric.given}/{metric.k}"
        for metric in wanted_metrics(rule).values()
        if not metric.is_latency
    }
    return store.rows(
        "select * from ab_results\n"
        "where kind = {kind:String} and arm_a = {a:String} and arm_b = {b:String}\n"
        "    and split = {split:String}\n"
        "    and has({metrics:Array(String)}, concat(measure, '/', given, '/', toString(k)))\n"
        "order by label_set, population, measure, given, k",
        {
            "kind": base.kind,
            "a": base.name,
            "b": candidate.name,
            "split": rule.split,
            "metrics": sorted(metrics | {"/".join(map(str, _COUNTED))}),
        },
    )


def _sort_out(rule: Rule, found: list[dict[str, Any]]) -> list[Figures]:
    """The rule's populations in its order, each with the rows of its one label set."""
    figures: list[Figures] = []
    reasons: list[str] = []
    for name in rule.populations:
        try:
            figures.append(_population(rule, name, found))
        except RefusedError as refusal:
            reasons += refusal.reasons
    if reasons:
        raise RefusedError(*reasons)
    return figures


def _population(rule: Rule, name: str, found: list[dict[str, Any]]) -> Figures:
    wanted = rule.populations[name].population or name
    label_set = rule.populations[name].label_set
    rows = [
        row
        for row in found
        if row["population"] == wanted and (label_set is None or row["label_set"] == label_set)
    ]
    sets = sorted({row["label_set"] for row in rows})
    if len(sets) > 1:
        raise RefusedError(
            f"The population {wanted!r} is in the label sets {', '.join(sets)}, which are not "
            f'pooled: name one in the rule, [populations.{name}] label_set = "{sets[0]}".'
        )
    by_key = {(row["measure"], row["given"], row["k"]): row for row in rows}
    counted = by_key.get(_COUNTED)
    if counted is None or not counted["questions"]:
        known = sorted({row["population"] for row in found if row["questions"]})
        half = "" if rule.split == "all" else f" in the {rule.split} half"
        raise RefusedError(
            f"No question of the population {wanted!r}{half} was asked in both arms"
            f"{nearest(wanted, known) or '; there are ' + (', '.join(known) or 'none')}."
        )
    metrics = {
        metric_name: metric
        for (population, metric_name), metric in wanted_metrics(rule).items()
        if population == name
    }
    named = {
        key: {**counted, "metric": metric.name}
        if metric.is_latency
        else {**by_key[(metric.measure, metric.given, metric.k)], "metric": metric.name}
        for key, metric in metrics.items()
    }
    return Figures(name, wanted, counted["label_set"], counted["questions"], named, counted)


def _check_runs(rule: Rule, figures: list[Figures]) -> None:
    """See that both arms ran whole, and that repeats are what the rule expects."""
    reasons = []
    for side in ("a", "b"):
        arm = figures[0].latency[f"arm_{side}"]
        degraded = sorted(
            {id for one in figures for id in one.latency[f"degraded_requests_{side}"]}
        )
        if degraded and not rule.allow_degraded:
            reasons.append(
                f"In {_count(len(degraded), 'request')} of {arm!r} a leg failed or the reranker "
                f"changed nothing ({_some(degraded)}): mend and run again, or set "
                "allow_degraded = true in a new rule."
            )
        most = max(one.latency[f"most_repeats_{side}"] for one in figures)
        if most > 1 and rule.repeats == "single":
            reasons.append(
                f"{arm!r} asked a question up to {most} times: compare one run (RUN/ARM), or set "
                'repeats = "majority" in a new rule.'
            )
    if reasons:
        raise RefusedError(*reasons)


def _warnings(
    rule: Rule, figures: list[Figures], found: list[dict[str, Any]], arms: tuple[Arm, Arm]
) -> Iterable[str]:
    for arm in arms:
        if arm.unlabelled_requests:
            yield (
                f"{_count(arm.unlabelled_requests, 'request')} of {arm.name!r} "
                "met no label: left out of every figure."
            )
    for one in figures:
        yield from _warnings_of(rule, one, arms)
    judged = {(one.label_set, one.population) for one in figures}
    others = {
        row["population"]: row["questions"]
        for row in found
        if (row["label_set"], row["population"]) not in judged and row["questions"]
    }
    if others:
        listed = ", ".join(f"{name} ({count})" for name, count in sorted(others.items()))
        yield f"The rule does not judge these populations: {listed}."


def _warnings_of(rule: Rule, one: Figures, arms: tuple[Arm, Arm]) -> Iterable[str]:
    row = one.latency
    if rule.split == "diagnosis":
        yield f"{one.name}: this is the diagnosis half, where causes were sought: not held out."
    elif row["diagnosis_questions"]:
        yield (
            f"{one.name}: {row['diagnosis_questions']} of {row['questions']} questions are of the "
            'diagnosis half, where causes were sought; split = "measurement" leaves them out.'
        )
    for side, arm, other in (("a", arms[0], arms[1]), ("b", arms[1], arms[0])):
        labels = row[f"only_{side}_labels"]
        if labels:
            yield (
                f"{one.name}: {_count(len(labels), 'question')} only in {arm.name!r}, missing in "
                f"{other.name!r}: neither won nor lost ({_some(labels)})."
            )
    for key, figure in one.rows.items():
        yield from _metric_warnings(one.name, key, figure, arms)


def _metric_warnings(
    name: str, key: str, row: Mapping[str, Any], arms: tuple[Arm, Arm]
) -> Iterable[str]:
    if key.endswith("_ms"):
        return
    for side, arm in (("a", arms[0]), ("b", arms[1])):
        if row[f"flipped_{side}"]:
            yield (
                f"{name} {row['metric']}: {_count(row[f'flipped_{side}'], 'question')} "
                f"flipped between repeats within {arm.name!r}."
            )
    if row["unmeasured"] and row["given"] == "asked" and row["measure"] in _EVIDENCED:
        yield (
            f"{name} {row['metric']}: {_count(row['unmeasured'], 'question')} could not be "
            "measured in both arms: neither won nor lost."
        )


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _some(ids: list[str]) -> str:
    more = len(ids) - SHOWN
    return ", ".join(ids[:SHOWN]) + (f" and {more} more" if more > 0 else "")
