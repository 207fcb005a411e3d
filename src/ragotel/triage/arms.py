"""Arms: the two sides of a comparison, found by the names that their requests carry.

Pipeline: rag_requests -> [triage] -> ab_results -> cli
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from ragotel.errors import InputError
from ragotel.store import Store
from ragotel.triage.measures import nearest

KINDS = ("arm", "run", "run/arm")
"""What a name may be: a rag.arm, a rag.run.id, or both as RUN/ARM."""
_NAMES = (
    "select distinct run_id, toString(arm) as arm from rag_requests where run_id != '' or arm != ''"
)
_OF_KIND = {
    "arm": "toString(arm)",
    "run": "run_id",
    "run/arm": "if(run_id = '' or arm = '', '', concat(run_id, '/', arm))",
}


class RefusedError(InputError):
    """Nothing was judged; *reasons* says why, one sentence each."""

    def __init__(self, *reasons: str) -> None:
        super().__init__(" ".join(reasons))
        self.reasons = reasons


@dataclass(frozen=True)
class Arm:
    """One side: its requests, the labelled ones among them, and when the first began (UTC)."""

    name: str
    kind: str
    requests: int
    labelled_requests: int
    began_at: datetime

    @property
    def unlabelled_requests(self) -> int:
        return self.requests - self.labelled_requests


def find_arms(store: Store, a: str, b: str) -> tuple[Arm, Arm]:
    """Find both arms; a name may be told as `arm:NAME`, `run:ID` or `RUN/ARM`.

    Raises:
        RefusedError: One is unknown, a name has several meanings, both are the same, or one
            is an arm and the other a run.
    """
    kinds = _kinds_of_names(store)
    options = [_options(kinds, text) for text in (a, b)]
    shared = [kind for kind in KINDS if all(kind in option[1] for option in options)]
    names = [option[0] for option in options]
    if not shared:
        meanings = [f"{name!r} is {_either(option[1])}" for name, option in _pair(names, options)]
        raise RefusedError(
            f"{meanings[0]} and {meanings[1]}: name both as arms, as runs, or as RUN/ARM."
        )
    if len(shared) > 1:
        raise RefusedError(
            f"{names[0]!r} and {names[1]!r} name arms as well as runs: write arm:{names[0]} and "
            f"arm:{names[1]}, or run:{names[0]} and run:{names[1]}."
        )
    if names[0] == names[1]:
        raise RefusedError(f"Both sides are {names[0]!r}; a comparison takes two.")
    found = [_read_arm(store, name, shared[0]) for name in names]
    return found[0], found[1]


def _pair(names: list[str], options: list[tuple[str, list[str]]]) -> Iterable[Any]:
    return zip(names, options, strict=True)


def _kinds_of_names(store: Store) -> Mapping[str, set[str]]:
    kinds: dict[str, set[str]] = {}
    for row in store.rows(_NAMES):
        run, arm = row["run_id"], row["arm"]
        for kind, name in (("arm", arm), ("run", run), ("run/arm", run and arm and f"{run}/{arm}")):
            if name:
                kinds.setdefault(name, set()).add(kind)
    return kinds


def _options(kinds: Mapping[str, set[str]], text: str) -> tuple[str, list[str]]:
    """The plain name in *text* and the kinds that it may be of."""
    prefix, colon, rest = text.partition(":")
    if text not in kinds and colon and prefix in ("arm", "run") and prefix in kinds.get(rest, ()):
        return rest, [prefix]
    if text not in kinds:
        names = sorted(kinds)
        known = nearest(text, names) if names else "; no request of this store names one"
        raise RefusedError(f"No request names the run or arm {text!r}{known}.")
    return text, [kind for kind in KINDS if kind in kinds[text]]


def _either(kinds: list[str]) -> str:
    return " or ".join(
        "a run's arm" if kind == "run/arm" else f"a{_n(kind)} {kind}" for kind in kinds
    )


def _n(word: str) -> str:
    return "n" if word[0] in "aeiou" else ""


def _read_arm(store: Store, name: str, kind: str) -> Arm:
    (row,) = store.rows(
        "select uniqExact(trace_id, request_id) as requests,\n"  # noqa: S608 (an expression of ours)
        "    uniqExactIf((trace_id, request_id), (trace_id, request_id) in\n"
        "        (select trace_id, request_id from rag_request_labels)) as labelled_requests,\n"
        "    min(started_at) as began_at\n"
        f"from rag_requests where {_OF_KIND[kind]} = {{name:String}}",
        {"name": name},
    )
    began: datetime = row["began_at"]
    if began.tzinfo is None:
        began = began.replace(tzinfo=timezone.utc)
    return Arm(name, kind, row["requests"], row["labelled_requests"], began)
