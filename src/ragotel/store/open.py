"""Opening a store: `chdb:///path` in process, `http(s)://user:pw@host:8123/db` over the wire.

Where `ragotel serve` holds an embedded store, its address stands in a file inside the store's
folder, and opening that folder reaches the server instead: the engine allows one process per
folder.
"""

from __future__ import annotations

import json
import os
import re
import threading
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from ragotel.errors import ConfigurationError, StoreBusyError, StoreError

SERVE_FILE = "ragotel-serve.json"
"""Inside the embedded store's folder: {"url", "token", "pid"} of the server that holds it."""

DEFAULT_DATABASE = "ragotel"
MINIMUM_VERSION = (25, 10)
"""The engine that has normalizeUTF8NFKCCasefold; older ones cannot run the schema."""


@dataclass(frozen=True)
class Dsn:
    """A parsed DSN; *path* is set for the embedded engine, *url* for a server."""

    text: str
    path: str = ""
    host: str = ""
    port: int = 0
    secure: bool = False
    username: str = ""
    password: str = field(default="", repr=False)
    database: str = DEFAULT_DATABASE

    @property
    def is_embedded(self) -> bool:
        return bool(self.path)


def default_dsn() -> str:
    """The store when none is named: `RAGOTEL_STORE`, else a folder in the user's home."""
    return os.environ.get("RAGOTEL_STORE") or f"chdb://{Path.home() / '.ragotel' / 'store'}"


def parse_dsn(text: str | None = None) -> Dsn:
    """Read a DSN.

    Raises:
        ConfigurationError: It is neither `chdb:///path` nor `http(s)://…`.
    """
    text = text or default_dsn()
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise ConfigurationError(f"The store {_masked(text)!r} is no URL: {error}.") from error
    if parts.scheme == "chdb":
        if parts.netloc or not parts.path.strip("/"):
            raise ConfigurationError(
                f"The store {text!r} names no folder; write chdb:///absolute/path (three slashes)."
            )
        database = parse_qs(parts.query).get("database", [DEFAULT_DATABASE])[-1]
        return Dsn(text=text, path=os.path.realpath(unquote(parts.path)), database=database)
    if parts.scheme in ("http", "https") and parts.hostname:
        secure = parts.scheme == "https"
        try:
            port = parts.port or (8443 if secure else 8123)
        except ValueError as error:
            raise ConfigurationError(f"The store {_masked(text)!r} has no usable port.") from error
        return Dsn(
            text=text,
            host=parts.hostname,
            port=port,
            secure=secure,
            username=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
            database=parts.path.strip("/") or DEFAULT_DATABASE,
        )
    raise ConfigurationError(
        f"The store {_masked(text)!r} is neither chdb:///path nor http(s)://user:password@host:8123/database."
    )


def _masked(text: str) -> str:
    head, at, tail = text.rpartition("@")
    return f"…@{tail}" if at else head or tail


