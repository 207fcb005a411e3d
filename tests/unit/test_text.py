"""Text is made comparable, and a claim found, by the same rules in Python and in SQL."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragotel.store import Store
from ragotel.text import chunk_sha, normalise

WHITE_SPACE = [
    *range(0x09, 0x0E),
    *(0x20, 0x85, 0xA0, 0x1680),
    *range(0x2000, 0x200B),
    *(0x2028, 0x2029, 0x202F, 0x205F, 0x3000),
]
SEPARATORS = [0x1C, 0x1D, 0x1E, 0x1F]
DEFAULT_IGNORABLE = [
    *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5),
    *range(0x180B, 0x1810),
    *range(0x200B, 0x2010),
    *range(0x202A, 0x202F),
    *range(0x2060, 0x2070),
    *(0x3164,),
    *range(0xFE00, 0xFE10),
    *(0xFEFF, 0xFFA0),
    *range(0xFFF0, 0xFFF9),
    *range(0x1BCA0, 0x1BCA4),
    *range(0x1D173, 0x1D17B),
    *range(0xE0000, 0xE1000),
]

_ASSIGNED = [
    code
    for code in range(sys.maxunicode + 1)
    if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co")
]
# Assigned characters, with those that have a meaning for the normaliser much more often.
_CHARACTERS = st.one_of(
    st.sampled_from([chr(code) for code in WHITE_SPACE + SEPARATORS + DEFAULT_IGNORABLE[:80]]),
    st.sampled_from("aZ09 .,-%€ß\u017f\u212a\u212bΩ\u0345\u0301\u0307İ\u0131ﬁﬀ①½²ｱ\uff21가각ᄀ"),
    st.sampled_from(_ASSIGNED).map(chr),
)
_TEXTS = st.text(_CHARACTERS, max_size=24)


@pytest.fixture
def in_sql(store: Store) -> Callable[[str, list[tuple[str, str]]], list[object]]:
    """Evaluate a SQL expression over ``one`` and ``two`` for pairs of texts, in order."""
    store.command("create table pairs (n UInt32, one String, two String) engine = Memory")

    def evaluate(expression: str, pairs: list[tuple[str, str]]) -> list[object]:
        store.command("truncate table pairs")
        rows = [(n, one, two) for n, (one, two) in enumerate(pairs)]
        store.insert("pairs", rows, ["n", "one", "two"])
        result = store.query(f"select {expression} as value from pairs order by n").result_rows
        return [row[0] for row in result]

    return evaluate


def _codes(text: object) -> str:
    return " ".join(f"{ord(character):04X}" for character in str(text))


def _assert_equal(raw: list[str], found: list[object]) -> None:
    different = [
        f"{_codes(text)}: Python {_codes(normalise(text))} | SQL {_codes(value)}"
        for text, value in zip(raw, found, strict=True)
        if normalise(text) != value
    ]
    assert not different, f"{len(different)} differ, first:\n" + "\n".join(different[:10])


@pytest.mark.parametrize(
    ("code_points", "expected"),
    [(WHITE_SPACE + SEPARATORS, "a b"), (DEFAULT_IGNORABLE, "ab")],
    ids=["white space", "default ignorable"],
)
def test_special_code_points(
    code_points: list[int],
    expected: str,
    in_sql: Callable[[str, list[tuple[str, str]]], list[object]],
) -> None:
    """White space is one blank and a default-ignorable nothing: alone, in runs, at the ends."""
    raw = [f"A{chr(code)}b" for code in code_points]
    assert {text: normalise(text) for text in raw} == dict.fromkeys(raw, expected)
    raw += [
        f"{chr(code)}{chr(code)} A {chr(code)}\n{chr(code)}b{chr(code)}" for code in code_points
    ]
    raw += [chr(code) for code in code_points]
    _assert_equal(raw, in_sql("rag_normalise(one)", [(text, "") for text in raw]))


@pytest.mark.slow
def test_every_assigned_code_point(
    in_sql: Callable[[str, list[tuple[str, str]]], list[object]],
) -> None:
    """Python and SQL agree on every code point that this Python's Unicode knows."""
    raw = [f"x{chr(code)}Y" for code in _ASSIGNED]
    _assert_equal(raw, in_sql("rag_normalise(one)", [(text, "") for text in raw]))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(raw=st.lists(_TEXTS, min_size=1, max_size=40))
def test_sampled_texts(
    in_sql: Callable[[str, list[tuple[str, str]]], list[object]], raw: list[str]
) -> None:
    """Python and SQL agree on texts that mix scripts, marks, blanks and invisible characters."""
    _assert_equal(raw, in_sql("rag_normalise(one)", [(text, "") for text in raw]))


@settings(max_examples=300, deadline=None)
@given(text=_TEXTS)
def test_normalising_twice_is_normalising_once(text: str) -> None:
    """A normalised text is its own normal form, so hashes of stored texts are stable."""
    once = normalise(text)
    assert normalise(once) == once
    assert chunk_sha(once) == chunk_sha(text)


def _is_wordlike(character: str) -> bool:
    return unicodedata.category(character)[0] in "LN"


def contains(body: str, claim: str) -> bool:
    """Look for *claim* at every place of *body*; no letter or digit may go on at its ends."""
    if not claim:
        return False
    for start in range(len(body) - len(claim) + 1):
        end = start + len(claim)
        if body[start:end] != claim:
            continue
        runs_on_before = start > 0 and _is_wordlike(body[start - 1]) and _is_wordlike(claim[0])
        runs_on_after = end < len(body) and _is_wordlike(body[end]) and _is_wordlike(claim[-1])
        if not runs_on_before and not runs_on_after:
            return True
    return False


@pytest.mark.parametrize(
    ("body", "claim", "expected"),
    [
        ("10 seats", "10 seats", True),
        ("110 seats", "10 seats", False),
        ("10 seatsx", "10 seats", False),
        ("110 seats, 10 seats.", "10 seats", True),
        ("10 seats10 seats", "10 seats", False),
        ("a 25% credit", "25%", True),
        ("a 25%x credit", "25%", True),
        ("a 125% credit", "25%", False),
        ("$5 (net)", "(net)", True),
        ("x(net)y", "(net)", True),
        ("größe", "gr", False),
        ("aaa", "aa", False),
        ("anything", "", False),
        ("", "a", False),
        ("a.*b \\e [c] {2}", ".*b \\e [c] {2}", True),
        ("10\n seats", "10\n seats", True),
        ("٣٤ seats", "٤ seats", False),
        ("東京都", "京", False),
    ],
)
def test_claim_in_body(
    body: str,
    claim: str,
    expected: bool,
    in_sql: Callable[[str, list[tuple[str, str]]], list[object]],
) -> None:
    """A claim stands in a body only where no letter or digit runs on at its ends."""
    assert contains(body, claim) is expected
    assert in_sql("rag_contains(one, two)", [(body, claim)]) == [int(expected)]


_BODIES = st.text(st.sampled_from("ab1 .%é½京\n\\E*("), max_size=30)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(pairs=st.lists(st.tuples(_BODIES, st.integers(0, 30), st.integers(0, 6)), min_size=1))
def test_sampled_claims(
    in_sql: Callable[[str, list[tuple[str, str]]], list[object]],
    pairs: list[tuple[str, int, int]],
) -> None:
    """SQL finds a claim exactly where looking at every place by hand finds it."""
    texts = [(body, body[start : start + size] or "a") for body, start, size in pairs]
    found = in_sql("rag_contains(one, two)", texts)
    assert found == [int(contains(body, claim)) for body, claim in texts]
