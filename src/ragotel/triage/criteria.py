"""Criteria: the sentences of a rule, each held against the figures of two arms.

Pipeline: ab_results -> [triage] -> verdict -> cli. Nothing is asked of the store here but the sign
test of pooled counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ragotel.store import Store
from ragotel.triage.arms import RefusedError
from ragotel.triage.measures import Metric
from ragotel.triage.rules import Guard, Rule, parse_guard, pooled_name

Row = Mapping[str, Any]
Rows = Mapping[tuple[str, str], Row]
"""Rows of ab_results by population and metric, as the rule names both."""

_EQUAL = 1e-12
"""Rates are quotients of counts; two that differ by less are the same."""


@dataclass(frozen=True)
class Criterion:
    """One sentence of the rule, whether it holds, and the figures that say so."""

    text: str
    is_met: bool
    found: str


@dataclass(frozen=True)
class Pooled:
    """Wins and losses of several populations together, as the rule asked."""

    entries: tuple[str, ...]
    gained: int
    lost: int
    p_value: float


def wanted_metrics(rule: Rule) -> dict[tuple[str, str], Metric]:
    """Every metric that *rule* judges or shows, by population and name, in its order."""
    found: dict[tuple[str, str], Metric] = {}
    for name, population in rule.populations.items():
        shown = [population.primary] if population.primary else []
        guards = (parse_guard(text) for text in rule.guards)
        shown += [guard.metric for guard in guards if guard.population == name]
        pool = map(pooled_name, rule.pool)
        shown += [metric for pooled, metric in pool if pooled == name]
        shown += list(population.metrics)
        for metric in shown:
            found.setdefault((name, metric.replace("-", "_")), rule.metric(name, metric))
    return found


def pool_counts(store: Store, rule: Rule, rows: Rows) -> Pooled | None:
    """The pooled sign test; None where the rule pools nothing."""
    if not rule.pool:
        return None
    pooled = [rows[_key(*pooled_name(text))] for text in rule.pool]
    gained, lost = sum(row["gained"] for row in pooled), sum(row["lost"] for row in pooled)
    p_value = store.scalar(
        "select rag_sign_test({gained:UInt64}, {lost:UInt64})", {"gained": gained, "lost": lost}
    )
    return Pooled(rule.pool, gained, lost, p_value)


def judge(rule: Rule, rows: Rows, pooled: Pooled | None) -> Iterator[Criterion]:
    """Hold every criterion of *rule* against *rows*, in the rule's order.

    Raises:
        RefusedError: A figure that a criterion needs was measured in no question.
    """
    for name, population in rule.populations.items():
        if population.primary:
            row = _measured(rows, name, population.primary)
            what = f"{name} {population.primary}"
            yield from _wins(what, name, rule.alpha, row["gained"], row["lost"], row["p_value"])
    if pooled is not None:
        counts = (pooled.gained, pooled.lost, pooled.p_value)
        yield from _wins(f"pooled {' + '.join(pooled.entries)}", "pooled", rule.alpha, *counts)
    for text in rule.guards:
        guard = parse_guard(text)
        is_latency = rule.metric(guard.population, guard.metric).is_latency
        row = _measured(rows, guard.population, guard.metric)
        yield _guarded(guard, row, is_latency)
    for name, population in rule.populations.items():
        for measure in ("p50", "p95"):
            limit = getattr(population, f"{measure}_cost_ms")
            if limit is not None:
                yield _cost(name, measure, limit, next(r for k, r in rows.items() if k[0] == name))


def _key(population: str, metric: str) -> tuple[str, str]:
    return population, metric.replace("-", "_")


def _measured(rows: Rows, population: str, metric: str) -> Row:
    row = rows[_key(population, metric)]
    for side in ("a", "b"):
        if not row[f"denominator_{side}"] and not metric.replace("-", "_").endswith("_ms"):
            raise RefusedError(
                f"{population} {metric} could be measured in no question of "
                f"{row[f'arm_{side}']!r}: its condition never held, or the evidence is missing "
                "(ab_answers shows each answer)."
            )
    return row


def _wins(
    what: str, short: str, alpha: float, gained: int, lost: int, p_value: float
) -> Iterator[Criterion]:
    counts = f"{gained} gained, {lost} lost"
    yield Criterion(f"{what} wins exceed losses", gained > lost, counts)
    yield Criterion(
        f"no significant {short} loss (exact sign test, p below {alpha:g})",
        not (lost > gained and p_value < alpha),
        f"{counts}, p = {p_value:.2g}",
    )


def _guarded(guard: Guard, row: Row, is_latency: bool) -> Criterion:
    if is_latency:
        a, b = row[f"{_figure(guard)}_a"], row[f"{_figure(guard)}_b"]
        found = f"{ms(a)} ms to {ms(b)} ms"
    else:
        a, b = row["rate_a"], row["rate_b"]
        found = f"{fraction(row, 'a')} to {fraction(row, 'b')}"
    fell = a - b if guard.way == "lower" else b - a
    return Criterion(guard.text, fell <= guard.allowed + _EQUAL, found)


def _figure(guard: Guard) -> str:
    return guard.metric.replace("-", "_")


def fraction(row: Row, side: str) -> str:
    """`203/232 = 0.8750`: numerator, denominator and rate of one arm."""
    counts = f"{row[f'numerator_{side}']}/{row[f'denominator_{side}']}"
    rate = row[f"rate_{side}"]
    return counts if rate is None else f"{counts} = {rate:.4f}"


def ms(value: float, *, signed: bool = False) -> str:
    """A duration in whole milliseconds; one below ten with two digits behind the point."""
    return f"{value:{'+' if signed else ''}.{0 if abs(value) >= 10 else 2}f}"


def _cost(name: str, measure: str, limit: float, row: Row) -> Criterion:
    a, b = row[f"{measure}_ms_a"], row[f"{measure}_ms_b"]
    return Criterion(
        f"{name} {measure} latency cost at most {limit:g} ms",
        b - a <= limit + _EQUAL,
        f"{ms(a)} ms to {ms(b)} ms, {ms(b - a, signed=True)} ms",
    )
