"""Measures: what a rule may count, and the row of ab_results that says it.

Pipeline: rule file -> [triage] -> ab_results -> verdict -> cli
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ragotel.errors import InputError

Given = Literal["asked", "returned", "document_returned"]
By = Literal["chunk", "document"]

CUTS = (*range(1, 11), 15, 20, 30, 50, 100)
"""Every k that ab_pairs and ab_results have rows for."""
WITH_K = ("recall", "all_present", "truth", "current", "clean")
WITHOUT_K = ("lure_first", "stale_first", "lure_before_gold", "accuracy")
LATENCIES = ("p50_ms", "p95_ms")
_NAME = re.compile(r"(?P<measure>[a-z][a-z_0-9]*?)(?:@(?P<k>\d+))?")


@dataclass(frozen=True)
class Metric:
    """One figure of one population: *name* as the rule writes it, the rest as ab_results has it.

    Of a latency (`p50_ms`, `p95_ms`) every row of the population tells the same.
    """

    name: str
    measure: str
    given: str
    k: int

    @property
    def is_latency(self) -> bool:
        return self.measure in LATENCIES


def parse_metric(name: str, by: By | None = None, given: Given | None = None) -> Metric:
    """Read a metric's name: `recall@5`, `current@3`, `lure-first`, `accuracy`, `p95_ms`.

    Args:
        by: `document` counts any chunk of the gold's document; of `recall` only.
        given: Which answers count at all; by default every one, of `truth` those whose list has
            the gold's document.

    Raises:
        InputError: There is no such metric; the message names the nearest one.
    """
    found = _NAME.fullmatch(name.replace("-", "_"))
    measure = found["measure"] if found else ""
    if measure in LATENCIES and found and not found["k"]:
        return _plain(name, measure, by, given)
    if measure in WITHOUT_K and found and not found["k"]:
        return _plain(name, measure, by, given)
    if measure not in WITH_K or not found:
        known = [*(f"{one}@5" for one in WITH_K), *WITHOUT_K, *LATENCIES]
        raise InputError(f"There is no metric {name!r}{nearest(name.replace('-', '_'), known)}.")
    if not found["k"]:
        raise InputError(f"The metric {name!r} says no k; write {name}@5.")
    k = int(found["k"])
    if k not in CUTS:
        raise InputError(
            f"The metric {name!r} has a k that is not counted; it can be {_listed(CUTS)}."
        )
    return _ranked(name, measure, k, by, given)


def _plain(name: str, measure: str, by: By | None, given: Given | None) -> Metric:
    if by or given:
        raise InputError(f"The metric {name!r} takes neither `by` nor `given`.")
    return Metric(name, measure, "asked", 0)


def _ranked(name: str, measure: str, k: int, by: By | None, given: Given | None) -> Metric:
    if by == "document" and measure != "recall":
        raise InputError(f"The metric {name!r} is by chunk; only recall can be by document.")
    if given and measure == "clean":
        raise InputError(f"The metric {name!r} takes no `given`: it counts lists with a hit.")
    if by == "document":
        if given == "document_returned":
            raise InputError(
                f"The metric {name!r} by document, given the document, would always be 1."
            )
        return Metric(name, "document_recall", given or "asked", k)
    if measure == "truth":
        return Metric(name, "recall", given or "document_returned", k)
    return Metric(name, measure, given or "asked", k)


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean …?`, or nothing where no known name is near."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def _listed(values: Iterable[int]) -> str:
    return ", ".join(map(str, values))
