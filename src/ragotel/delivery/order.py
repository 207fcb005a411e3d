"""Order: within one message, spans that share words stand where gzip looks for them.

Pipeline: worker -> courier -> [order] -> transport -> receiver

gzip sees 32 KB back, which is less than two requests. So the lists of all requests come first, next
to each other: ids and hashes recur from request to request. The prompts follow, each near the one
that it shares most passages with. The receiver does not care: a span names its own parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ragotel import attributes as at
from ragotel.model import SpanData
from ragotel.pacing import Pace

_MOST_PASSAGES = 64
_MOST_DISTINCT = 0.9
_MOST_PROMPTS = 200
"""Prompts that are compared with each other; the effort grows with the square."""


class Piece(NamedTuple):
    """One encoded span, and what tells its place in a message."""

    raw: bytes
    trace_id: int
    is_list: bool
    """It holds a list and no longer text."""
    passages: Sequence[str] = ()
    """Ids of the passages in its prompt."""


def piece_of(span: SpanData, raw: bytes) -> Piece:
    """Note what *span* holds beside its bytes."""
    made = span.attributes
    if at.PROMPT_TEXT in made:
        parts = str(made.get(at.CANDIDATES, "")).split('{"id":"', _MOST_PASSAGES)[1:]
        return Piece(raw, span.trace_id, False, [part.split('"', 1)[0] for part in parts])
    is_list = (at.DOCUMENTS in made or at.CANDIDATES in made) and at.CHUNKS not in made
    return Piece(raw, span.trace_id, is_list)


def arrange(pieces: Sequence[Piece]) -> tuple[list[bytes], list[bytes]]:
    """Give the spans of all lists, then all others: those of a request together, alike ones near.

    Where hardly a passage recurs, all spans are others in the order of arrival: the ids in a
    request's lists are then found again only within that request.
    """
    passed = [key for piece in pieces for key in piece.passages]
    if len(set(passed)) >= _MOST_DISTINCT * len(passed):
        return [], [piece.raw for piece in pieces]
    lists = [piece.raw for piece in pieces if piece.is_list]
    requests: dict[int, list[bytes]] = {}
    passages: dict[int, Sequence[str]] = {}
    for piece in pieces:
        if not piece.is_list:
            requests.setdefault(piece.trace_id, []).append(piece.raw)
            if piece.passages:
                passages[piece.trace_id] = piece.passages
    ordered = _chain(passages)
    others = [raw for trace in requests if trace not in passages for raw in requests[trace]]
    return lists, [raw for trace in ordered for raw in requests[trace]] + others


def _chain(passages: dict[int, Sequence[str]]) -> list[int]:
    """Go from each prompt to the one left that shares most passages with it."""
    places: dict[str, int] = {}
    left = {
        trace: sum({1 << places.setdefault(key, len(places)) for key in keys})
        for trace, keys in list(passages.items())[:_MOST_PROMPTS]
    }
    chain: list[int] = []
    pace, last = Pace(), 0
    while left:
        pace.step()
        shared = [(last & bits).bit_count() for bits in left.values()]
        trace = list(left)[shared.index(max(shared))]
        last = left.pop(trace)
        chain.append(trace)
    return chain + list(passages)[_MOST_PROMPTS:]
