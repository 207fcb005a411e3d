"""Rules: an adoption rule as a TOML file, read into its criteria, each in its own words.

Pipeline: rule.toml -> [triage] -> rag_rules; ab_results -> verdict -> cli
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ragotel.errors import InputError
from ragotel.triage.measures import By, Given, Metric, nearest, parse_metric

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_GUARD = re.compile(
    r"(?P<population>\S+) (?P<metric>\S+) (?P<no>not )?(?P<way>lower|higher)"
    r"(?: than (?:the )?base)?"
    r"(?: by (?P<how>more than|at most) (?P<allowed>\d+(?:\.\d+)?)(?: ms)?)?"
)
_GUARD_FORM = "POPULATION METRIC not lower|higher [by more than X]"
Word = Annotated[str, Field(min_length=1, pattern=r"^\S+$")]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class MetricOptions(_Part):
    """How a metric of one population is counted, where its name alone does not say it."""

    by: By | None = None
    given: Given | None = None


class Population(_Part):
    """Questions that are judged together: a population of labels, else a whole label set."""

    population: Word | None = None
    """As the labels name it; default: the table's own name."""
    label_set: Word | None = None
    """Needed only where several label sets have a population of that name."""
    primary: Word | None = None
    """Its wins must exceed its losses, and its losses must not be significant."""
    p50_cost_ms: float | None = Field(default=None, ge=0)
    p95_cost_ms: float | None = Field(default=None, ge=0)
    """The second arm may be slower by at most so many milliseconds."""
    metrics: dict[str, MetricOptions] = {}
    """Metrics to show beside those that are judged, and how metrics are counted."""


class Rule(_Part):
    """An adoption rule, as `docs/comparing.md` describes it."""

    name: Word
    alpha: float = Field(default=0.05, gt=0, lt=1)
    split: Literal["all", "diagnosis", "measurement"] = "all"
    repeats: Literal["single", "majority"] = "single"
    allow_degraded: bool = False
    guards: tuple[str, ...] = ()
    pool: tuple[str, ...] = ()
    populations: dict[Word, Population] = Field(min_length=1)

    @property
    def canonical(self) -> str:
        """What the rule says, as one line of JSON: the same whatever its comments and order."""
        return json.dumps(
            self.model_dump(mode="json", exclude_defaults=True),
            sort_keys=True,
            ensure_ascii=False,
            separators=(",", ":"),
        )

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.canonical.encode()).hexdigest()

    def metric(self, population: str, name: str) -> Metric:
        """A metric as this rule counts it in *population*.

        Raises:
            InputError: The rule has no such population, or there is no such metric.
        """
        if population not in self.populations:
            raise InputError(
                f"The rule has no population {population!r}"
                f"{nearest(population, self.populations)}; it would be [populations.{population}]."
            )
        wanted = name.replace("-", "_")
        for key, options in self.populations[population].metrics.items():
            if key.replace("-", "_") == wanted:
                return parse_metric(name, options.by, options.given)
        return parse_metric(name)


class Guard(_Part):
    """One sentence of `guards`: a figure of the second arm beside the first one's."""

    text: str
    population: str
    metric: str
    way: Literal["lower", "higher"]
    allowed: float = 0


def parse_guard(text: str) -> Guard:
    """Read `incident stale-first not higher by more than 0.01`, or `… higher by at most 0.01`.

    Raises:
        InputError: It is not of that form.
    """
    words = " ".join(text.split())
    found = _GUARD.fullmatch(words)
    if found is None or not (found["no"] or found["how"] == "at most"):
        raise InputError(f"The guard {text!r} is not of the form {_GUARD_FORM}.")
    return Guard(
        text=words,
        population=found["population"],
        metric=found["metric"],
        way="lower" if found["way"] == "lower" else "higher",
        allowed=float(found["allowed"] or 0),
    )


def read_rule(path: str) -> tuple[Rule, str]:
    """Read a rule file; the rule and the file's text.

    Raises:
        InputError: It cannot be read, or it is no rule; the message says where, in one line.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except OSError as error:
        raise InputError(f"The rule {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"The rule {path} is not UTF-8.") from error
    return parse_rule(text, path), text


def parse_rule(text: str, path: str = "rule.toml") -> Rule:
    """Read the text of a rule file, and see that every metric and guard of it can be judged.

    Raises:
        InputError: It is no TOML or no rule.
    """
    try:
        rule = Rule.model_validate(tomllib.loads(text))
        _check(rule)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is no TOML: {_flat(str(error))}.") from error
    except ValidationError as error:
        raise InputError(f"{path}: {_first_fault(error)}") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    return rule


def _check(rule: Rule) -> None:
    """Read everything that the criteria will read."""
    for name, population in rule.populations.items():
        for metric in population.metrics:
            rule.metric(name, metric)
        if population.primary and rule.metric(name, population.primary).is_latency:
            raise InputError(
                f"The primary of {name!r} cannot be a latency: it has no wins; use p95_cost_ms."
            )
    for text in rule.guards:
        guard = parse_guard(text)
        rule.metric(guard.population, guard.metric)
    for text in rule.pool:
        population_name, metric_name = pooled_name(text)
        if rule.metric(population_name, metric_name).is_latency:
            raise InputError(f"The pool cannot hold the latency {text!r}: it has no wins.")
    has_criteria = any(
        one.primary or one.p50_cost_ms is not None or one.p95_cost_ms is not None
        for one in rule.populations.values()
    )
    if not (has_criteria or rule.guards or rule.pool):
        raise InputError(
            "The rule has no criterion; give a population a `primary`, or write `guards`."
        )


def pooled_name(text: str) -> tuple[str, str]:
    """Read one entry of `pool`: a population and a metric."""
    words = text.split()
    if len(words) != 2:
        raise InputError(f"The pool's {text!r} is not of the form POPULATION METRIC.")
    return words[0], words[1]


def _first_fault(error: ValidationError) -> str:
    """The first fault in words; an unknown key with the nearest known one."""
    faults = error.errors(include_url=False)
    # A misspelled key is the reason why another one is missing.
    fault = next((one for one in faults if one["type"] == "extra_forbidden"), faults[0])
    place = [str(part) for part in fault["loc"] if part != "[key]"]
    where = ".".join(f'"{part}"' if "@" in part else part for part in place)
    if fault["type"] == "extra_forbidden":
        known = list(_model_at(place).model_fields)
        near = nearest(place[-1], known)
        return f"there is no key {where}{near or '; it can be ' + ', '.join(known)}."
    if fault["type"] == "missing":
        return f"the key {where} is missing."
    return f"{where} is {_shown(fault['input'])}: {_flat(fault['msg'])}."


def _model_at(place: list[str]) -> type[_Part]:
    if len(place) == 1:
        return Rule
    return Population if len(place) == 3 else MetricOptions


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "…"


def _flat(message: str) -> str:
    words = " ".join(message.split()).rstrip(".")
    return words[:1].lower() + words[1:]
