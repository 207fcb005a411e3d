"""Limits: what is allowed before an alert is raised, built in or set by a person.

Pipeline: cli -> [triage] -> rag_limits -> rag_limits_in_force -> alert views
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragotel.errors import InputError
from ragotel.store import Store

_BUCKET = ("max_share", "max_deviation", "min_sample")
_SHARE = ("max_share", "min_sample")

LIMITS: Mapping[str, tuple[str, ...]] = {
    "corpus_gap": _BUCKET,
    "retrieval_miss": _BUCKET,
    "context_problem": _BUCKET,
    "generation_error": _BUCKET,
    "unknown": _BUCKET,
    "not_answerable": _BUCKET,
    "ungraded": _BUCKET,
    "passed": ("max_deviation", "min_sample"),
    "failed_stage": _SHARE,
    "reranker_fallback": ("min_sample",),
    "docs_listed_drop": _SHARE,
    "mean_chars_drop": _SHARE,
    "docs_empty": _SHARE,
    "chunks_deleted": ("max_deviation", "min_sample"),
    "spans_lost": _SHARE,
}
"""Every limit and the values that it has; passed falls below its baseline, all others rise."""

ALWAYS = 0.05
"""A corpus gap above this share is an alert, whatever was set."""


@dataclass(frozen=True)
class Limit:
    """One limit of one service ('' is all); a None leaves that value as it is built in.

    *max_share* is 0 to 1. *max_deviation* is a share too, or how many times the usual
    chunks_deleted may be. With fewer than *min_sample* nothing is judged.
    """

    limit_name: str
    service_name: str = ""
    max_share: float | None = None
    max_deviation: float | None = None
    min_sample: int | None = None

    @property
    def given(self) -> dict[str, float | int]:
        """The values that are not None."""
        values = {name: getattr(self, name) for name in _BUCKET}
        return {name: value for name, value in values.items() if value is not None}


def check_limit(limit: Limit) -> None:
    """See that *limit* can be kept.

    Raises:
        InputError: There is no such limit, it has no such value, or the value cannot work.
    """
    fields = LIMITS.get(limit.limit_name)
    if fields is None:
        close = difflib.get_close_matches(limit.limit_name, LIMITS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "`ragotel limits list` names all."
        raise InputError(f"There is no limit {limit.limit_name!r}; {hint}")
    for name in limit.given:
        if name not in fields:
            raise InputError(
                f"The limit {limit.limit_name} has no {name}; it has {', '.join(fields)}."
            )
    if limit.limit_name == "corpus_gap" and (limit.max_share or 0) > ALWAYS:
        raise InputError(
            f"A corpus gap above {ALWAYS:.0%} is an alert always: --max-share of corpus_gap can be "
            f"made smaller, not {limit.max_share:.1%}."
        )


def write_limit(store: Store, limit: Limit) -> None:
    """Keep *limit*; it replaces what was set before for this limit and service.

    Raises:
        InputError: See `check_limit`.
    """
    check_limit(limit)
    row = (
        *(limit.limit_name, limit.service_name),
        *(limit.max_share, limit.max_deviation, limit.min_sample),
    )
    columns = ("limit_name", "service_name", "max_share", "max_deviation", "min_sample")
    store.insert("rag_limits", [row], columns)


def limits_in_force(store: Store) -> list[dict[str, Any]]:
    """Every limit that holds, in the order of LIMITS, that for all services before the others'."""
    return store.rows(
        "select * from rag_limits_in_force\n"
        "order by indexOf({names:Array(String)}, limit_name), service_name",
        {"names": list(LIMITS)},
    )
