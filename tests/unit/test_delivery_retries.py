"""How long the delivery waits before the next try, whatever a receiver or a clock says."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from ragotel.delivery.over_http import retry_after_s
from ragotel.delivery.transport import backoff_s


@pytest.mark.parametrize(
    ("told_s", "least_s", "most_s"),
    [(0.0, 0.1, 0.25), (-86_400.0, 0.1, 0.25), (5.0, 5.0, 5.0), (86_400.0, 120.0, 120.0)],
)
def test_what_a_receiver_says_is_kept_within_reason(
    told_s: float, least_s: float, most_s: float
) -> None:
    """A zero does not make a tight loop, and a day does not leave a mended receiver alone."""
    assert least_s <= backoff_s(1, told_s) <= most_s


def test_pauses_grow_by_themselves() -> None:
    """From a quarter of a second to ten."""
    pauses = [backoff_s(attempt) for attempt in range(1, 12)]
    assert 0.125 <= pauses[0] <= 0.25
    assert 5.0 <= pauses[-1] <= 10.0


@pytest.mark.parametrize("skew_s", [0, 86_400, -86_400])
def test_a_date_is_read_by_the_receiver_s_own_clock(skew_s: int) -> None:
    """A clock that is a day wrong, here or there, changes no pause."""
    there = time.time() + skew_s
    told = retry_after_s(formatdate(there + 30, usegmt=True), formatdate(there, usegmt=True))
    assert told == 30


@pytest.mark.parametrize("text", [None, "", "soon", "nan", "inf"])
def test_what_cannot_be_read_is_not_there(text: str | None) -> None:
    """Then the delivery's own pauses hold."""
    assert retry_after_s(text, None) is None
