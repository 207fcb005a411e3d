"""Who may ask the server, and what is out of its reach."""

from __future__ import annotations

import base64
import http.client
import socket
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import clickhouse_connect
import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from otlp_bodies import body, post, request
from ragotel.store import open_store
from served import REPOSITORY, Served, start_server

TOKEN = "s3cret-tökén"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = start_server(tmp_path_factory.mktemp("guarded") / "store", token=TOKEN)
    yield served
    served.kill()


def ask(served: Served, path: str, method: str = "GET", body: str = "", **headers: str) -> int:
    """The status of a request to the ClickHouse interface."""
    parts = urllib.parse.urlsplit(served.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    connection.request(method, path, body.encode(), named)
    status = connection.getresponse().status
    connection.close()
    return status


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


QUERY = "/?query=select+1"


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (QUERY, {}, 401),
        (QUERY, {"Authorization": "Bearer wrong"}, 403),
        (QUERY, {"Authorization": basic("default", "wrong")}, 403),
        (QUERY, {"Authorization": "Basic %%%"}, 401),
        (QUERY, {"X_ClickHouse_Key": "wrong"}, 403),
        (QUERY + "&password=" + urllib.parse.quote(TOKEN), {}, 200),
        (QUERY, {"Authorization": basic("anyone", TOKEN)}, 200),
        ("/ping", {}, 200),
        ("/health", {}, 200),
    ],
)
def test_the_interface_wants_its_token(
    guarded: Served, path: str, headers: dict[str, str], status: int
) -> None:
    """As password, Bearer or key; health and ping tell nothing and ask for nothing."""
    assert ask(guarded, path, **headers) == status


def test_the_receivers_want_the_token(guarded: Served) -> None:
    """Without it nothing is stored."""
    statuses = [
        post(guarded.otlp_http, body({})).status,
        post(guarded.otlp_http, body({}), Authorization="Bearer wrong").status,
    ]
    assert statuses == [401, 401]
    with (
        grpc.insecure_channel(guarded.otlp_grpc) as channel,
        pytest.raises(grpc.RpcError) as raised,
    ):
        TraceServiceStub(channel).Export(request({}), timeout=30)
    assert raised.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_the_right_token_opens_everything(serve: Callable[..., Served]) -> None:
    """Both receivers, clickhouse-connect, and the commands, which find it in the store's folder."""
    served = serve(token="s3cret")
    assert post(served.otlp_http, body({}), Authorization="Bearer s3cret").status == 200
    with grpc.insecure_channel(served.otlp_grpc) as channel:
        metadata = [("authorization", "Bearer s3cret")]
        TraceServiceStub(channel).Export(request({}), timeout=30, metadata=metadata)
    parts = urllib.parse.urlsplit(served.url)
    client = clickhouse_connect.get_client(
        host=parts.hostname, port=parts.port, password="s3cret", database="ragotel"
    )
    assert client.query("select count() from otel_traces").result_rows == [(2,)]
    client.close()
    with open_store(served.dsn) as store:
        assert store.scalar("select count() from otel_traces") == 2


def test_without_a_token_nobody_listens_beyond_this_machine() -> None:
    """One line that says what to do; exit code 2."""
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "ragotel",
            "serve",
            "--host",
            "0.0.0.0",
            "--store",
            "chdb:///nowhere",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=REPOSITORY,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (
        2,
        "ragotel: Listening on 0.0.0.0 lets others in; give --token (or RAGOTEL_TOKEN), "
        "or listen on 127.0.0.1.\n",
    )


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://elsewhere.example"},
        {"Host": "rebound.example:8123"},
        {"Origin": "null"},
        {"Origin": "http://[::1"},
        {"Host": "[::1"},
    ],
)
def test_pages_in_a_browser_cannot_ask(shared_server: Served, headers: dict[str, str]) -> None:
    """Neither another site's page nor one that has rebound its name to this machine."""
    assert ask(shared_server, "/", "POST", "select 1", **headers) == 403


@pytest.mark.parametrize(
    "query",
    [
        "select * from file('/etc/passwd', 'LineAsString')",
        "select * from `file`('/etc/passwd', 'LineAsString')",
        "insert into function file('/tmp/x') select 1",
        "select 1 into outfile '/tmp/x'",
        "select * from url('http://127.0.0.1:1/', 'CSV', 'a String')",
        "select * from /* a */ remote('127.0.0.1', system.one)",
        "create table x (a Int8) engine = File(CSV, '/tmp/x')",
        "create table x (a Int8) engine URL('http://127.0.0.1:1/')",
        "create table x (a String) engine = FileLog('/etc', 'LineAsString')",
        "create table x (a Int8) engine = EmbeddedRocksDB(0, '/tmp/x') primary key a",
        "create database x engine = Filesystem('/etc')",
        "select * from filesystem('/etc')",
        "select * from `fi\\x6ce`('/etc/passwd', 'LineAsString')",
        "create table x (a Int8) engine = `Fi\\x6ce`(CSV, '/tmp/x')",
        "attach table x from '/tmp/x/' (a Int8) engine = Log",
        "system shutdown",
        "SYSTEM /* a */ KILL",
        "drop database system",
        "detach database if exists `system`",
    ],
)
def test_statements_stay_within_the_store(shared_server: Served, query: str) -> None:
    """No file of this machine and no other host can be read or written through the interface."""
    assert ask(shared_server, "/", "POST", query) == 403


