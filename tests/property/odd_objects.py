"""Odd objects: bytes become values of every kind that a stage of a service might return.

Used by test_inputs.py and by the fuzzers in fuzz/, which choose the bytes by what code they reach.
"""

from __future__ import annotations

import math
import uuid
from collections import OrderedDict, UserDict, deque, namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pandas as pd

MOST_TOUCHED = 20_000
"""Elements that may be asked of one sequence: the reader's limit for each of some looks."""
DEEPEST = 5
WORDS = (
    *("id", "score", "text", "metadata", "document", "node", "documents", "ids", "scores"),
    *("distances", "metadatas", "hits", "points", "payload", "content", "chunk_id", "doc_id"),
    *("tokens", "superseded", "leg", "index", "data", "choices", "message", "usage", "answer"),
    *("distance", "_source", "page_content", "matches", "results", "value", "items", ""),
)
TEXTS = (
    *(
        "",
        "a",
        "passage of some words",
        "cut \ud83d",
        "nul\0",
        "\uffff",
        '"quoted" \\',
        "x" * 70_000,
    ),
    *("0", "nan", "[1]", '{"id": 1}', " \u2028 ", "sha256:0123456789abcdef", "é" * 300, "1e400"),
)
NUMBERS = (
    *(0, 1, -1, 7, 2**31, 2**63, -(2**70), 10**400, 0.5, -0.0, 1e308, 5e-324, math.nan, math.inf),
    *(-math.inf, True, False, Decimal("0.5"), Decimal("NaN"), 1j, np.float32(0.1), np.int64(3)),
)


class Draw:
    """Reads choices from bytes; when they are used up every choice is the first."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self.touched: list[Lazy] = []

    def below(self, limit: int) -> int:
        if self._at >= len(self._data):
            return 0
        self._at += 1
        return self._data[self._at - 1] % limit

    def one_of(self, options: Sequence[Any]) -> Any:
        return options[self.below(len(options))]

    def text(self) -> str:
        if self.below(2):
            return str(self.one_of(TEXTS))
        size = self.below(24)
        raw = self._data[self._at : self._at + size]
        self._at += size
        return raw.decode("utf-8", "surrogateescape")


class Lazy(Sequence[Any]):
    """A sequence that makes its elements when asked, and counts how many it made."""

    def __init__(self, element: Any, length: int) -> None:
        self.element = element
        self.length = length
        self.count = 0

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[place] for place in range(*at.indices(self.length))]
        self.count += 1
        if at >= self.length or self.count > 10 * MOST_TOUCHED:
            raise IndexError(at)
        return self.element


class Faulty:
    """Raises whatever it is asked."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __len__(self) -> int:
        raise RuntimeError("len")

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("iter")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        raise RuntimeError("hash")

    def __bool__(self) -> bool:
        raise RuntimeError("bool")

    def __str__(self) -> str:
        raise RuntimeError("str")

    def __repr__(self) -> str:
        return "Faulty"

    def __float__(self) -> float:
        raise RuntimeError("float")


class Circular:
    """Has itself under every name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self


class FaultyDict(dict[Any, Any]):
    """A mapping that cannot be read."""

    def get(self, key: Any, default: Any = None) -> Any:
        raise KeyError(key)

    def __getitem__(self, key: Any) -> Any:
        raise KeyError(key)


class FaultyIndex(list[Any]):
    """A list that says it is longer than it is."""

    def __len__(self) -> int:
        return super().__len__() + 3


class Text(str):
    """A text with a will of its own."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    __hash__ = str.__hash__


@dataclass
class Hit:
    id: Any
    score: Any
    text: Any
    metadata: Any = None


Row = namedtuple("Row", "id score text")


def build(draw: Draw, depth: int = 0) -> Any:
    """Make one value; the deeper, the plainer."""
    makers = LEAVES if depth >= DEEPEST else MAKERS
    return draw.one_of(makers)(draw, depth + 1)


