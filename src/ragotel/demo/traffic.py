"""Beside the demo's pipeline: who asked what, and when, on each of the fourteen days."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone

from ragotel.demo.history import COMPLAINT_DAY, DAYS
from ragotel.demo.labels import Label

USERS = ("ana", "chen", "dara", "eli", "fatou", "goran", "maria", "noor")

COMPLAINANT = "maria"
COMPLAINT_QUESTION = "My __exit__ method returned true, is the exception then swallowed?"
"""str. Asked in the user's own words: no label has it."""

COMPLAINT_LABEL = "with-suppress"
"""str. The label that asks the same in other words."""

CHAT = (
    "Thanks, that helped!",
    "Is there a newer version of this page?",
    "Can you show me an example of a decorator?",
    "What is the difference between a list and a tuple?",
    "Why is my loop so slow?",
    "How do I name a variable?",
    "What changed in the last release?",
)
"""Questions that nobody has labelled."""

_LABELLED_PER_DAY = 64
_ASKED_AGAIN = 8
_UNLABELLED_PER_DAY = 4


@dataclass(frozen=True)
class Ask:
    """One question of one user, at a time in the past."""

    at: datetime
    user: str
    question: str
    label: Label | None = None


def first_day(today: date) -> date:
    """Return the day whose number is 1; day 14 is yesterday."""
    return today - timedelta(days=DAYS)


def day_of(start: date, number: int) -> date:
    """Return the date of day *number* (1 to 14)."""
    return start + timedelta(days=number - 1)


def complaint_day(start: date) -> date:
    """Return the date of the answer that is complained about: eleven days before today."""
    return day_of(start, COMPLAINT_DAY)


def day_traffic(start: date, day: int, labels: Sequence[Label]) -> list[Ask]:
    """Return what was asked on *day* (1 to 14), in order of time; equal for equal arguments."""
    chance = random.Random(f"ragotel demo, day {day}")  # noqa: S311 - a story, not a secret
    asked = chance.sample(list(labels), min(_LABELLED_PER_DAY, len(labels)))
    asked += chance.sample(asked, min(_ASKED_AGAIN, len(asked)))
    questions: list[tuple[str, Label | None]] = [(label["question"], label) for label in asked]
    questions += [(text, None) for text in chance.sample(CHAT, _UNLABELLED_PER_DAY)]
    midnight = datetime.combine(day_of(start, day), time(), timezone.utc)
    asks = [
        Ask(_moment(midnight, chance), chance.choice(USERS), question, label)
        for question, label in questions
    ]
    if day == COMPLAINT_DAY:
        asks.append(
            Ask(midnight + timedelta(hours=15, minutes=42), COMPLAINANT, COMPLAINT_QUESTION)
        )
    return sorted(asks, key=lambda ask: (ask.at, ask.question))


def _moment(midnight: datetime, chance: random.Random) -> datetime:
    return midnight + timedelta(milliseconds=chance.randrange(8 * 3600_000, 19 * 3600_000))