@pytest.mark.parametrize(
    "query",
    [
        "select * from default.`{file}`",
        "select * from `{file}`",
        "select * from '{file}'",
        "select * from loop('default', '{file}')",
        "describe default.`{file}`",
    ],
)
def test_no_file_is_a_table(shared_server: Served, tmp_path: Path, query: str) -> None:
    """The embedded engine shows every file as a table of `default`; the server does not."""
    file = tmp_path / "secret.csv"
    file.write_text("top,secret\n")
    given = query.format(file=file)
    assert ask(shared_server, "/?database=default", "POST", given) == 404


def test_a_query_id_cannot_add_a_header(shared_server: Served) -> None:
    """Line ends in what the client names are no line ends in the answer."""
    url = f"{shared_server.url}/?query=select+1&query_id=a%0d%0aX-Added:%20y%00"
    with urllib.request.urlopen(url, timeout=30) as answer:
        assert answer.read() == b"1\n"
        assert answer.headers["X-Added"] is None
        assert answer.headers["X-ClickHouse-Query-Id"] == "a??X-Added: y?"


@pytest.mark.parametrize("is_served_before", [False, True])
def test_what_clients_keep_in_default_stays(tmp_path: Path, *, is_served_before: bool) -> None:
    """Tables there survive the server's starts, also those that were made without it."""
    folder = tmp_path / "store"
    made = "create table default.kept engine = MergeTree order by a as select 7 as a"
    if is_served_before:
        served = start_server(folder)
        served.command(made)
        served.kill()
    else:
        code = f"from ragotel.store import open_store; open_store({f'chdb://{folder}'!r}).command({made!r})"
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    served = start_server(folder)
    rows = served.sql("select a from default.kept")
    served.kill()
    assert rows == [{"a": 7}]


def test_a_store_is_served_again_and_again(tmp_path: Path) -> None:
    """Killed or stopped, whether `default` holds anything: the next start serves all of it."""
    for count, end in enumerate(("kill", "stop", "kill", "stop")):
        served = start_server(tmp_path / "store")
        if count == 2:
            served.command("create table default.kept engine=MergeTree order by a as select 1 as a")
        found = served.sql("select count() as n from system.tables where database = 'default'")
        assert found == [{"n": int(count >= 2)}]
        getattr(served, end)()


def test_a_get_changes_nothing(shared_server: Served) -> None:
    """As with a ClickHouse server: only POST writes."""
    for query in ("create table g (a Int8) engine=Memory", "drop table otel_traces", "set a = 1"):
        assert ask(shared_server, "/?query=" + urllib.parse.quote(query)) == 500
    assert shared_server.sql("select count() as n from otel_traces")[0]["n"] is not None


def test_unfinished_bodies_hold_no_statement_up(shared_server: Served) -> None:
    """Forty clients that leave an insert's body unfinished do not keep others from an answer."""
    port = urllib.parse.urlsplit(shared_server.url).port
    head = (
        "POST /?query=insert+into+rag_labels+format+JSONEachRow HTTP/1.1\r\n"
        f"Host: 127.0.0.1:{port}\r\nContent-Length: 100000\r\n\r\n{{"
    ).encode()
    waiting = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
    try:
        for connection in waiting:
            connection.sendall(head)
        assert shared_server.sql("select 1 as one") == [{"one": 1}]
    finally:
        for connection in waiting:
            connection.close()


@pytest.mark.parametrize("address", ["otlp_http", "url"])
def test_a_header_that_never_ends_is_cut_off(shared_server: Served, address: str) -> None:
    """Before any token is asked for, by either HTTP port; the next client is answered."""
    port = urllib.parse.urlsplit(getattr(shared_server, address)).port
    endless = b"POST /v1/traces HTTP/1.1\r\nX: " + b"x" * (64 << 20)
    connection = socket.create_connection(("127.0.0.1", port), timeout=20)
    with connection, pytest.raises(ConnectionError):
        connection.sendall(endless)
    assert shared_server.sql("select 1 as one") == [{"one": 1}]
