"""Encodings: bodies as they travel, unpacked bit by bit under a limit, and answers packed.

Pipeline: HTTP body | file -> [encodings] -> OTLP decoder | ClickHouse HTTP interface
"""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from ragotel.errors import InputError

PIECE_BYTES = 1 << 20
"""How much is unpacked at a time, so that a bomb is noticed before it has gone off."""

UNPACKED = ("gzip", "deflate", "zstd", "lz4")
PACKED = ("zstd", "lz4", "gzip", "deflate")
"""Content encodings understood, and those offered, the best first."""

_BLOCK_HEADER = struct.Struct("<BII")


class TooLargeError(InputError):
    """A body is longer than its limit."""


class Packer(Protocol):
    """Packs an answer piece by piece."""

    def pack(self, chunk: bytes) -> bytes: ...

    def finish(self) -> bytes: ...


def unpack(
    chunks: Iterable[bytes], encoding: str, *, limit_bytes: int | None = None
) -> Iterator[bytes]:
    """The pieces of a body sent with Content-Encoding *encoding* ('' for none).

    Raises:
        InputError: The encoding is unknown, or the body is broken or cut short.
        TooLargeError: More than *limit_bytes* come out; nothing beyond them is unpacked.
    """
    pieces = chunks if encoding in ("", "identity") else _unpacked(chunks, encoding)
    total = 0
    for piece in pieces:
        total += len(piece)
        if limit_bytes is not None and total > limit_bytes:
            raise TooLargeError(f"the body is larger than {limit_bytes} bytes once unpacked")
        yield piece


def _unpacked(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    if encoding not in UNPACKED:
        raise InputError(f"Content-Encoding {encoding!r} is not one of {', '.join(UNPACKED)}")
    try:
        if encoding in ("gzip", "deflate"):
            yield from _zlib_pieces(chunks, wbits=47 if encoding == "gzip" else 0)
        else:
            yield from _frame_pieces(chunks, encoding)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"the body is not {encoding}: {error}") from error


def _zlib_pieces(chunks: Iterable[bytes], wbits: int) -> Iterator[bytes]:
    """gzip (several members too) and deflate, with or without zlib's frame."""
    inflater, begun = None, False
    for chunk in chunks:
        rest = chunk
        while rest:
            if inflater is None:
                # Some clients send raw deflate; the first byte of zlib's frame tells.
                inflater = zlib.decompressobj(wbits or (15 if rest[0] & 15 == 8 else -15))
                begun = True
            yield inflater.decompress(rest, PIECE_BYTES)
            rest = inflater.unconsumed_tail
            if inflater.eof:
                rest, inflater = inflater.unused_data.lstrip(b"\0"), None
    if inflater is not None:
        yield inflater.flush()
    if not begun or (inflater is not None and not inflater.eof):
        raise InputError("the packed body is cut short")


def _frame_pieces(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """zstd and lz4 frames, several in a row too."""
    decompressor: Any = None
    begun = False
    for chunk in chunks:
        rest: bytes = chunk
        while rest:
            if decompressor is None:
                decompressor = _decompressor(encoding)
                begun = True
            yield decompressor.decompress(rest, max_length=PIECE_BYTES)
            while not decompressor.eof and not decompressor.needs_input:
                yield decompressor.decompress(b"", max_length=PIECE_BYTES)
            rest = b""
            if decompressor.eof:
                rest, decompressor = decompressor.unused_data or b"", None
    if not begun or decompressor is not None:
        raise InputError("the packed body is cut short")


def unpack_blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces of a body in ClickHouse's own compressed blocks (`decompress=1`).

    The checksum in front of each block is not verified: the transport has one.
    """
    import lz4.block

    pending = b""
    for chunk in chunks:
        pending += chunk
        while len(pending) >= 25:
            method, packed_size, size = _BLOCK_HEADER.unpack_from(pending, 16)
            if packed_size < 9 or size > 1 << 30 or packed_size > 1 << 30:
                raise InputError("a compressed block has an impossible size")
            if len(pending) < 16 + packed_size:
                break
            data, pending = pending[25 : 16 + packed_size], pending[16 + packed_size :]
            try:
                if method == 0x82:
                    yield lz4.block.decompress(data, uncompressed_size=size)
                elif method == 0x90:
                    yield from _frame_pieces([data], "zstd")
                elif method == 0x02:
                    yield data
                else:
                    raise InputError(f"a compressed block has the unknown method {method:#x}")
            except InputError:
                raise
            except Exception as error:
                raise InputError(f"a compressed block is broken: {error}") from error
    if pending:
        raise InputError("the compressed body is cut short")


def packer_for(accepted: str) -> tuple[str, Packer] | None:
    """The best encoding that an Accept-Encoding header allows, with its packer."""
    names = [part.partition(";") for part in accepted.split(",")]
    allowed = {name.strip() for name, _, weight in names if weight.strip() not in ("q=0", "q=0.0")}
    for encoding in PACKED:
        if encoding in allowed:
            return encoding, _PACKERS[encoding]()
    return None


class _Zlib:
    def __init__(self, wbits: int) -> None:
        self._deflater = zlib.compressobj(3, zlib.DEFLATED, wbits)

    def pack(self, chunk: bytes) -> bytes:
        return self._deflater.compress(chunk)

    def finish(self) -> bytes:
        return self._deflater.flush()


class _Zstd:
    def __init__(self) -> None:
        self._compressor = _zstd().ZstdCompressor(level=1)

    def pack(self, chunk: bytes) -> bytes:
        return bytes(self._compressor.compress(chunk))

    def finish(self) -> bytes:
        return bytes(self._compressor.flush())


class _Lz4:
    def __init__(self) -> None:
        import lz4.frame

        self._compressor = lz4.frame.LZ4FrameCompressor()
        self._begun = False

    def pack(self, chunk: bytes) -> bytes:
        head = b"" if self._begun else self._compressor.begin()
        self._begun = True
        return head + bytes(self._compressor.compress(chunk))

    def finish(self) -> bytes:
        head = b"" if self._begun else self._compressor.begin()
        return head + bytes(self._compressor.flush())


class BlockPacker:
    """Packs an answer into ClickHouse's own compressed blocks (`compress=1`), LZ4 inside."""

    def pack(self, chunk: bytes) -> bytes:
        pieces = range(0, len(chunk), PIECE_BYTES)
        return b"".join(self._block(chunk[at : at + PIECE_BYTES]) for at in pieces)

    def finish(self) -> bytes:
        return b""

    def _block(self, data: bytes) -> bytes:
        import lz4.block
        from clickhouse_cityhash.cityhash import CityHash128

        packed: bytes = lz4.block.compress(data, store_size=False)
        sized = _BLOCK_HEADER.pack(0x82, len(packed) + _BLOCK_HEADER.size, len(data)) + packed
        checksum: int = CityHash128(sized)
        return struct.pack("<QQ", checksum >> 64, checksum & (2**64 - 1)) + sized


_PACKERS: dict[str, Any] = {
    "gzip": lambda: _Zlib(31),
    "deflate": lambda: _Zlib(15),
    "zstd": _Zstd,
    "lz4": _Lz4,
}


def _decompressor(encoding: str) -> Any:
    if encoding == "zstd":
        return _zstd().ZstdDecompressor()
    import lz4.frame

    return lz4.frame.LZ4FrameDecompressor()


def _zstd() -> Any:
    """The standard library's module, or its backport, which clickhouse-connect brings."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd
