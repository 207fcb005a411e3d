"""Serving: one process from open store to last acknowledged span.

Pipeline: `ragotel serve` -> [serving: receivers, writer, interface] -> embedded store
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import uvicorn

from ragotel.errors import ConfigurationError, StoreError
from ragotel.server.access import Access, check_binding, check_reader_token
from ragotel.server.clickhouse_http import ClickHouseInterface, clickhouse_app
from ragotel.server.otlp_grpc import start_grpc
from ragotel.server.otlp_http import otlp_app
from ragotel.server.receiver import Receiver
from ragotel.server.settler import Settler
from ragotel.server.tls import Tls, read_tls
from ragotel.server.writer import Writer
from ragotel.store import Store, migrate, open_store, parse_dsn
from ragotel.store.handles import Engine, quoted
from ragotel.store.open import SERVE_FILE, check_not_served

DRAIN_S = 10
"""How long open connections may go on after the signal to end."""


@dataclass(frozen=True)
class ServeOptions:
    """What `ragotel serve` was asked; port 0 takes a free one."""

    dsn: str
    host: str = "127.0.0.1"
    otlp_grpc_port: int = 4317
    otlp_http_port: int = 4318
    http_port: int = 8123
    token: str = ""
    reader_token: str = ""
    tls_cert: str = ""
    tls_key: str = ""


@dataclass(frozen=True)
class Addresses:
    """Where the server listens."""

    otlp_grpc: str
    otlp_http: str
    clickhouse_http: str


def serve(options: ServeOptions, on_ready: Callable[[Addresses], None]) -> None:
    """Open the store, listen, and return after SIGTERM or SIGINT when everything taken is durable.

    Raises:
        ConfigurationError: The store is not embedded, a port is taken, a token is missing, or the
            certificate cannot be used.
        StoreError: The store cannot be opened or migrated.
    """
    check_binding(options.host, options.token)
    check_reader_token(options.token, options.reader_token)
    tls = read_tls(options.tls_cert, options.tls_key)
    dsn = parse_dsn(options.dsn)
    if not dsn.is_embedded:
        raise ConfigurationError(
            f"`ragotel serve` keeps its own store in a folder; {dsn.host}:{dsn.port} is a server "
            "already: send OTLP there through a collector."
        )
    check_not_served(dsn.path)
    # All times are UTC, also those of columns that lose their zone on the wire.
    os.environ["TZ"] = "UTC"
    time.tzset()
    with (
        contextlib.closing(_listen(options.host, options.otlp_http_port)) as otlp_socket,
        contextlib.closing(_listen(options.host, options.http_port)) as http_socket,
        _own_socket(tls) as own_socket,
        open_store(options.dsn, follow_server=False) as store,
    ):
        shut_default(store)
        migrate(store)
        make_durable(store)
        sockets = _Sockets(otlp_socket, http_socket, own_socket)
        asyncio.run(_serve(options, store, sockets, tls, on_ready))


def shut_default(store: Store) -> None:
    """Replace the engine's database `default`, in which every file of this machine is a table.

    What clients have left in it is kept. It must be done before anything is read from it.

    Raises:
        ConfigurationError: The store's own database is `default`.
    """
    if store.database == "default":
        raise ConfigurationError(
            "`ragotel serve` keeps nothing in the database 'default', as the engine shows files "
            "there; name another in the store, or leave ?database= out."
        )
    facts = "select engine from system.databases where name = 'default'"
    if [row[0] for row in store.query(facts).result_rows] not in ([], ["Overlay"]):
        return
    store.command("detach database if exists default")
    store.command(_default_anew(Path(store.dsn.path) / "metadata"))


def _default_anew(metadata: Path) -> str:
    """The statement that brings `default` back as a plain database, with what it holds."""
    # The engine goes by the link alone; what an earlier start has described may not be that.
    (metadata / "default.sql").unlink(missing_ok=True)
    held = metadata / "default"
    if held.is_symlink():
        return f"attach database default uuid {quoted(held.readlink().name)} engine = Atomic"
    return "create database default engine = Atomic"


def make_durable(store: Store) -> None:
    """Let every insert reach the disk before it is acknowledged, in all tables of the store."""
    tables = store.query(
        "select name from system.tables where database = currentDatabase() "
        "and engine like '%MergeTree' and create_table_query not like '%fsync_after_insert = 1%'"
    ).result_rows
    for (table,) in tables:
        store.command(
            f"alter table `{table}` modify setting fsync_after_insert = 1, fsync_part_directory = 1"
        )


@dataclass(frozen=True)
class _Sockets:
    """Where the HTTP servers listen; *own* is for this machine's commands where TLS is on."""

    otlp: socket.socket
    http: socket.socket
    own: socket.socket | None


