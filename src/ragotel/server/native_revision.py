"""Native revision: blocks of the Native format as newer clients read and write them.

Pipeline: client -> [native revision] -> ClickHouse interface -> engine, and back
A client that names its `client_protocol_version` (those written in Go do) expects what a server
adds for it: facts about each block, and for each column whether it is serialised in a way of its
own. The embedded engine speaks the plain form only. Where a column ends is known to
clickhouse-connect, which reads every type.
Source: ClickHouse, "Native Format"; BlockInfo and NativeWriter.
"""

from __future__ import annotations

from types import SimpleNamespace

from clickhouse_connect.datatypes.registry import get_from_name
from clickhouse_connect.driver.buffer import ResponseBuffer
from clickhouse_connect.driver.query import QueryContext

from ragotel.errors import InputError

HAS_BLOCK_INFO = 1
HAS_SERIALIZATION = 54454
"""The first revisions that have it."""

_BLOCK_INFO = b"\x01\x00\x02\xff\xff\xff\xff\x00"
"""No overflow row, no bucket: what every block of a plain answer says."""


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
    source, parts = _Body(body), list[bytes]()
    context = QueryContext()
    while source.buf_loc < len(body):
        if old >= HAS_BLOCK_INFO:
            _skip_block_info(source)
        parts.append(_BLOCK_INFO if new >= HAS_BLOCK_INFO else b"")
        start = source.buf_loc
        columns, rows = source.read_leb128(), source.read_leb128()
        parts.append(body[start : source.buf_loc])
        for _ in range(columns):
            start = source.buf_loc
            source.read_leb128_str()
            kind = source.read_leb128_str()
            parts.append(body[start : source.buf_loc])
            if old >= HAS_SERIALIZATION and source.read_byte():
                raise InputError(f"a column of type {kind} is serialised in a way of its own")
            parts.append(b"\0" if new >= HAS_SERIALIZATION else b"")
            start = source.buf_loc
            if rows:
                get_from_name(kind).read_column(source, rows, context)
            parts.append(body[start : source.buf_loc])
    return parts


def _skip_block_info(source: _Body) -> None:
    """Read fields until the one that is numbered 0."""
    while number := source.read_leb128():
        if number == 1:
            source.read_byte()
        elif number == 2:
            source.read_bytes(4)
        elif number == 3:
            source.read_bytes(4 * source.read_leb128())
        else:
            raise InputError(f"a block has the unknown fact {number}")


class _Body(ResponseBuffer):
    """A whole body; `buf_loc` is how far it was read."""

    def __init__(self, body: bytes) -> None:
        super().__init__(SimpleNamespace(gen=iter(()), close=lambda: None))  # type: ignore[no-untyped-call]
        self.buffer, self.buf_sz = body, len(body)
