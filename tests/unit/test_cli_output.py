"""Tables, JSON and times as the command line prints them."""

from __future__ import annotations

import json
import math
from datetime import datetime, timedelta, timezone

import pytest

from ragotel.cli.output import (
    Column,
    cell,
    iso,
    jsonable,
    one_line,
    paint,
    print_json,
    print_rows,
    say,
    table_lines,
)
from ragotel.cli.whiteboard import score_decimals

_COLUMNS = (Column("id"), Column("n", is_number=True), Column("text", is_text=True))
_ROWS = [
    {"id": "a/very/long/id#1", "n": 7, "text": "one two three four five six"},
    {"id": "b", "n": None, "text": "日本語 text"},
]


def test_a_piped_table_is_complete() -> None:
    """Without a terminal no cell is cut; numbers stand right, ids left."""
    assert table_lines(_ROWS, _COLUMNS, width=None) == [
        "id                n  text",
        "a/very/long/id#1  7  one two three four five six",
        "b                    日本語 text",
    ]


def test_a_narrow_terminal_cuts_texts_and_never_ids() -> None:
    """Only text columns give way, with … at the cut."""
    assert table_lines(_ROWS, _COLUMNS, width=36) == [
        "id                n  text",
        "a/very/long/id#1  7  one two three …",
        "b                    日本語 text",
    ]
    assert table_lines(_ROWS, _COLUMNS, width=5)[1] == "a/very/long/id#1  7  one two thr…"


def test_a_wide_character_takes_two_columns() -> None:
    """An ideograph is measured as terminals draw it."""
    rows = [{"id": "日本", "n": 1}, {"id": "ab", "n": 2}]
    assert table_lines(rows, _COLUMNS[:2], width=None) == ["id    n", "日本  1", "ab    2"]


def test_text_cannot_command_the_terminal() -> None:
    """Control characters of a recorded text become visible; line breaks become blanks."""
    assert one_line("a\x1b[31mb\r\nc\td\x07\u2028e") == "a\\x1b[31mb c d\\x07 e"


def test_whatever_is_said_stays_on_its_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Escape sequences and line breaks of a value are harmless in a line, a table and JSON."""
    hostile = "a\x1b[31m\n\x9b2J\u202eb\x1b]0;pwn\x07"
    shown = "a\\x1b[31m \\x9b2J\\u202eb\\x1b]0;pwn\\x07"
    say(f"id {hostile}.")
    assert capsys.readouterr().out == f"id {shown}.\n"
    print_rows([{"id": hostile, "n": 1}], [Column("id", hostile), Column("n", is_number=True)])
    assert capsys.readouterr().out == f"{shown}  n\n{shown}  1\n"
    print_json({"id": hostile})
    told = capsys.readouterr().out
    assert json.loads(told) == {"id": hostile}
    assert not set(told) & {"\x1b", "\x9b", "\x07", "\u202e"}
    # On a terminal only the colours of `paint` pass; nothing that hides, moves or clears.
    monkeypatch.setattr("ragotel.cli.output.has_colour", lambda: True)
    say(paint("red", fg="red", bold=True) + "\x1b[8m\x1b[2J")
    # Click takes those out again, as this is no terminal.
    assert capsys.readouterr().out == "red\\x1b[8m\\x1b[2J\n"


def test_cells() -> None:
    """Null is blank, booleans are words, lists are comma-separated, NaN is blank."""
    values = [
        None,
        True,
        False,
        0.1 + 0.2,
        math.nan,
        ["a", None, 1],
        datetime(2026, 11, 19, 1, 2, 3),
    ]
    assert [cell(value) for value in values] == [
        *("", "yes", "no", "0.3", "", "a, , 1", "2026-11-19 01:02:03"),
    ]


def test_json_has_no_nan_and_times_are_utc() -> None:
    """A time with a zone is turned into UTC, one without is UTC."""
    zone = timezone(timedelta(hours=9))
    value = {"a": (math.nan, math.inf, 1.5), "b": b"x", "c": datetime(2026, 11, 19, 9, tzinfo=zone)}
    assert jsonable(value) == {"a": [None, None, 1.5], "b": "x", "c": "2026-11-19T00:00:00.000000Z"}
    assert iso(datetime(2026, 11, 19, 10, 23, 45, 123456)) == "2026-11-19T10:23:45.123456Z"


@pytest.mark.parametrize(
    ("scores", "decimals"),
    [
        ([0.412, 0.388, None], 3),
        ([0.03278, 0.03252, 0.0164], 4),
        ([0.5, 0.5, 0.5], 3),
        ([0.0000001, 0.0000002], 6),
        ([], 3),
    ],
)
def test_scores_keep_neighbours_apart(scores: list[float | None], decimals: int) -> None:
    """Three decimals, more where two different neighbours would look the same."""
    assert score_decimals(scores) == decimals
