"""Order: where each span of a message stands, so that gzip finds what they share."""

from __future__ import annotations

import json
import zlib
from typing import Any

from ragotel import attributes as at
from ragotel.delivery.order import Piece, arrange, piece_of
from ragotel.delivery.transport import gzip
from ragotel.model import SpanData

ONE, TWO, THREE, FOUR = 1, 2, 3, 4


def a_span(**attributes: Any) -> SpanData:
    return SpanData(ONE, 7, 0, "rag", 1, 10, 20, attributes)


def sent(*ids: str) -> str:
    return json.dumps([{"id": key, "score": 0.5} for key in ids], separators=(",", ":"))


def prompt(trace_id: int, *ids: str) -> Piece:
    return Piece(b"prompt %d" % trace_id, trace_id, False, list(ids))


def test_a_prompt_is_known_by_its_passages() -> None:
    """The ids of what was sent tell which prompts are alike."""
    made = {at.PROMPT_TEXT: "hello", at.CANDIDATES: sent("a", "b-2")}
    assert piece_of(a_span(**made), b"raw") == Piece(b"raw", ONE, False, ["a", "b-2"])


def test_only_lists_without_texts_are_lists() -> None:
    """A list that brings its texts stays with its request, whose prompt has the same texts."""
    listed = {at.DOCUMENTS: sent("a")}
    assert piece_of(a_span(**listed), b"r") == Piece(b"r", ONE, True)
    assert piece_of(a_span(**listed, **{at.CHUNKS: "{}"}), b"r") == Piece(b"r", ONE, False)
    assert piece_of(a_span(**{at.QUERY: "why"}), b"r") == Piece(b"r", ONE, False)


def test_lists_come_first_and_alike_prompts_follow_each_other() -> None:
    """From each prompt to the one that shares most passages; a request stays together."""
    pieces = [
        Piece(b"list 1", ONE, True),
        prompt(ONE, "a", "b", "c"),
        Piece(b"root 1", ONE, False),
        prompt(TWO, "x", "y", "z"),
        Piece(b"list 2", TWO, True),
        prompt(THREE, "b", "c", "x"),
        Piece(b"alone", FOUR, False),
    ]
    assert arrange(pieces) == (
        [b"list 1", b"list 2"],
        [b"prompt 1", b"root 1", b"prompt 3", b"prompt 2", b"alone"],
    )


def test_where_no_passage_recurs_the_order_is_that_of_arrival() -> None:
    """Nothing is gained between requests, so that each request stays in one piece."""
    pieces = [Piece(b"list 1", ONE, True), prompt(ONE, "a"), Piece(b"list 2", TWO, True)]
    assert arrange(pieces) == ([], [b"list 1", b"prompt 1", b"list 2"])
    assert arrange([]) == ([], [])


def test_a_message_is_one_gzip_stream_wherever_it_is_cut() -> None:
    """Codes of their own for the two parts are no second stream: every reader takes them."""
    body = b"0123456789abcdef" * 400 + b"the quick brown fox jumps over the lazy dog " * 300
    for tail_bytes in (0, 1, 13_200, len(body)):
        reader = zlib.decompressobj(31)
        assert reader.decompress(gzip(body, tail_bytes)) == body
        assert (reader.eof, reader.unused_data) == (True, b"")
    assert zlib.decompress(gzip(b""), 31) == b""
