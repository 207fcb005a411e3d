"""`ragotel serve` over TLS, and a token that only reads."""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import clickhouse_connect
import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from otlp_bodies import body, request
from ragotel.store import open_store
from served import Served, start_server

TOKEN, READER = "writes", "reads"

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the pair")


@dataclass(frozen=True)
class Pair:
    certificate: Path
    key: Path


def make_pair(folder: Path) -> Pair:
    """A certificate for localhost that signs itself."""
    pair = Pair(folder / "cert.pem", folder / "key.pem")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", str(pair.key), "-out", str(pair.certificate)),
        ],
        check=True,
        capture_output=True,
    )
    return pair


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return make_pair(tmp_path_factory.mktemp("pair"))


@pytest.fixture(scope="module")
def served(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    started = start_server(
        tmp_path_factory.mktemp("tls") / "store",
        *("--reader-token", READER, "--tls-cert", str(pair.certificate)),
        *("--tls-key", str(pair.key)),
        token=TOKEN,
    )
    yield started
    if started.process.poll() is None:
        started.kill()


def ask(served: Served, pair: Pair, sql: str, token: str, **parameters: str) -> tuple[int, str]:
    """Status and text of a statement that is posted over TLS."""
    query = urllib.parse.urlencode({"database": "ragotel", **parameters})
    asked = urllib.request.Request(
        f"{served.url}/?{query}", data=sql.encode(), headers={"X-ClickHouse-Key": token}
    )
    context = ssl.create_default_context(cafile=str(pair.certificate))
    try:
        with urllib.request.urlopen(asked, timeout=60, context=context) as reply:
            return reply.status, reply.read().decode().strip()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_all_three_ports_speak_tls(served: Served, pair: Pair) -> None:
    """Spans over gRPC and HTTP and statements pass, with the certificate checked."""
    credentials = grpc.ssl_channel_credentials(pair.certificate.read_bytes())
    with grpc.secure_channel(served.otlp_grpc, credentials) as channel:
        metadata = [("authorization", f"Bearer {TOKEN}")]
        TraceServiceStub(channel).Export(request({}), timeout=30, metadata=metadata)
    parts = urllib.parse.urlsplit(served.otlp_http)
    context = ssl.create_default_context(cafile=str(pair.certificate))
    connection = http.client.HTTPSConnection(
        parts.hostname or "", parts.port, timeout=30, context=context
    )
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/x-protobuf"}
    connection.request("POST", "/v1/traces", body({}), headers)
    assert connection.getresponse().status == 200
    connection.close()
    assert ask(served, pair, "select count() from otel_traces", TOKEN) == (200, "2")


def test_no_port_but_this_machine_s_own_speaks_plain_text(served: Served) -> None:
    """A plain request gets no answer; the commands' port is on 127.0.0.1 and wants the token."""
    for url in (served.url, served.otlp_http):
        parts = urllib.parse.urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        connection.request("GET", "/health")
        with pytest.raises((http.client.BadStatusLine, ConnectionError)):
            connection.getresponse()
        connection.close()
    own = json.loads((served.folder / "ragotel-serve.json").read_text("utf-8"))["url"]
    assert own.startswith("http://127.0.0.1:")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{own}/?query=select+1", timeout=30)
    assert refused.value.code == 401


def test_commands_on_this_machine_need_no_certificate(served: Served) -> None:
    """They find the server through the store's folder."""
    with open_store(served.dsn) as store:
        assert store.scalar("select 1") == 1


def test_a_service_that_trusts_the_certificate_reaches_it_by_dsn(
    served: Served, pair: Pair
) -> None:
    """clickhouse-connect with the certificate, the reader's token as password."""
    parts = urllib.parse.urlsplit(served.url)
    client = clickhouse_connect.get_client(
        host=parts.hostname,
        port=parts.port,
        secure=True,
        ca_cert=str(pair.certificate),
        password=READER,
        database="ragotel",
    )
    assert client.query("select 1").result_rows == [(1,)]
    client.close()


@pytest.mark.parametrize(
    "sql",
    [
        "insert into rag_migrations (name) values ('forged')",
        "insert into rag_migrations (name) format TSV\nforged\n",
        "create table forged (x Int32) engine = Memory",
        "drop table rag_grades",
        "alter table rag_grades delete where 1",
        "truncate table rag_grades",
        "optimize table rag_grades",
        "system flush logs",
        "set readonly = 0",
        "select 1 settings readonly = 0",
        "kill query where 1",
    ],
)
def test_a_reader_changes_nothing(served: Served, pair: Pair, sql: str) -> None:
    """The engine itself runs the reader's statement read-only, so no wording gets around it."""
    for parameters in ({}, {"session_id": "shared"}, {"readonly": "0"}):
        status, text = ask(served, pair, sql, READER, **parameters)
        assert status >= 400, text
        assert "READONLY" in text
    forged = "select count() from rag_migrations where name = 'forged'"
    assert ask(served, pair, forged, TOKEN) == (200, "0")


def test_a_reader_reads(served: Served, pair: Pair) -> None:
    """Views, with settings of its own; the writer beside it still writes."""
    limited = "select count() from triage_fixes settings max_threads = 1"
    status, text = ask(served, pair, limited, READER)
    assert (status, int(text) > 0) == (200, True)
    assert ask(served, pair, "select 1", READER, max_execution_time="5") == (200, "1")
    assert ask(served, pair, "insert into rag_rules (rule_name) values ('kept')", TOKEN)[0] == 200


def test_a_reader_sends_no_spans(served: Served, pair: Pair) -> None:
    """The receivers know the writer's token alone."""
    credentials = grpc.ssl_channel_credentials(pair.certificate.read_bytes())
    metadata = [("authorization", f"Bearer {READER}")]
    with (
        grpc.secure_channel(served.otlp_grpc, credentials) as channel,
        pytest.raises(grpc.RpcError) as raised,
    ):
        TraceServiceStub(channel).Export(request({}), timeout=30, metadata=metadata)
    assert raised.value.code() == grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tls-cert", "CERT"], "--tls-cert and --tls-key belong together"),
        (["--tls-cert", "CERT", "--tls-key", "CERT"], "cannot be used"),
        (["--tls-cert", "/nowhere", "--tls-key", "KEY"], "cannot be used"),
        (["--reader-token", "x"], "give --token too"),
        (["--reader-token", "x", "--token", "x"], "must differ"),
    ],
)
def test_what_cannot_hold_is_said_before_anything_listens(
    pair: Pair, tmp_path: Path, options: list[str], said: str
) -> None:
    """One line, exit code 2."""
    names = {"CERT": str(pair.certificate), "KEY": str(pair.key)}
    given = [names.get(option, option) for option in options]
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "ragotel", "serve", "--store", f"chdb://{tmp_path}/store"),
            *given,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1
