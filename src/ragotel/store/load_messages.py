"""Load messages: a file cut into OTLP messages by what it contains, not by its name.

Pipeline: file -> [messages] -> load -> otel_traces
Understood: JSON lines, JSON documents that span lines, arrays of messages, one protobuf message,
protobuf messages behind varint or four-byte lengths; each plain, gzip, zstd or lz4.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from ragotel.errors import InputError
from ragotel.store.encodings import unpack
from ragotel.store.otlp_json import decode_json, decode_parsed, parse_json
from ragotel.store.otlp_protobuf import decode_protobuf
from ragotel.store.otlp_rows import Decoded, OtlpError

_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
# A length before a protobuf message may look like a brace, but no quote or brace follows then.
_JSON_BEGINS = re.compile(rb"(\xef\xbb\xbf)?\s*(\{\s*[\"}]|\[\s*[\[{\]]|\{\s*\Z|\[\s*\Z)")
_NEITHER = "this is neither OTLP JSON nor OTLP protobuf"
_READ_BYTES = 1 << 20
_MAX_MESSAGE_BYTES = 1 << 30


class Message(NamedTuple):
    """One OTLP message: its spans, or why it cannot be read; *place* is 'line 3' or 'message 3'."""

    place: str
    decoded: Decoded
    fault: str = ""


def messages(source: BinaryIO) -> Iterator[Message]:
    """All messages of an open file, read as they are asked for.

    A message that cannot be read has a `fault`; those after it follow where the file still tells
    where they begin.
    """
    reader = _open(source)
    head = reader.peek(4096)[:4096]
    if not head.strip():
        return
    if _JSON_BEGINS.match(head):
        yield from _json_messages(reader)
    elif head[:1] == b"\x00":
        yield from _framed(reader, _big_endian_size)
    elif head[:1] == b"\x0a":
        yield from _single_or_framed(reader)
    else:
        yield from _framed(reader, _varint_size)


def _open(source: BinaryIO) -> io.BufferedReader[Any]:
    plain: io.BufferedReader[Any] = io.BufferedReader(
        _Pieces(iter(lambda: source.read(_READ_BYTES), b"")), _READ_BYTES
    )
    head = plain.peek(4)[:4]
    encoding = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "")
    if not encoding:
        return plain
    packed = iter(lambda: plain.read1(_READ_BYTES), b"")
    return io.BufferedReader(_Pieces(unpack(packed, encoding)), _READ_BYTES)


class _Pieces(io.RawIOBase):
    """A readable file over pieces; one that ends too early gives what it has, then raises."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = piece
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def _json_messages(reader: io.BufferedReader[Any]) -> Iterator[Message]:
    """Lines while they are documents; a first line that is none opens a document of many lines."""
    for number, line in _lines(reader):
        if isinstance(line, InputError):
            yield Message(f"line {number}", Decoded(), str(line))
            return
        if not line.strip():
            continue
        try:
            parsed = parse_json(line)
        except OtlpError as error:
            if number == 1 or line.strip() in (b"[", b"{"):
                yield from _documents(line + reader.read(), number)
                return
            yield Message(f"line {number}", Decoded(), str(error))
            continue
        yield _decoded(f"line {number}", lambda parsed=parsed: decode_parsed(parsed))


def _lines(reader: io.BufferedReader[Any]) -> Iterator[tuple[int, bytes | InputError]]:
    number = 0
    try:
        for number, line in enumerate(reader, 1):
            yield number, line
    except InputError as error:
        yield number + 1, error


def _documents(data: bytes, first_line: int) -> Iterator[Message]:
    """Documents one after the other, each over any number of lines; else line by line."""
    text = data.decode("utf-8-sig", "replace")
    decoder = json.JSONDecoder()
    at, found = 0, []
    try:
        while (at := _skip_blanks(text, at)) < len(text):
            document, end = decoder.raw_decode(text, at)
            found.append((first_line + text.count("\n", 0, at), document))
            at = end
    except (ValueError, RecursionError) as error:
        if not found:
            yield from _lines_after_all(data, first_line, str(error))
            return
        for number, document in found:
            yield _decoded(f"line {number}", lambda document=document: decode_parsed(document))
        line = first_line + text.count("\n", 0, at)
        yield Message(f"line {line}", Decoded(), f"the body is not JSON: {error}")
        return
    for number, document in found:
        yield _decoded(f"line {number}", lambda document=document: decode_parsed(document))


def _lines_after_all(data: bytes, first_line: int, fault: str) -> Iterator[Message]:
    lines = data.splitlines()
    if not any(line.rstrip().endswith(b"}") and line.startswith(b"{") for line in lines[1:]):
        yield Message(f"line {first_line}", Decoded(), f"the body is not JSON: {fault}")
        return
    for number, line in enumerate(lines, first_line):
        if line.strip():
            yield _decoded(f"line {number}", lambda line=line: decode_json(line))


def _skip_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,\x1e":
        at += 1
    return at


def _single_or_framed(reader: io.BufferedReader[Any]) -> Iterator[Message]:
    try:
        data = reader.read()
    except InputError as error:
        yield Message("message 1", Decoded(), str(error))
        return
    try:
        yield Message("message 1", decode_protobuf(data))
    except OtlpError as error:
        found = list(_framed(io.BufferedReader(io.BytesIO(data)), _varint_size))
        if any(not message.fault and message.decoded.rows for message in found):
            yield from found
        else:
            yield Message("message 1", Decoded(), str(error))


def _framed(reader: io.BufferedReader[Any], read_size: Any) -> Iterator[Message]:
    number = 0
    while True:
        number += 1
        try:
            size = read_size(reader)
            if size is None:
                return
            if size > _MAX_MESSAGE_BYTES:
                raise OtlpError(f"a length of {size} bytes")
            data = reader.read(size)
            if len(data) < size:
                raise OtlpError(f"cut short: {len(data)} of {size} bytes")
        except (OtlpError, InputError) as error:
            fault = str(error) if number > 1 else f"{_NEITHER} ({error})"
            yield Message(f"message {number}", Decoded(), fault)
            return
        yield _decoded(f"message {number}", lambda data=data: decode_protobuf(data))


def _varint_size(reader: io.BufferedReader[Any]) -> int | None:
    value = shift = 0
    while raw := reader.read(1):
        value |= (raw[0] & 127) << shift
        if raw[0] < 128:
            return value
        shift += 7
        if shift > 35:
            raise OtlpError("no length")
    if shift:
        raise OtlpError("cut short within a length")
    return None


def _big_endian_size(reader: io.BufferedReader[Any]) -> int | None:
    raw = reader.read(4)
    if not raw:
        return None
    if len(raw) < 4:
        raise OtlpError("cut short within a length")
    return int.from_bytes(raw, "big")


def _decoded(place: str, decode: Any) -> Message:
    try:
        return Message(place, decode())
    except OtlpError as error:
        return Message(place, Decoded(), str(error))
