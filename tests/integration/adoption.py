"""A study in which a rule judged three fixes: its arms as lists of hits that give its figures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arms import START_NS, Asked

GOLDEN, PROBES, INCIDENTS = 232, 26, 76
GOLDEN_BASE_HITS = 203
FACTS = json.loads((Path(__file__).parent / "seed_cases.json").read_text("utf-8"))["adoption"]
RULE = """\
# Written before the first arm ran.
name = "one-fix"
alpha = 0.05
split = "measurement"

guards = [
    "incident current@3 not lower",
    "incident stale-first not higher",
    "probe truth@5 not lower",
    "probe lure-first not higher",
]

[populations.golden]
primary = "recall@5"
p95_cost_ms = 150

[populations.golden.metrics]
"recall@5" = { by = "document" }

[populations.probe]

[populations.incident]
"""


@dataclass(frozen=True)
class Figures:
    """What one arm did, question by question: the questions that hit, by their numbers."""

    golden: set[int]
    p95_ms: float
    probe_files: set[int]
    """Probes whose right file came back."""
    probe_hits: set[int]
    lures_first: set[int]
    """Of the first eleven probes, which have lures."""
    current: set[int]
    stale_first: set[int]


def _but(count: int, gained: int, lost: int) -> set[int]:
    """The first *count* questions, *lost* of which miss and *gained* others of which hit."""
    return (set(range(count)) - set(range(lost))) | set(range(count, count + gained))


ARMS = {
    "base": Figures(
        golden=_but(203, 0, 0),
        p95_ms=324,
        probe_files=set(range(22)),
        probe_hits=set(range(18)),
        lures_first={0, 1},
        current=_but(65, 0, 0),
        stale_first={73, 74, 75},
    ),
    "F1": Figures(
        golden=_but(203, 7, 3),
        p95_ms=355,
        probe_files=set(range(23)),
        probe_hits=set(range(2, 22)),
        lures_first=set(),
        current=_but(65, 2, 0),
        stale_first={73, 74, 75},
    ),
    "F2": Figures(
        golden=_but(203, 1, 0),
        p95_ms=351,
        probe_files=set(range(23)),
        probe_hits=set(range(17)),
        lures_first={0, 1},
        current=_but(65, 0, 0),
        stale_first={71, 72, 73, 74, 75},
    ),
    "F3": Figures(
        golden=_but(203, 1, 4),
        p95_ms=373,
        probe_files=set(range(22)),
        probe_hits=set(range(17)),
        lures_first={0},
        current=_but(65, 0, 2),
        stale_first={72, 73, 74, 75},
    ),
}


def labels() -> Iterator[dict[str, Any]]:
    """Golden questions name a file, probes a chunk and some a lure, incidents a stale answer."""
    for number in range(GOLDEN):
        yield _label("golden", number, {"doc_ids": [f"golden-{number}.md"]})
    for number in range(PROBES):
        lures = {"chunk_ids": [f"probe-{number}-lure"]} if number < 11 else {}
        yield _label("probe", number, {"chunk_ids": [f"probe-{number}.md#2"]}, lures)
    for number in range(INCIDENTS):
        lures = {"chunk_ids": [f"incident-{number}-stale"]}
        yield _label("incident", number, {"chunk_ids": [f"incident-{number}.md#0"]}, lures)


def _label(
    label_set: str, number: int, passage: dict[str, Any], lures: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "label_id": f"{label_set}-{number}",
        "set": label_set,
        "split": "measurement",
        "question": f"What is asked by {label_set}-{number}?",
        "passages": [passage],
        "lures": lures or {},
    }


def manifest() -> Iterator[dict[str, Any]]:
    """Which file each chunk of the probes is of."""
    for number in range(PROBES):
        for part in (0, 2):
            yield {"chunk_id": f"probe-{number}.md#{part}", "doc_id": f"probe-{number}.md"}


def asked(arm: str, run_id: str = "", repeat: int = 0, start_ns: int = START_NS) -> Iterator[Asked]:
    """Every question as *arm* answered it; the same in every repeat."""
    figures = ARMS[arm]
    for label_id, hits, took_ms in _lists(figures):
        yield Asked(
            label_id,
            hits,
            arm=arm,
            run_id=run_id,
            duration_ms=took_ms,
            repeat=repeat,
            start_ns=start_ns,
        )


def _lists(figures: Figures) -> Iterator[tuple[str, list[tuple[str, str]], float]]:
    for number in range(GOLDEN):
        gold = [(f"golden-{number}.md#1", f"golden-{number}.md")]
        at = 4 if number in figures.golden else 5
        # The 95th percentile of 232 lies between the 220th and the 221st.
        took_ms = 200.0 if number < 200 else figures.p95_ms
        yield f"golden-{number}", [*_others(at), *gold, *_others(10, at)], took_ms
    for number in range(PROBES):
        yield f"probe-{number}", _probe_hits(figures, number), 180.0
    for number in range(INCIDENTS):
        yield f"incident-{number}", _incident_hits(figures, number), 190.0


def _probe_hits(figures: Figures, number: int) -> list[tuple[str, str]]:
    file = f"probe-{number}.md"
    lure = (f"probe-{number}-lure", f"probe-{number}-old.md")
    first = [lure] if number in figures.lures_first else _others(1)
    last = [lure] if number < 11 and number not in figures.lures_first else []
    if number in figures.probe_hits:
        return [*first, (f"{file}#2", file), *_others(8, 1), *last]
    if number in figures.probe_files:
        return [*first, (f"{file}#0", file), *_others(8, 1), *last]
    return [*first, *_others(9, 1), *last]


def _incident_hits(figures: Figures, number: int) -> list[tuple[str, str]]:
    stale = (f"incident-{number}-stale", f"incident-{number}-old.md")
    gold = (f"incident-{number}.md#0", f"incident-{number}.md")
    first = [stale] if number in figures.stale_first else _others(1)
    last = [] if number in figures.stale_first else [stale]
    if number in figures.current:
        return [*first, *_others(2, 1), gold, *_others(8, 2), *last]
    return [*first, *_others(8, 1), *last, gold]


def _others(end: int, start: int = 0) -> list[tuple[str, str]]:
    return [(f"other-{at}.md#0", f"other-{at}.md") for at in range(start, end)]
