"""Frames: how one message stands in a spool's segment file, and how a damaged file is read.

Pipeline: courier -> spool -> [frames] -> disk -> replay

A frame is a header of 20 bytes, a JSON object that says what the message holds, and the message:
OTLP protobuf, gzip. One byte of it changes later: `state` is 1 once the receiver has the message.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple

from ragotel.delivery.ledger import Tally

MAGIC = b"RGS1"
_HEADER = Struct("<4sBxHIII")
"""Magic, state, length of the JSON, length of the message, CRC of the message, CRC of the head."""
_STATE_AT = 4
_WAITING, _DONE = 0, 1


@dataclass(frozen=True)
class Meta:
    """What a message holds: its spans, the requests that end with it, the losses that it tells."""

    spans: int = 0
    requests: int = 0
    losses: Mapping[str, Tally] = field(default_factory=dict)

    def as_json(self) -> bytes:
        losses = {cause: (tally.spans, tally.requests) for cause, tally in self.losses.items()}
        return json.dumps([self.spans, self.requests, losses], separators=(",", ":")).encode()

    @classmethod
    def of_json(cls, raw: bytes) -> Meta:
        spans, requests, losses = json.loads(raw)
        return cls(spans, requests, {cause: Tally(*tally) for cause, tally in losses.items()})


class Frame(NamedTuple):
    """Where a message stands in its file; *is_whole* False: its end is missing or damaged."""

    offset: int
    size_bytes: int
    meta: Meta
    is_whole: bool = True


def write_frame(descriptor: int, offset: int, meta: Meta, body: bytes) -> Frame:
    """Append a message at the end of a file, *offset*; after an error the file is as before.

    Raises:
        OSError: The disk is full or fails.
    """
    raw = meta.as_json()
    crc = zlib.crc32(body)
    sizes = (len(raw), len(body), crc)
    header = _HEADER.pack(MAGIC, _WAITING, *sizes, _head_crc(sizes, raw))
    left = memoryview(b"".join((header, raw, body)))
    size_bytes, at = len(left), offset
    try:
        while left:
            written = os.pwrite(descriptor, left, at)
            left, at = left[written:], at + written
    except OSError:
        os.ftruncate(descriptor, offset)
        raise
    return Frame(offset, size_bytes, meta)


def mark_done(descriptor: int, frame: Frame) -> None:
    """Note on the disk that the receiver has the message: one byte, so never half of it."""
    os.pwrite(descriptor, bytes((_DONE,)), frame.offset + _STATE_AT)


def read_body(descriptor: int, frame: Frame) -> bytes | None:
    """Read a message back; None where it is not what was written."""
    raw = os.pread(descriptor, frame.size_bytes, frame.offset)
    if len(raw) < frame.size_bytes:
        return None
    _, _, meta_size, _, crc, _ = _HEADER.unpack_from(raw)
    body = raw[_HEADER.size + meta_size :]
    return body if zlib.crc32(body) == crc else None


def scan(descriptor: int) -> Iterator[Frame]:
    """List the messages of a file that wait; damage costs the frames that it touches alone."""
    size = os.fstat(descriptor).st_size
    if not size:
        return
    with mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) as raw:
        at = 0
        while (at := raw.find(MAGIC, at)) >= 0:
            frame, state = _frame_at(raw, at, size)
            if frame is None:
                at += 1
                continue
            if state == _WAITING:
                yield frame
            # A frame cut short may be followed by whole ones only if its own end is there.
            at += frame.size_bytes if frame.is_whole else _HEADER.size


def _frame_at(raw: mmap.mmap, at: int, size: int) -> tuple[Frame | None, int]:
    if at + _HEADER.size > size:
        return None, 0
    _, state, *sizes, head_crc = _HEADER.unpack_from(raw, at)
    meta_size, body_size, crc = sizes
    body_at = at + _HEADER.size + meta_size
    meta = raw[at + _HEADER.size : body_at]
    if _head_crc((meta_size, body_size, crc), meta) != head_crc:
        return None, 0
    try:
        read = Meta.of_json(meta)
    except (ValueError, TypeError, AttributeError):
        return None, 0
    end = body_at + body_size
    is_whole = end <= size and zlib.crc32(memoryview(raw)[body_at:end]) == crc
    return Frame(at, end - at, read, is_whole), state


def _head_crc(sizes: tuple[int, int, int], meta: bytes) -> int:
    return zlib.crc32(meta, zlib.crc32(Struct("<HII").pack(*sizes)))
