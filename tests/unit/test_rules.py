"""Adoption rules: what a file may say, how it is refused, which criteria it makes."""

from __future__ import annotations

import pytest

from ragotel.errors import InputError
from ragotel.triage.criteria import wanted_metrics
from ragotel.triage.measures import Metric, parse_metric
from ragotel.triage.rules import parse_guard, parse_rule

SMALL = 'name = "r"\n[populations.golden]\nprimary = "recall@5"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", "rule.toml is no TOML: "),
        (SMALL.replace("name", "nane"), "there is no key nane; did you mean 'name'?"),
        (SMALL.partition("\n")[2], "the key name is missing"),
        (
            SMALL + "p95_cost = 1\n",
            "no key populations.golden.p95_cost; did you mean 'p95_cost_ms'?",
        ),
        (
            SMALL + '[populations.golden.metrics]\n"recall@5" = { form = "document" }\n',
            'there is no key populations.golden.metrics."recall@5".form',
        ),
        ("alpha = 2\n" + SMALL, "alpha is 2: input should be less than 1"),
        ('repeats = "best"\n' + SMALL, "repeats is 'best': input should be 'single' or 'majority'"),
        ('name = "r"\n[populations.a]\n', "The rule has no criterion"),
        (SMALL.replace("recall@5", "recal@5"), "no metric 'recal@5'; did you mean 'recall@5'?"),
        (SMALL.replace("recall@5", "recall"), "The metric 'recall' says no k; write recall@5."),
        (SMALL.replace("recall@5", "recall@12"), "a k that is not counted; it can be 1, 2, 3"),
        (SMALL.replace("recall@5", "p95_ms"), "cannot be a latency"),
        ('guards = ["golden recall@5 is fine"]\n' + SMALL, "is not of the form POPULATION METRIC"),
        (
            'guards = ["goldn recall@5 not lower"]\n' + SMALL,
            "no population 'goldn'; did you mean 'golden'?; it would be [populations.goldn].",
        ),
        ('pool = ["golden"]\n' + SMALL, "The pool's 'golden' is not of the form"),
        (
            SMALL + '[populations.golden.metrics]\n"current@5" = { by = "document" }\n',
            "only recall can be by document",
        ),
        (
            SMALL + '[populations.golden.metrics]\n"lure-first" = { given = "returned" }\n',
            "takes neither `by` nor `given`",
        ),
    ],
)
def test_a_file_that_is_no_rule_is_refused_in_one_line(text: str, said: str) -> None:
    """The message names the file, the key and the nearest known name."""
    with pytest.raises(InputError) as refused:
        parse_rule(text)
    message = str(refused.value)
    assert message.startswith("rule.toml")
    assert said in message
    assert "\n" not in message


def test_the_hash_is_of_what_a_rule_says() -> None:
    """Comments, order, spelled-out defaults change nothing; a limit does."""
    same = 'alpha = 0.05\n# a comment\nname = "r"\n[populations]\ngolden = {primary = "recall@5"}\n'
    assert parse_rule(same).sha256 == parse_rule(SMALL).sha256
    assert parse_rule("alpha = 0.01\n" + SMALL).sha256 != parse_rule(SMALL).sha256
    assert parse_rule(SMALL).canonical == (
        '{"name":"r","populations":{"golden":{"primary":"recall@5"}}}'
    )


@pytest.mark.parametrize(
    ("name", "options", "metric"),
    [
        ("recall@5", (None, None), ("recall", "asked", 5)),
        ("recall@5", ("document", None), ("document_recall", "asked", 5)),
        ("truth@5", (None, None), ("recall", "document_returned", 5)),
        ("truth@5", (None, "returned"), ("recall", "returned", 5)),
        ("current@3", ("chunk", None), ("current", "asked", 3)),
        ("all-present@10", (None, None), ("all_present", "asked", 10)),
        ("clean@3", (None, None), ("clean", "asked", 3)),
        ("stale-first", (None, None), ("stale_first", "asked", 0)),
        ("accuracy", (None, None), ("accuracy", "asked", 0)),
        ("p95_ms", (None, None), ("p95_ms", "asked", 0)),
    ],
)
def test_a_metric_is_one_row_of_the_results(
    name: str, options: tuple[None, None], metric: tuple[str, str, int]
) -> None:
    """Its name and options say which measure, condition and k are read."""
    assert parse_metric(name, *options) == Metric(name, *metric)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a lure-first not higher", ("a", "lure-first", "higher", 0)),
        ("a  recall@5 not lower than the base", ("a", "recall@5", "lower", 0)),
        ("a recall@5 not lower by more than 0.01", ("a", "recall@5", "lower", 0.01)),
        ("a recall@5 lower by at most 0.01", ("a", "recall@5", "lower", 0.01)),
        ("a p95_ms not higher by more than 20 ms", ("a", "p95_ms", "higher", 20)),
    ],
)
def test_a_guard_is_a_sentence(text: str, found: tuple[str, str, str, float]) -> None:
    """Population, metric, direction and what is allowed."""
    guard = parse_guard(text)
    assert (guard.population, guard.metric, guard.way, guard.allowed) == found


def test_metrics_are_counted_as_their_population_says() -> None:
    """A hyphen and an underscore are one; options hold for every use of the metric."""
    rule = parse_rule(
        'name = "r"\nguards = ["golden lure-first not higher"]\n'
        '[populations.golden]\nprimary = "recall@5"\n'
        '[populations.golden.metrics]\n"recall@5" = { by = "document" }\nlure_first = {}\n'
    )
    assert wanted_metrics(rule) == {
        ("golden", "recall@5"): Metric("recall@5", "document_recall", "asked", 5),
        ("golden", "lure_first"): Metric("lure-first", "lure_first", "asked", 0),
    }
