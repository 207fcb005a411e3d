"""Times: reads what a person writes for a moment or a span of time; everything is UTC.

Pipeline: cli -> [triage] -> views
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta, timezone

from ragotel.errors import InputError

_UNITS_S = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86_400),
    **dict.fromkeys(("w", "week", "weeks"), 604_800),
}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)(?:\s+ago)?", re.IGNORECASE)
_EARLIEST = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LATEST = datetime(2262, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Moment:
    """A point in time, or a whole day: *start* to *end* (excluded), both UTC."""

    start: datetime
    end: datetime

    @property
    def middle(self) -> datetime:
        return self.start + (self.end - self.start) / 2


def parse_moment(text: str, *, now: datetime | None = None) -> Moment:
    """Read `2026-11-19`, `2026-11-19 14:30`, ISO 8601, `today`, `yesterday`, `11d`, `now`.

    A day means all of it; `11d` (or `11 days ago`) is that long before *now*.

    Raises:
        InputError: It is none of these.
    """
    now = now or datetime.now(timezone.utc)
    word = text.strip().lower()
    if word == "now":
        return Moment(now, now)
    if word in ("today", "yesterday"):
        return _day(now - timedelta(days=word == "yesterday"))
    if _SPAN.fullmatch(word):
        point = _within_reach(now, -parse_span(word))
        return Moment(point, point)
    try:
        point = datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text.strip()))
    except ValueError:
        raise InputError(
            f"{text!r} is no time: write 2026-11-19, '2026-11-19 14:30', 11d or yesterday (UTC)."
        ) from None
    point = point.replace(tzinfo=timezone.utc) if point.tzinfo is None else point
    try:
        point = point.astimezone(timezone.utc)
    except OverflowError:
        raise InputError(f"{text!r} is too far away.") from None
    if not _EARLIEST <= point < _LATEST:
        raise InputError(f"{text!r} lies outside 1970 to 2261.")
    return _day(point) if re.fullmatch(r"\d{4}-?\d\d-?\d\d", text.strip()) else Moment(point, point)


def parse_span(text: str) -> timedelta:
    """Read a length of time: `1d`, `36h`, `90 minutes`, `2w`.

    Raises:
        InputError: It is no length of time.
    """
    found = _SPAN.fullmatch(text.strip().lower())
    if found is None or found[2] not in _UNITS_S:
        raise InputError(f"{text!r} is no length of time: write 90m, 36h, 1d or 2w.")
    try:
        return timedelta(seconds=float(found[1]) * _UNITS_S[found[2]])
    except OverflowError:
        raise InputError(f"{text!r} is too long.") from None


def sql_time(moment: datetime) -> str:
    """*moment* as a parameter of type DateTime64(6, 'UTC')."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")


def widened(moment: Moment, by: timedelta) -> Moment:
    """*moment* with *by* more on both sides, as far as the store's times reach."""
    return Moment(_within_reach(moment.start, -by), _within_reach(moment.end, by))


def _within_reach(point: datetime, by: timedelta) -> datetime:
    try:
        return min(max(point + by, _EARLIEST), _LATEST)
    except OverflowError:
        return _EARLIEST if by < timedelta(0) else _LATEST


def _day(point: datetime) -> Moment:
    start = datetime.combine(point.date(), time(), timezone.utc)
    return Moment(start, min(start + timedelta(days=1), _LATEST))
