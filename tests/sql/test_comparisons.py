"""The comparison views over a small world of two arms: every measure, and what is no figure."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arms import START_NS, Asked, send
from cli_store import write_lines
from own_database import step_into
from ragotel.store import Store
from ragotel.triage.grades import load_grades
from ragotel.triage.labels import load_labels

HERE = Path(__file__).resolve().parent
VIEWS = ("ab_lure_ranks", "ab_answers", "ab_pairs", "ab_results")
RECORD = bool(os.environ.get("RAGOTEL_RECORD"))
NARROWED = {
    "ab_pairs": "kind = 'arm' and arm_a = 'base' and k in (0, 1, 3) and given != 'returned'",
    "ab_results": "kind = 'arm' and arm_a = 'base' and k in (0, 3) and given != 'returned'",
}
"""Each pair stands both ways round, with fifteen k: these rows say the same."""
GOLD, SECOND, LURE, OTHER = ("gold", "d1"), ("second", "d2"), ("lure", "d0"), ("other", "d9")
SIBLING = ("sibling", "d1")
TEXTS = {
    "gold": "Units go back within 21 days.",
    "lure": "In 2022 units went back within 30 days.",
    "other": "Parcels are blue.",
}


def label(name: str, **fields: Any) -> dict[str, Any]:
    passages = fields.pop("passages", [{"chunk_ids": ["gold"]}])
    return {
        "label_id": name,
        "set": "small",
        "split": "measurement",
        "question": f"What is asked by {name}?",
        "passages": passages,
        **fields,
    }


LABELS = [
    label("gained"),
    label("lost", lures={"chunk_ids": ["lure"]}),
    label("both", passages=[{"chunk_ids": ["gold"]}, {"chunk_ids": ["second"]}]),
    label("by-text", lures={"spans": ["30 days"]}),
    label("unread", lures={"spans": ["30 days"]}),
    label("voted"),
    label("even"),
    label("only-base"),
    label("malformed", lures={"chunk_ids": ["lure"]}),
    label("nothing"),
    label("file", passages=[{"doc_ids": ["d1"]}], population="files", split="diagnosis"),
    label("no-answer", passages=[], answerable=False),
]


def asked() -> Iterator[Asked]:
    """What the base answered, then what the fix answered; repeats are told by their number."""
    base, fix = {"arm": "base", "run_id": "one"}, {"arm": "fix", "run_id": "one"}
    yield Asked("gained", [OTHER, SIBLING], **base, duration_ms=100)
    yield Asked("gained", [OTHER, GOLD], **fix, duration_ms=140)
    yield Asked("lost", [GOLD, LURE], **base)
    yield Asked("lost", [LURE, OTHER, OTHER, GOLD], **fix)
    yield Asked("both", [GOLD, OTHER, SECOND], **base, superseded=("gold",))
    yield Asked("both", [GOLD, OTHER, OTHER, SECOND], **fix, superseded=("other",))
    yield Asked("by-text", [LURE, GOLD], **base, texts=TEXTS)
    yield Asked("by-text", [OTHER, GOLD, LURE], **fix, texts=TEXTS)
    yield Asked("unread", [OTHER, GOLD], **base)
    yield Asked("unread", [GOLD, OTHER], **fix)
    for repeat, hits in enumerate([[GOLD], [OTHER], [GOLD]]):
        yield Asked("voted", hits, **base, repeat=repeat)
    yield Asked("voted", [OTHER], **fix, rerank_effect="identity")
    for repeat, hits in enumerate([[GOLD], [OTHER]]):
        yield Asked("even", hits, **base, repeat=repeat)
    yield Asked("even", [GOLD], **fix, start_ns=START_NS + 10**9)
    yield Asked("only-base", [GOLD], **base)
    yield Asked("malformed", [GOLD], **base, list_text='[{"id": "gold", "score": NaN')
    yield Asked("malformed", [GOLD], **fix)
    yield Asked("nothing", [], **base)
    yield Asked("nothing", [GOLD], **fix, leg_outcome="error")
    yield Asked("file", [OTHER, SIBLING], **base)
    yield Asked("file", [OTHER], **fix)
    yield Asked("no-answer", [OTHER], **base)
    yield Asked("no-answer", [OTHER], **fix)
    yield Asked("of no label", [OTHER], **fix)


GRADES = {
    "one/base/gained": "wrong",
    "one/fix/gained": "correct",
    "one/base/no-answer": "abstained",
    "one/fix/no-answer": "wrong",
    "one/base/lost": "abstained",
    "one/fix/lost": "wrong",
}


@pytest.fixture(scope="module")
def built(engine: Store, database: str, tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("arms")
    assert not load_labels(engine, [write_lines(folder / "labels.jsonl", *LABELS)]).refused
    send(engine, asked())
    # A batch that is delivered twice counts once.
    send(engine, asked())
    lines = [
        {"request_id": id, "grade": grade, "label_id": id.split("/")[2]}
        for id, grade in GRADES.items()
    ]
    assert not load_grades(engine, [write_lines(folder / "grades.jsonl", *lines)]).refused
    return engine


@pytest.fixture
def arms(built: Store, database: str) -> Store:
    step_into(built, database)
    return built


@pytest.mark.parametrize("view", VIEWS)
def test_a_comparison_view_gives_exactly_these_rows(arms: Store, view: str) -> None:
    """Wins, losses, votes, lures by id and by text, and what could not be measured is null."""
    where = f" where {NARROWED[view]}" if view in NARROWED else ""
    kinds = {row[0]: row[1] for row in arms.query(f"describe table {view}").result_rows}
    columns = ", ".join(
        f"round({name}, 9) as {name}" if "Float64" in kind and "Array" not in kind else name
        for name, kind in kinds.items()
    )
    found = arms.client.raw_query(f"select {columns} from {view}{where}", fmt="CSVWithNames")
    header, *rows = csv.reader(io.StringIO(found.decode()))
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *sorted(rows)])
    path = HERE / view / "arms" / "expected.csv"
    if RECORD:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(out.getvalue(), "utf-8")
    assert out.getvalue() == path.read_text("utf-8")


@pytest.mark.parametrize(
    ("gained", "lost", "printed"),
    [
        *((7, 3, "0.34"), (4, 2, "0.69"), (2, 0, "0.5"), (13, 5, "0.096"), (5, 2, "0.45")),
        *((14, 5, "0.064"), (1, 0, "1"), (1, 4, "0.38"), (2, 4, "0.69"), (8, 6, "0.79")),
        *((18, 7, "0.043"), (19, 8, "0.052"), (0, 0, "1"), (0, 1, "1"), (5, 5, "1")),
    ],
)
def test_the_sign_test_is_exact_and_two_sided(
    store: Store, gained: int, lost: int, printed: str
) -> None:
    """Twice the smaller binomial tail at one half, never above one; no pair at all is 1."""
    p_value = store.scalar(f"select rag_sign_test({gained}, {lost})")
    assert f"{p_value:.2g}" == printed
    assert store.scalar(f"select rag_sign_test({lost}, {gained})") == p_value


def test_the_sign_test_is_exact_for_thousands(store: Store) -> None:
    """Sums of whole numbers say the same, for counts at which a power of two underflows."""
    from fractions import Fraction
    from math import comb

    for gained, lost in [(700, 640), (3000, 2900), (2500, 2300)]:
        n = gained + lost
        exact = 2 * Fraction(sum(comb(n, hits) for hits in range(lost + 1)), 2**n)
        found = store.scalar(f"select rag_sign_test({gained}, {lost})")
        assert found == pytest.approx(float(exact), rel=1e-9)


def test_the_interval_is_wilson_s(store: Store) -> None:
    """It stays within 0 and 1 at both ends, and says nothing of nothing."""
    rows = store.query(
        "select rag_wilson(203, 232), rag_wilson(0, 11), rag_wilson(11, 11), rag_wilson(0, 0)"
    ).result_rows
    rounded = [tuple(None if end is None else round(end, 4) for end in pair) for pair in rows[0]]
    assert rounded == [(0.8262, 0.9115), (0.0, 0.2588), (0.7412, 1.0), (None, None)]