async def _serve(
    options: ServeOptions,
    store: Store,
    sockets: _Sockets,
    tls: Tls | None,
    on_ready: Callable[[Addresses], None],
) -> None:
    loop = asyncio.get_running_loop()
    engine = Engine(store.dsn.path, store.database)
    access = Access(options.token, options.reader_token)
    writer = Writer(engine)
    settler = Settler(lambda: open_store(_own_dsn(store), follow_server=False))
    receiver, interface = Receiver(writer, settler), ClickHouseInterface(engine, access)
    grpc_server, grpc_port = await _start_grpc(options, receiver, access, tls)
    statements = clickhouse_app(interface, access)
    servers = {
        _Server(otlp_app(receiver, access), tls): sockets.otlp,
        _Server(statements, tls): sockets.http,
    }
    if sockets.own is not None:
        servers[_Server(statements, None)] = sockets.own
    serving = [
        asyncio.create_task(server.serve(sockets=[listener]))
        for server, listener in servers.items()
    ]
    stopping, broken = _on_signals(), asyncio.Event()

    def break_down() -> None:
        loop.call_soon_threadsafe(broken.set)
        loop.call_soon_threadsafe(stopping.set)

    engine.on_breakdown = break_down
    while not all(server.started for server in servers):
        await asyncio.sleep(0.01)
    host, scheme = options.host, "https" if tls else "http"
    addresses = Addresses(
        otlp_grpc=_address(host, grpc_port),
        otlp_http=f"{scheme}://{_address(host, sockets.otlp.getsockname()[1])}",
        clickhouse_http=f"{scheme}://{_address(host, sockets.http.getsockname()[1])}",
    )
    own_url = _reachable(addresses.clickhouse_http)
    if sockets.own is not None:
        own_url = f"http://127.0.0.1:{sockets.own.getsockname()[1]}"
    with _announced(store.dsn.path, own_url, options.token):
        on_ready(addresses)
        await stopping.wait()
        for server in servers:
            server.should_exit = True
        await grpc_server.stop(DRAIN_S)
        await asyncio.gather(*serving)
        await asyncio.to_thread(writer.close)
        await asyncio.to_thread(settler.close)
        has_ended = await asyncio.to_thread(interface.close)
        receiver.close()
    if not has_ended:
        # Everything taken is durable; only reads that nobody waits for are left.
        os._exit(0)
    if broken.is_set():
        raise StoreError(f"The embedded engine over {store.dsn.path} broke down; start again.")


def _own_dsn(store: Store) -> str:
    """The embedded store once more, for a thread of its own."""
    return f"chdb://{quote(store.dsn.path)}?database={quote(store.database, safe='')}"


async def _start_grpc(
    options: ServeOptions, receiver: Receiver, access: Access, tls: Tls | None
) -> tuple[Any, int]:
    pair = (tls.key, tls.certificate) if tls else None
    try:
        return await start_grpc(receiver, access, options.host, options.otlp_grpc_port, pair)
    except RuntimeError as error:
        raise ConfigurationError(
            f"Port {options.otlp_grpc_port} on {options.host} is taken; give --otlp-grpc-port "
            "another (0: any free one)."
        ) from error


def _on_signals() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set; a second signal ends the process at once."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        stopping.set()
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    return stopping


def _is_worth_logging(record: logging.LogRecord) -> bool:
    # An answer that the engine broke off is left without its end on purpose.
    return "without completing response" not in record.getMessage()


class _Server(uvicorn.Server):
    """A server that leaves signals to its caller: two of them share the process."""

    def __init__(self, app: Any, tls: Tls | None) -> None:
        logging.getLogger("uvicorn.error").addFilter(_is_worth_logging)
        super().__init__(
            uvicorn.Config(
                app,
                # The other parser, taken where it is installed, has no limit for headers.
                http="h11",
                log_level="warning",
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=DRAIN_S,
                server_header=False,
                ssl_certfile=tls.certificate_file if tls else None,
                ssl_keyfile=tls.key_file if tls else None,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without the protocol's number asyncio leaves Nagle's delay on: 40 ms for each answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host.strip("[]"), port))
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"Cannot listen on {host}:{port}: {error.strerror or error}. "
            "Give another port (0: any free one)."
        ) from error
    return listener


@contextlib.contextmanager
def _own_socket(tls: Tls | None) -> Iterator[socket.socket | None]:
    """A listener in plain text for this machine alone, whose commands need no certificate."""
    if tls is None:
        yield None
        return
    with contextlib.closing(_listen("127.0.0.1", 0)) as listener:
        yield listener


def _address(host: str, port: int) -> str:
    return f"[{host.strip('[]')}]:{port}" if ":" in host else f"{host}:{port}"


def _reachable(url: str) -> str:
    """The address for a client on this machine: nobody connects to 'any address'."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


@contextlib.contextmanager
def _announced(folder: str, url: str, token: str) -> Iterator[None]:
    """Leave the server's address in the store's folder: commands reach it by the same DSN."""
    path = Path(folder) / SERVE_FILE
    fresh = path.with_suffix(f".{os.getpid()}")
    try:
        descriptor = os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump({"url": url, "token": token, "pid": os.getpid()}, file)
        fresh.replace(path)
    except OSError as error:
        raise StoreError(f"The folder {folder} cannot be written: {error.strerror}.") from error
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
