"""Native blocks as clients that name their protocol version read and write them."""

from __future__ import annotations

import pytest

from ragotel.errors import InputError
from ragotel.server.native_revision import from_revision, to_revision
from ragotel.store import Store

REVISION = 54460
QUERIES = (
    "select 1 as one",
    "select 'text' as a, toNullable('x') as b, null as c, [1, 2] as d, ('t', 2) as e",
    "select map('k', 'v', 'l', 'w') as m, toLowCardinality('low') as low",
    "select [map(toLowCardinality('a'), 'b')] as events from numbers(3)",
    "select number, toString(number), now64(9, 'UTC') as at from numbers(200000)",
    "select toDecimal64(1.5, 3) as d, toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0') as u",
    "select true as t, toIPv6('::1') as ip, toFixedString('ab', 4) as f, toDate('2026-11-30')",
    "select cast('a', 'Enum8(\\'a\\' = 1)') as e, [toNullable(1), null] as n",
    "select [[[]]]::Array(Array(Array(String))) as deep, toLowCardinality(toNullable('n')) as low",
    "select ('a', toLowCardinality('b'))::Tuple(x String, y LowCardinality(String)) as named",
    "select * from system.settings limit 300",
    "select cast('x', 'SimpleAggregateFunction(any, String)') as one, 2 as two",
    "select 1 where 0",
)


def native(store: Store, query: str) -> bytes:
    return bytes(store.client.raw_query(query, fmt="Native"))


@pytest.mark.parametrize("query", QUERIES)
def test_there_and_back_is_the_same(engine: Store, query: str) -> None:
    """Every type's columns are cut where they end: what is added can be taken away again."""
    plain = native(engine, query)
    revised = to_revision(plain, REVISION)
    assert from_revision(revised, REVISION) == plain
    assert len(revised) > len(plain) or not plain


def test_what_is_added(engine: Store) -> None:
    """Facts in front of the block, and one byte after each column's type."""
    plain = native(engine, "select toUInt8(7) as n, 'x' as s")
    expected = b"\x01\x00\x02\xff\xff\xff\xff\x00" + b"\x02\x01" + b"\x01n\x05UInt8\x00\x07"
    assert to_revision(plain, REVISION) == expected + b"\x01s\x06String\x00\x01x"


def test_an_old_revision_has_the_facts_alone(engine: Store) -> None:
    """Columns say how they are serialised since revision 54454."""
    plain = native(engine, "select toUInt8(7) as n")
    assert to_revision(plain, 54400) == b"\x01\x00\x02\xff\xff\xff\xff\x00" + plain


def test_plain_blocks_stay_as_they_are(engine: Store) -> None:
    """A client that reads the newer form may write the plain one."""
    plain = native(engine, "select number, 'x' as s from numbers(10)")
    assert from_revision(plain, REVISION) == plain


def test_what_cannot_be_read_is_told(engine: Store) -> None:
    """A block that is cut short, and a column in a form of its own, are errors of the input."""
    revised = to_revision(native(engine, "select 'abc' as s from numbers(9)"), REVISION)
    with pytest.raises(InputError, match="cut short"):
        from_revision(revised[:-2], REVISION)
    sparse = revised.replace(b"String\x00", b"String\x01")
    with pytest.raises(InputError, match="serialised in a way of its own"):
        from_revision(sparse, REVISION)
