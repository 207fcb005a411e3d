"""The ClickHouse HTTP interface, as clickhouse-connect, curl and plain HTTP clients see it."""

from __future__ import annotations

import asyncio
import datetime as dt
import gzip
import json
import struct
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import clickhouse_connect
import lz4.block
import pytest
from clickhouse_cityhash.cityhash import CityHash128
from clickhouse_connect.driver.exceptions import DatabaseError, StreamFailureError

from ragotel.store import Store
from served import Served, wait_until

UTC = dt.timezone.utc


@pytest.fixture
def client(shared_server: Served) -> Iterator[Any]:
    parts = urllib.parse.urlsplit(shared_server.url)
    with clickhouse_connect.get_client(
        host=parts.hostname, port=parts.port, database="ragotel"
    ) as client:
        yield client


def ask(
    served: Served, body: bytes = b"", headers: dict[str, str] | None = None, **parameters: str
) -> tuple[int, bytes, dict[str, str]]:
    """POST as curl would; status, body and headers."""
    url = f"{served.url}/?{urllib.parse.urlencode(parameters)}"
    sent = urllib.request.Request(url, data=body, headers=headers or {}, method="POST")
    try:
        with urllib.request.urlopen(sent, timeout=60) as reply:
            return reply.status, reply.read(), {k.lower(): v for k, v in reply.headers.items()}
    except urllib.error.HTTPError as error:
        return error.code, error.read(), {k.lower(): v for k, v in error.headers.items()}


ROWS = [
    (
        *(1, "nul\0 quote' back\\slash tab\t", "low", None, ["a", None, "it's"], [0.5, None]),
        *({"k": "v\n"}, dt.datetime(2026, 1, 2, 3, 4, 5, 123456), True),
    ),
    (2, "é" * 100_000, "", 1.5, [], [], {}, dt.datetime(1970, 1, 1), False),
]
COLUMNS = "id UInt64, s String, lc LowCardinality(String), n Nullable(Float64)"
COLUMNS += ", a Array(Nullable(String)), f Array(Nullable(Float64))"
COLUMNS += ", m Map(LowCardinality(String), String), t DateTime64(9, 'UTC'), b Bool"


@pytest.mark.parametrize("compress", [False, "gzip", "zstd", "lz4"])
def test_rows_of_every_type_come_back(shared_server: Served, compress: bool | str) -> None:
    """Native inserts and reads through clickhouse-connect, plain and packed."""
    parts = urllib.parse.urlsplit(shared_server.url)
    table = f"types_{compress}".lower()
    with clickhouse_connect.get_client(
        host=parts.hostname, port=parts.port, database="ragotel", compress=compress
    ) as client:
        client.command(f"create table {table} ({COLUMNS}) engine = MergeTree order by id")
        aware = [(*row[:7], row[7].replace(tzinfo=UTC), row[8]) for row in ROWS]
        assert client.insert(table, aware).written_rows == 2
        assert list(client.query(f"select * from {table} order by id").result_rows) == ROWS


def test_parameters_are_bound_not_pasted(client: Any) -> None:
    """Quotes, backslashes, tabs and line ends arrive as they were."""
    given = {
        "s": "it's \\ a\ttab\nline é \U0001f600 {x:String} -- ;",
        "l": ["x'y", "z\\n", ""],
        "n": 5,
        "t": dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    }
    query = "select {s:String}, {l:Array(String)}, {n:UInt8}, {t:DateTime64(6, 'UTC')}"
    assert client.query(query, parameters=given).result_rows == [
        (given["s"], given["l"], 5, given["t"].replace(tzinfo=None))
    ]


def test_errors_have_clickhouse_s_code_and_message(shared_server: Served, client: Any) -> None:
    """The driver finds the code; HTTP has the status, header and wording of a server."""
    with pytest.raises(DatabaseError, match="UNKNOWN_TABLE") as raised:
        client.query("select * from nowhere")
    assert raised.value.code == 60
    status, text, headers = ask(shared_server, b"select * from nowhere")
    assert (status, headers["x-clickhouse-exception-code"]) == (404, "60")
    assert text.startswith(b"Code: 60. DB::Exception: ")
    assert text.endswith(b"(official build))\n")


