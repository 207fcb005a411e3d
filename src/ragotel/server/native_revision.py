"""Native revision: blocks of the Native format as newer clients read and write them.

Pipeline: client -> [native revision] -> ClickHouse interface -> engine, and back
A client that names its `client_protocol_version` (those written in Go do) expects what a server
adds for it: facts about each block, and for each column whether it is serialised in a way of its
own. The embedded engine speaks the plain form only. To add and take away these, one must know where
each column ends; nothing of it is decoded.
Source: ClickHouse, "Native Format"; BlockInfo and NativeWriter.
"""

from __future__ import annotations

from typing import Any

from clickhouse_connect.datatypes.registry import get_from_name

from ragotel.errors import InputError

HAS_BLOCK_INFO = 1
HAS_SERIALIZATION = 54454
"""The first revisions that have it."""

_BLOCK_INFO = b"\x01\x00\x02\xff\xff\xff\xff\x00"
"""No overflow row, no bucket: what every block of a plain answer says."""
_HAS_OWN_KEYS = 1 << 9


def to_revision(plain: bytes, revision: int) -> bytes:
    """Plain Native blocks as a client of *revision* reads them."""
    return _convert(plain, 0, revision)


def from_revision(body: bytes, revision: int) -> bytes:
    """Native blocks of a client of *revision* in the plain form; plain ones as they are.

    Clients that read the newer form may still write the plain one (those written in Go do over
    HTTP), so it is told by the facts that begin a block.

    Raises:
        InputError: They are cut short, of an unknown type, or serialised in a way of their own.
    """
    return _convert(body, revision, 0) if body.startswith(_BLOCK_INFO[:-1]) else body


def _convert(body: bytes, old: int, new: int) -> bytes:
    try:
        return b"".join(_blocks(body, old, new))
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"a block of the Native format cannot be read: {error}") from error


def _blocks(body: bytes, old: int, new: int) -> list[bytes]:
    reader, parts = _Reader(body), list[bytes]()
    while reader.at < len(body):
        if old >= HAS_BLOCK_INFO:
            _skip_block_info(reader)
        parts.append(_BLOCK_INFO if new >= HAS_BLOCK_INFO else b"")
        start = reader.at
        columns, rows = reader.varint(), reader.varint()
        parts.append(body[start : reader.at])
        for _ in range(columns):
            start = reader.at
            reader.skip(reader.varint())
            kind = reader.take(reader.varint()).decode()
            parts.append(body[start : reader.at])
            if old >= HAS_SERIALIZATION and reader.take(1) != b"\0":
                raise InputError(f"a column of type {kind} is serialised in a way of its own")
            parts.append(b"\0" if new >= HAS_SERIALIZATION else b"")
            start = reader.at
            if rows:
                known: Any = get_from_name(kind)
                if known.base_type == "SimpleAggregateFunction":
                    known = known.element_type
                _skip_prefix(reader, known)
                _skip_rows(reader, known, rows)
            parts.append(body[start : reader.at])
    return parts


def _skip_block_info(reader: _Reader) -> None:
    """Read fields until the one that is numbered 0."""
    while number := reader.varint():
        if number not in (1, 2, 3):
            raise InputError(f"a block has the unknown fact {number}")
        reader.skip({1: 1, 2: 4}.get(number) or 4 * reader.varint())


def _inner(kind: Any) -> list[Any]:
    """The types inside of a container, in the order in which they are written."""
    if kind.base_type == "Array":
        return [kind.element_type]
    if kind.base_type == "Map":
        return [kind.key_type, kind.value_type]
    return list(kind.element_types) if kind.base_type == "Tuple" else []


def _skip_prefix(reader: _Reader, kind: Any) -> None:
    """The version that stands before a column's rows for each LowCardinality inside of it."""
    if kind.low_card:
        reader.skip(8)
    for inner in _inner(kind):
        _skip_prefix(reader, inner)


def _skip_rows(reader: _Reader, kind: Any, rows: int) -> None:
    """*rows* values of *kind*, a type of clickhouse-connect."""
    if not rows:
        return
    if kind.low_card:
        _skip_low_cardinality(reader, kind)
        return
    if kind.nullable:
        reader.skip(rows)
    if kind.base_type in ("Array", "Map"):
        reader.skip(8 * (rows - 1))
        rows = reader.number(8)
    if inner := _inner(kind):
        for one in inner:
            _skip_rows(reader, one, rows)
    else:
        _skip_values(reader, kind, rows)


def _skip_low_cardinality(reader: _Reader, kind: Any) -> None:
    """Keys (without their null map), then one index for each row."""
    flags = reader.number(8)
    if flags & _HAS_OWN_KEYS:
        _skip_values(reader, kind, reader.number(8))
    reader.skip(reader.number(8) << (flags & 3))


def _skip_values(reader: _Reader, kind: Any, rows: int) -> None:
    if kind.base_type == "String":
        for _ in range(rows):
            reader.skip(reader.varint())
    elif kind.byte_size:
        reader.skip(kind.byte_size * rows)
    else:
        raise InputError(f"the type {kind.name} is not read here")


class _Reader:
    """A body, and how far it was read."""

    def __init__(self, body: bytes) -> None:
        self.body, self.at = body, 0

    def skip(self, size: int) -> None:
        self.at += size
        if self.at > len(self.body):
            raise InputError("a block of the Native format is cut short")

    def take(self, size: int) -> bytes:
        self.skip(size)
        return self.body[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
