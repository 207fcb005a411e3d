"""Moments and spans of time as people write them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from ragotel.errors import InputError
from ragotel.triage.times import Moment, parse_moment, parse_span, widened

_NOW = datetime(2026, 11, 30, 12, 30, tzinfo=timezone.utc)


def _at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=timezone.utc)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2026-11-19", _at(2026, 11, 19), _at(2026, 11, 20)),
        (" today ", _at(2026, 11, 30), _at(2026, 12, 1)),
        ("yesterday", _at(2026, 11, 29), _at(2026, 11, 30)),
        ("2026-11-19 14:30", _at(2026, 11, 19, 14, 30), _at(2026, 11, 19, 14, 30)),
        ("2026-11-19T14:30:00Z", _at(2026, 11, 19, 14, 30), _at(2026, 11, 19, 14, 30)),
        ("2026-11-19T14:30:00+09:00", _at(2026, 11, 19, 5, 30), _at(2026, 11, 19, 5, 30)),
        ("11d", _at(2026, 11, 19, 12, 30), _at(2026, 11, 19, 12, 30)),
        ("90 minutes ago", _at(2026, 11, 30, 11), _at(2026, 11, 30, 11)),
        ("now", _NOW, _NOW),
        ("999999w", _at(1970, 1, 1), _at(1970, 1, 1)),
    ],
)
def test_moments(text: str, start: datetime, end: datetime) -> None:
    """A day is all of it, anything else a point; no zone means UTC."""
    assert parse_moment(text, now=_NOW) == Moment(start, end)


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "1d2h", "5 fortnights", "0001-01-01"])
def test_what_is_no_moment(text: str) -> None:
    """Anything else is refused in one line."""
    with pytest.raises(InputError) as caught:
        parse_moment(text, now=_NOW)
    assert "\n" not in str(caught.value)


def test_spans() -> None:
    """Minutes, hours, days and weeks, short or in words."""
    assert [parse_span(text) for text in ("90m", "36h", "1d", "2 weeks", "0.5 day")] == [
        timedelta(minutes=90),
        timedelta(hours=36),
        timedelta(days=1),
        timedelta(weeks=2),
        timedelta(hours=12),
    ]
    with pytest.raises(InputError):
        parse_span("long")


def test_widening_stays_within_what_the_store_can_hold() -> None:
    """A day widened by a day is three days; the ends of time are not passed."""
    day = parse_moment("2026-11-19")
    assert widened(day, timedelta(days=1)) == Moment(_at(2026, 11, 18), _at(2026, 11, 21))
    assert widened(day, timedelta(days=999_999)) == Moment(_at(1970, 1, 1), _at(2262, 1, 1))