@pytest.mark.parametrize(
    ("query", "parameters", "status", "code"),
    [
        (b"", {}, 400, "62"),
        (b"garbage", {}, 400, "62"),
        (b"select 1; select 2", {}, 400, "62"),
        (b"select nothing", {}, 404, "47"),
        (b"select 1", {"unheard_of": "1"}, 404, "115"),
        (b"select 1", {"database": "nowhere"}, 404, "81"),
        (b"select {x:UInt8}", {"param_x": "word"}, 400, "457"),
        (b"insert into rag_grades format CSV", {"session_id": "s"}, 200, None),
        (b"insert into rag_grades (grade) format CSV\na,b,c\n", {}, 400, "117"),
        (b"select throwIf(1)", {}, 500, "395"),
    ],
)
def test_each_fault_has_its_status(
    shared_server: Served, query: bytes, parameters: dict, status: int, code: str | None
) -> None:
    """As a ClickHouse server maps them."""
    answered, text, headers = ask(shared_server, query, **parameters)
    assert (answered, headers.get("x-clickhouse-exception-code")) == (status, code), text


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ("(a UInt8) engine = MergeTree order by a settings parts_to_throw_insert = 1", "252"),
        ("(a UInt8, constraint small check a < 2) engine = MergeTree order by a", "469"),
    ],
)
def test_rows_that_the_table_does_not_take_are_an_error(
    shared_server: Served, table: str, code: str
) -> None:
    """A client hears of it, and no row is there."""
    shared_server.command(f"create table wary {table}")
    try:
        first = ask(shared_server, b"insert into wary format CSV\n1\n")
        second = ask(shared_server, b"insert into wary format CSV\n2\n")
        assert (first[0], second[0]) == (200, 500)
        assert second[2]["x-clickhouse-exception-code"] == code
        assert shared_server.sql("select count() as n from wary") == [{"n": 1}]
    finally:
        shared_server.command("drop table wary")


def test_an_error_amid_a_stream_is_an_error(client: Any) -> None:
    """A reader that has part of the rows learns that they are a part."""
    query = "select throwIf(number = 700000) from numbers(1000000) settings max_block_size = 10000"
    with (
        pytest.raises(StreamFailureError, match="FUNCTION_THROW_IF"),
        client.query_row_block_stream(query) as stream,
    ):
        list(stream)


def test_long_results_are_streamed(client: Any) -> None:
    """Block by block, whole and in order."""
    with client.query_row_block_stream("select number from numbers(2000000)") as stream:
        total = sum(row[0] for block in stream for row in block)
    assert total == 2_000_000 * 1_999_999 // 2


def test_settings_hold_for_their_query_alone(client: Any) -> None:
    """What SET said stays in its session; what a query brought goes with it."""
    ask_settings = "select getSetting('max_block_size'), getSetting('max_threads')"
    client.command("set max_block_size = 777")
    client.command("create temporary table kept (a Int8)")
    assert client.query(ask_settings, settings={"max_threads": 3}).result_rows == [(777, 3)]
    after = client.query(ask_settings).result_rows[0]
    assert (after[0], after[1] != 3) == (777, True)
    assert client.query("select count() from kept").result_rows == [(0,)]


def test_one_session_does_not_see_the_other(shared_server: Served) -> None:
    """Nor do requests that name none."""
    ask(shared_server, b"set max_block_size = 778", session_id="one")
    query = b"select getSetting('max_block_size')"
    answers = [ask(shared_server, query, session_id=name)[1] for name in ("one", "two", "")]
    assert answers[0] == b"778\n"
    assert answers[1] == answers[2] != b"778\n"


@pytest.mark.parametrize(
    ("url_query", "body"),
    [
        ("insert into rag_grades (trace_id, grade) format CSV", b'{0},"x"\n'),
        ("insert into rag_grades (trace_id, grade) values", b"('{0}','x')"),
        ("insert into rag_grades (trace_id, grade) values ('{0}','x')", b""),
        ("", b"insert into rag_grades (trace_id, grade) format TSV\n{0}\tx\n"),
        ("", b"insert into rag_grades (trace_id, grade) values ('{0}','x')"),
        ("", b"insert into rag_grades (trace_id, grade) select '{0}', 'x'"),
        ("", b'insert into rag_grades format JSONEachRow {"trace_id":"{0}","grade":"x"}'),
        (
            "",
            b"/**/insert into rag_grades(trace_id,grade) settings async_insert=1 format TSV {0}\tx",
        ),
    ],
)
def test_inserts_in_every_form(shared_server: Served, url_query: str, body: bytes) -> None:
    """Statement in the URL or before the data, any format; the summary counts the rows."""
    name = f"form{abs(hash((url_query, body)))}"
    parameters = {"query": url_query.replace("{0}", name)} if url_query else {}
    status, text, headers = ask(
        shared_server,
        gzip.compress(body.replace(b"{0}", name.encode())),
        {"Content-Encoding": "gzip"},
        **parameters,
    )
    assert (status, text) == (200, b"")
    assert json.loads(headers["x-clickhouse-summary"])["written_rows"] == "1"
    assert shared_server.sql(f"select grade from rag_grades where trace_id = '{name}'") == [
        {"grade": "x"}
    ]


def test_clickhouse_s_own_compressed_blocks_are_unpacked(shared_server: Served) -> None:
    """`decompress=1`, as rotel's exporter sends it."""
    blocks = []
    for data in (b"blocks\tx\nblo", b"cks\ty\n"):
        packed = lz4.block.compress(data, store_size=False)
        head = struct.pack("<BII", 0x82, len(packed) + 9, len(data))
        blocks.append(bytes(16) + head + packed)
    sent = b"".join(blocks)
    query = "insert into rag_grades (trace_id, label_id) format TSV"
    assert ask(shared_server, sent, query=query, decompress="1")[0] == 200
    assert shared_server.sql("select count() as n from rag_grades where trace_id = 'blocks'") == [
        {"n": 2}
    ]
    assert ask(shared_server, sent[:-1], query=query, decompress="1")[0] == 400


