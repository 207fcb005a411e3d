"""Partial success: reads how many spans a receiver threw away, from the bytes of its answer.

Pipeline: receiver -> [partial] -> transport -> ledger
"""

from __future__ import annotations

from typing import Any


def read_partial_success(body: bytes) -> tuple[int, str]:
    """Give rejected spans and the receiver's words from an ExportTraceServiceResponse.

    Anything else that a receiver answers (JSON, an empty body) counts as a whole success.
    """
    try:
        for number, value in read_fields(body):
            if number == 1 and isinstance(value, bytes):
                rejected, words = 0, ""
                for inner, what in read_fields(value):
                    if inner == 1 and isinstance(what, int):
                        rejected = signed(what)
                    elif inner == 2 and isinstance(what, bytes):
                        words = what.decode("utf-8", "replace")
                return rejected, words
    except (IndexError, ValueError):
        pass
    return 0, ""


def read_fields(body: bytes) -> list[tuple[int, Any]]:
    """Split a message of varints (given as int) and length-delimited fields (as bytes).

    Raises:
        ValueError, IndexError: It is cut, or holds other fields.
    """
    found: list[tuple[int, Any]] = []
    at = 0
    while at < len(body):
        tag, at = _varint(body, at)
        if tag & 7 == 0:
            number, at = _varint(body, at)
            found.append((tag >> 3, number))
        elif tag & 7 == 2:
            size, at = _varint(body, at)
            if at + size > len(body):
                raise ValueError("cut message")
            found.append((tag >> 3, body[at : at + size]))
            at += size
        else:
            raise ValueError("not the expected message")
    return found


def _varint(body: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = body[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
        if shift > 63:
            raise ValueError("varint too long")


def signed(number: int) -> int:
    """Read a varint as int64: negative numbers come as their complement."""
    return number - 2**64 if number >= 2**63 else number