class Store:
    """A connection; not shared between threads that use it at the same time."""

    def __init__(self, dsn: Dsn, client: Any) -> None:
        self.dsn = dsn
        self.client = client
        self.database = dsn.database

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Any:
        """Run a SELECT; the result has `column_names`, `result_rows` and `named_results()`."""
        return self.client.query(sql, parameters=dict(parameters or {}))

    def rows(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Run a SELECT; a list of dicts, one per row."""
        return list(self.query(sql, parameters).named_results())

    def scalar(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Any:
        """Run a SELECT of one value; None where there is no row."""
        rows = self.query(sql, parameters).result_rows
        return rows[0][0] if rows else None

    def command(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Any:
        """Run a statement that returns no rows."""
        return self.client.command(sql, parameters=dict(parameters or {}))

    def insert(self, table: str, rows: Sequence[Sequence[Any]], columns: Iterable[str]) -> None:
        """Insert *rows* (each in the order of *columns*); nothing happens where there are none."""
        if rows:
            self.client.insert(table, rows, column_names=list(columns))

    def close(self) -> None:
        self.client.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


_open_lock = threading.Lock()
_held_here: set[str] = set()
"""Folders that this process has opened: the engine goes on holding them."""


def open_store(dsn: str | None = None, *, create: bool = True, follow_server: bool = True) -> Store:
    """Open the store that *dsn* names (default: `RAGOTEL_STORE`, else the home folder's).

    Args:
        create: Make the folder and the database where they are missing.
        follow_server: Reach an embedded store through the `ragotel serve` that holds it.

    Raises:
        ConfigurationError: The DSN cannot be read.
        StoreBusyError: Another process holds the embedded store and answers no request.
        StoreError: The engine is missing, too old, or cannot be reached.
    """
    parsed = parse_dsn(dsn)
    if not parsed.is_embedded:
        return _open_http(parsed, create=create)
    served = _served_dsn(parsed.path) if follow_server else None
    if served is not None:
        return _open_http(replace(served, database=parsed.database), create=create)
    return _open_embedded(parsed, create=create)


@dataclass(frozen=True)
class _Server:
    """A live `ragotel serve`; *pid* is '' where it is not known."""

    url: str
    token: str
    pid: str


def check_not_served(path: str) -> None:
    """See that no live server holds the folder *path* already.

    Raises:
        StoreBusyError: One does; it says where it listens.
    """
    server = _server_of(path)
    if server is None:
        return
    who = "`ragotel serve`" + (f" (process {server.pid})" if server.pid else "")
    address = server.url.replace("://", "://default:TOKEN@") if server.token else server.url
    raise StoreBusyError(
        f"{who} serves {path} already, at {server.url}, and the engine allows one process per "
        "folder, so other ports do not help: use that one, by this --store or by "
        f"--store {address}/{DEFAULT_DATABASE}, or serve another folder."
    )


def _server_of(path: str) -> _Server | None:
    """The live server that holds *path*, if there is one."""
    try:
        entry = json.loads((Path(path) / SERVE_FILE).read_text("utf-8"))
        server = _Server(
            str(entry["url"]), str(entry.get("token") or ""), str(entry.get("pid") or "")
        )
        request = urllib.request.Request(f"{server.url}/health")  # noqa: S310 (our own file)
        with urllib.request.urlopen(request, timeout=5) as reply:  # noqa: S310
            return server if reply.status == 200 else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _served_dsn(path: str) -> Dsn | None:
    """The address of the live server that holds *path*, if there is one."""
    server = _server_of(path)
    if server is None:
        return None
    parts = urlsplit(server.url)
    return Dsn(
        text=server.url,
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 8123,
        username="default" if server.token else "",
        password=server.token,
    )


def _open_embedded(dsn: Dsn, *, create: bool) -> Store:
    folder = Path(dsn.path)
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"{dsn.path} is a file, and a store is a folder: name another place.")
    if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
        raise StoreError(
            f"The folder {dsn.path} cannot be written by this user, and the embedded engine writes "
            "also where it only reads: ask the `ragotel serve` that holds it, by --store http://..."
        )
    if not create and not (folder / "metadata").exists():
        # The engine would make its own files in any folder that it is given.
        raise StoreError(
            f"There is no store at {dsn.path}; `ragotel init --store {dsn.text}` makes one."
        )
    try:
        import chdb  # noqa: F401
        from clickhouse_connect import get_client
    except ImportError as error:
        raise StoreError(
            f"The store {dsn.text} needs the embedded engine: pip install 'ragotel[local]'"
        ) from error
    try:
        Path(dsn.path).mkdir(parents=True, exist_ok=True)
        with _open_lock:
            _check_is_free(dsn.path)
            client = get_client(interface="chdb", path=dsn.path)
            _held_here.add(dsn.path)
    except StoreError:
        raise
    except Exception as error:
        # Another process may have been quicker since the look.
        _check_is_free(dsn.path)
        raise StoreError(
            f"The store at {dsn.path} cannot be opened: {_first_line(str(error))}"
        ) from error
    return _ready(Store(dsn, client), create=create)


def _check_is_free(path: str) -> None:
    """See that no other process holds the folder: the engine would write on stderr itself."""
    try:
        import fcntl
    except ImportError:
        return
    status = Path(path) / "status"
    if path in _held_here or not status.exists():
        return
    with status.open("rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StoreBusyError(
                f"Another process has {path} open ({_holder(status)}the engine allows one) and no "
                "`ragotel serve` answers for it. One that was just started needs some seconds; "
                "else stop that process, or start `ragotel serve` there."
            ) from error


def _holder(status: Path) -> str:
    """`process 4711, ` of who has locked the file, where the system tells."""
    try:
        facts = status.stat()
        device = f"{os.major(facts.st_dev):02x}:{os.minor(facts.st_dev):02x}:{facts.st_ino}"
        locks = [line.split() for line in Path("/proc/locks").read_text("ascii").splitlines()]
        pids = [lock[4] for lock in locks if len(lock) > 5 and lock[5] == device]
    except (OSError, ValueError):
        return ""
    return f"process {pids[0]}, " if pids and pids[0].isdigit() and pids[0] != "0" else ""


def _open_http(dsn: Dsn, *, create: bool) -> Store:
    from clickhouse_connect import get_client

    try:
        client = get_client(
            host=dsn.host,
            port=dsn.port,
            username=dsn.username or "default",
            password=dsn.password,
            secure=dsn.secure,
            autogenerate_session_id=False,
        )
    except Exception as error:
        raise StoreError(
            f"No ClickHouse answers at {dsn.host}:{dsn.port}: {_reason(str(error))}"
        ) from error
    return _ready(Store(dsn, client), create=create)


def _ready(store: Store, *, create: bool) -> Store:
    """Check the engine's version and step into the database."""
    version = str(store.scalar("select version()"))
    if tuple(int(part) for part in version.split(".")[:2]) < MINIMUM_VERSION:
        wanted = ".".join(map(str, MINIMUM_VERSION))
        raise StoreError(f"ragotel needs ClickHouse {wanted} or newer; found {version}.")
    try:
        if create:
            store.command(f"create database if not exists `{store.database}`")
        store.client.database = store.database
        # Times without a zone of their own read as UTC, wherever this process or the server stands.
        store.client.set_client_setting("session_timezone", "UTC")
    except Exception as error:
        raise StoreError(
            f"The database {store.database!r} cannot be used: {_first_line(str(error))}"
        ) from error
    return store


def _reason(message: str) -> str:
    """What the network says, without the driver's words around it."""
    found = re.search(r"\[Errno -?\d+\] ([^'\")\n]+)", message)
    return found[1].strip() if found else _first_line(message)


def _first_line(message: str) -> str:
    return message.strip().splitlines()[0][:300] if message.strip() else "no reason given"