def test_answers_come_in_clickhouse_s_own_blocks(shared_server: Served) -> None:
    """`compress=1`, as JDBC clients ask: each block with the checksum that they verify."""
    query = b"select number from numbers(300000) format TSV"
    status, body, _ = ask(shared_server, query, compress="1")
    assert status == 200
    plain, at = b"", 0
    while at < len(body):
        method, packed_size, size = struct.unpack_from("<BII", body, at + 16)
        block = body[at + 16 : at + 16 + packed_size]
        checksum = CityHash128(block)
        assert body[at : at + 16] == struct.pack("<QQ", checksum >> 64, checksum % 2**64)
        assert method == 0x82
        plain += lz4.block.decompress(block[9:], uncompressed_size=size)
        at += 16 + packed_size
    assert plain == "".join(f"{number}\n" for number in range(300_000)).encode()


def test_the_engine_s_own_files_have_the_same_checksums(engine: Store, tmp_path: Path) -> None:
    """The checksum of a block is the one that the engine writes into its own column files."""
    engine.command("create table sums (n UInt64) engine = MergeTree order by n")
    engine.command("insert into sums select number from numbers(1000)")
    paths = engine.query(
        "select path from system.parts where table = 'sums' and active"
    ).result_rows
    files = list(Path(paths[0][0]).glob("*.bin"))
    assert files
    for file in files:
        body = file.read_bytes()
        (packed_size,) = struct.unpack_from("<I", body, 17)
        checksum = CityHash128(body[16 : 16 + packed_size])
        assert body[:16] == struct.pack("<QQ", checksum >> 64, checksum % 2**64)
    engine.command("drop table sums")


def test_answers_tell_about_themselves(shared_server: Served) -> None:
    """Format, query id, time zone, name: the headers of a ClickHouse server."""
    status, text, headers = ask(
        shared_server, b"select 1 as one", {"X-ClickHouse-Format": "JSONEachRow"}, query_id="my-id"
    )
    assert (status, text) == (200, b'{"one":1}\n')
    told = {key: value for key, value in headers.items() if key.startswith("x-clickhouse")}
    told.pop("x-clickhouse-summary"), told.pop("x-clickhouse-exception-tag")
    assert told == {
        "x-clickhouse-format": "JSONEachRow",
        "x-clickhouse-query-id": "my-id",
        "x-clickhouse-server-display-name": "ragotel",
        "x-clickhouse-timezone": "UTC",
    }


def test_answers_are_packed_when_asked(shared_server: Served) -> None:
    """Only with enable_http_compression, as a ClickHouse server does."""
    headers = {"Accept-Encoding": "gzip"}
    packed = ask(shared_server, b"select 1", headers, enable_http_compression="1")
    assert (gzip.decompress(packed[1]), packed[2]["content-encoding"]) == (b"1\n", "gzip")
    assert ask(shared_server, b"select 1", headers)[1] == b"1\n"


def test_times_are_utc_whatever_zone_a_column_loses(client: Any) -> None:
    """DateTime loses its zone on the wire; the server's own zone is UTC, so nothing shifts."""
    row = client.query("select toDateTime('2026-07-01 12:00:00', 'UTC') as t, timezone() as z")
    assert row.result_rows == [(dt.datetime(2026, 7, 1, 12), "UTC")]


async def test_the_async_client_asks_many_at_once(shared_server: Served) -> None:
    """Statements run side by side, and each answer finds its question."""
    parts = urllib.parse.urlsplit(shared_server.url)
    async with await clickhouse_connect.get_async_client(
        host=parts.hostname, port=parts.port, database="ragotel"
    ) as client:
        results = await asyncio.gather(
            *(client.query("select {n:UInt32}", parameters={"n": n}) for n in range(40))
        )
        assert [result.result_rows for result in results] == [[(n,)] for n in range(40)]
        with pytest.raises(DatabaseError, match="UNKNOWN_TABLE"):
            await client.query("select * from nowhere")


def test_a_statement_ends_when_its_client_goes(shared_server: Served) -> None:
    """Nobody waits for the answer, so nothing goes on computing it."""
    running = "select count() as n from system.processes where query like '%from numbers(1e13)%'"
    running += " and query not like '%system.processes%'"
    parts = urllib.parse.urlsplit(shared_server.url)
    import http.client

    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    connection.request("POST", "/", b"select sum(cityHash64(number)) from numbers(1e13)")
    wait_until(lambda: shared_server.sql(running) == [{"n": 1}])
    connection.close()
    wait_until(lambda: shared_server.sql(running) == [{"n": 0}])


def test_ping_and_health_answer(shared_server: Served) -> None:
    """What probes and clients look for."""
    answers = {}
    for path in ("/", "/ping", "/replicas_status", "/health"):
        with urllib.request.urlopen(shared_server.url + path, timeout=10) as reply:
            answers[path] = reply.read()
    health = json.loads(answers.pop("/health"))
    assert answers == dict.fromkeys(("/", "/ping", "/replicas_status"), b"Ok.\n")
    assert health["status"] == "ok"