def _many(draw: Draw, depth: int) -> list[Any]:
    """Some values, often of one kind, as lists of candidates are."""
    count = draw.below(6)
    if draw.below(3):
        maker = draw.one_of(LEAVES if depth >= DEEPEST else MAKERS)
        return [maker(draw, depth + 1) for _ in range(count)]
    return [build(draw, depth) for _ in range(count)]


def _dict(draw: Draw, depth: int) -> dict[Any, Any]:
    return {draw.one_of(WORDS): build(draw, depth) for _ in range(draw.below(6))}


def _odd_keys(draw: Draw, depth: int) -> dict[Any, Any]:
    keys = (1, None, ("id", 1), 0.5, b"id", True, "id")
    return {draw.one_of(keys): build(draw, depth) for _ in range(draw.below(4))}


def _object(draw: Draw, depth: int) -> Any:
    return SimpleNamespace(**{k: v for k, v in _dict(draw, depth).items() if k})


def _lazy(draw: Draw, depth: int) -> Any:
    made = Lazy(build(draw, depth), draw.one_of((0, 1, 3, 10_000, 10**12)))
    draw.touched.append(made)
    return made


def _array(draw: Draw, depth: int) -> Any:
    shape = draw.one_of(((0,), (3,), (), (2, 2), (1, 3), (2, 0), (1, 1, 2), (3, 5)))
    kind = draw.one_of(
        ("f8", "i8", "O", "U4", "?", "M8[s]", "c16", [("id", "U3"), ("score", "f4")])
    )
    return np.zeros(shape, dtype=kind)


def _frame(draw: Draw, depth: int) -> Any:
    count = draw.below(4)
    names = [draw.one_of(WORDS) for _ in range(draw.below(4))]
    column: Callable[[], list[Any]] = lambda: [build(draw, DEEPEST) for _ in range(count)]  # noqa: E731
    return (
        pd.concat([pd.Series(column(), name=name, dtype=object) for name in names], axis=1)
        if names
        else pd.DataFrame()
    )


def _own(draw: Draw, depth: int) -> list[Any]:
    made: list[Any] = _many(draw, depth)
    made.append(made)
    return made


LEAVES: tuple[Callable[[Draw, int], Any], ...] = (
    lambda draw, depth: None,
    lambda draw, depth: draw.one_of(NUMBERS),
    lambda draw, depth: draw.text(),
    lambda draw, depth: draw.text().encode("utf-8", "replace"),
    lambda draw, depth: uuid.UUID(int=draw.below(256)),
)
MAKERS: tuple[Callable[[Draw, int], Any], ...] = (
    *LEAVES,
    _many,
    lambda draw, depth: tuple(_many(draw, depth)),
    _dict,
    _dict,
    _odd_keys,
    lambda draw, depth: Hit(
        build(draw, depth), build(draw, depth), build(draw, depth), build(draw, depth)
    ),
    lambda draw, depth: Row(build(draw, depth), build(draw, depth), build(draw, depth)),
    _object,
    _lazy,
    _array,
    _frame,
    _own,
    lambda draw, depth: Faulty(),
    lambda draw, depth: Circular(),
    lambda draw, depth: MagicMock(body_iterator=None),
    lambda draw, depth: FaultyDict(_dict(draw, depth)),
    lambda draw, depth: FaultyIndex(_many(draw, depth)),
    lambda draw, depth: Text(draw.text()),
    lambda draw, depth: UserDict(_dict(draw, depth)),
    lambda draw, depth: OrderedDict(_dict(draw, depth)),
    lambda draw, depth: deque(_many(draw, depth)),
    lambda draw, depth: range(draw.one_of((0, 3, 10**12))),
    lambda draw, depth: iter(_many(draw, depth)),
    lambda draw, depth: (value for value in _many(draw, depth)),
    lambda draw, depth: {draw.below(9) for _ in range(draw.below(4))},
    lambda draw, depth: memoryview(b"abc"),
    lambda draw, depth: datetime(2026, 1, 1),
    lambda draw, depth: draw.one_of((Hit, len, object(), NotImplemented, ..., Mapping)),
    lambda draw, depth: _many(draw, depth) * draw.one_of((1, 2, 1_500)),
)
