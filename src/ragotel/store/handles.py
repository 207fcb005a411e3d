"""Handles: raw access to the embedded engine for `ragotel serve`, many at a time.

Pipeline: OTLP writer | ClickHouse HTTP interface -> [handles] -> tables and views
The engine allows any number of handles on its one folder. A handle carries one statement at a time
and its own settings; opening one takes less than a millisecond, so each statement gets a fresh one.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragotel.errors import StoreError

MARK_SETTING = "log_comment"
"""The setting that names what a handle runs, for `Engine.kill`."""
_MARK = "ragotel-"
_BROKEN_DOWN = 236
_CANNOT_WRITE_TO_FILE = 75
_CODE = re.compile(r"Code: (\d+)\. ?(.*)", re.DOTALL)
_SETTINGS = "select name, value, changed from system.settings"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class EngineError(StoreError):
    """The engine refused a statement: its *code* and its message (without the code)."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Statistics:
    """What a statement read and wrote (written counts include the materialized views)."""

    read_rows: int = 0
    read_bytes: int = 0
    written_rows: int = 0
    written_bytes: int = 0
    elapsed_ns: int = 0


class Engine:
    """The embedded engine over *folder*, which this process holds open; safe to share."""

    def __init__(self, folder: str, database: str) -> None:
        self.folder = folder
        self.database = database
        # The engine empties this folder when it starts.
        self._scratch = Path(folder) / "tmp"
        self._scratch.mkdir(exist_ok=True)
        self.on_breakdown: Callable[[], None] = lambda: None
        """Called when the engine has broken down: it takes no statement any more."""

    def handle(self, database: str = "", settings: Mapping[str, str] | None = None) -> Handle:
        """A fresh handle in *database* (default: the store's).

        Raises:
            EngineError: The database or a setting is unknown.
        """
        import chdb

        try:
            handle = Handle(chdb.connect(self.folder), self._scratch)  # type: ignore[no-untyped-call]
        except Exception as error:
            raise _engine_error(error) from error
        try:
            handle.use(database or self.database)
            handle.set(settings or {})
        except EngineError as error:
            handle.close()
            if error.code == _BROKEN_DOWN:
                self.on_breakdown()
            raise
        return handle

    def kill(self, mark: str) -> None:
        """Cancel the statement whose handle has *mark* as `MARK_SETTING`, if it still runs."""
        with self.handle() as handle:
            where = f"Settings['{MARK_SETTING}'] = {quoted(mark)}"
            handle.query(f"kill query where {where} async")

    def kill_all(self) -> None:
        """Cancel every statement that bears a mark of `new_mark`."""
        with self.handle() as handle:
            where = f"startsWith(Settings['{MARK_SETTING}'], {quoted(_MARK)})"
            handle.query(f"kill query where {where} async")


class Handle:
    """One statement at a time, by any thread."""

    def __init__(self, connection: Any, scratch: Path) -> None:
        self._connection = connection
        self._scratch = scratch
        self._stream: Any = None
        self.statistics = Statistics()

    def use(self, database: str) -> None:
        self.query(f"use {quoted_name(database)}")

    def set(self, settings: Mapping[str, str | None]) -> None:
        """Apply *settings*; None stands for the default."""
        for name in settings:
            if not _NAME.match(name):
                raise EngineError(
                    115, f"DB::Exception: Unknown setting {name!r}. (UNKNOWN_SETTING)"
                )
        plain = [
            f"{name} = {quoted(value)}" for name, value in settings.items() if value is not None
        ]
        if plain:
            self.query(f"set {', '.join(plain)}")
        for name, value in settings.items():
            if value is None:
                self.query(f"set {name} = default")

    def settings(self, names: Iterable[str]) -> dict[str, str | None]:
        """Values of the named settings; None where the default holds."""
        wanted = ", ".join(map(quoted, names))
        text = self.query(f"{_SETTINGS} where name in ({wanted})", "JSONCompactEachRow")
        rows = (json.loads(line) for line in text.splitlines())
        return {name: value if changed else None for name, value, changed in rows}

    def is_read_only(self, sql: str) -> bool:
        """Whether *sql* changes neither data nor the session; what does not parse reads as true."""
        return str(self._connection._conn.classify_query(sql)["query_class"]).endswith("READ_ONLY")

    def query(self, sql: str, output_format: str = "TabSeparated") -> bytes:
        """Run any statement; all its output, in *output_format* unless it names one itself."""
        started_ns = time.monotonic_ns()
        try:
            result = self._connection.query(sql, output_format)
        except Exception as error:
            raise _engine_error(error) from error
        self.statistics = Statistics(
            read_rows=result.storage_rows_read() or result.rows_read(),
            read_bytes=result.storage_bytes_read() or result.bytes_read(),
            written_rows=result.rows_written(),
            written_bytes=result.bytes_written(),
            elapsed_ns=time.monotonic_ns() - started_ns,
        )
        return bytes(result.bytes())

    def stream(self, sql: str, output_format: str) -> Iterator[bytes]:
        """Run a SELECT; its output block by block, each a whole text of *output_format*."""
        try:
            result = self._connection.send_query(sql, output_format)
        except Exception as error:
            raise _engine_error(error) from error
        self._stream = result
        while (chunk := self._fetch()) is not None:
            yield chunk

    def _fetch(self) -> bytes | None:
        try:
            chunk = self._stream.fetch() if self._stream is not None else None
        except Exception as error:
            self._stream = None
            raise _engine_error(error) from error
        if chunk is None:
            self._stream = None
            return None
        return bytes(chunk.bytes())

    def insert(
        self, sql: str, input_format: str, chunks: Iterable[bytes], settings: str = ""
    ) -> Statistics:
        """Run an INSERT (without FORMAT) over *chunks* of *input_format*.

        The rows go through a file, because the engine's streaming insert says that all is well
        where the table took nothing: too many parts, a full disk, a constraint.

        Raises:
            EngineError: The table did not take the rows, or the file could not be written.
        """
        try:
            with tempfile.NamedTemporaryFile(dir=self._scratch, prefix="tmp-insert-") as file:
                for chunk in chunks:
                    file.write(chunk)
                if not file.tell():
                    self.statistics = Statistics()
                    return self.statistics
                file.flush()
                source = f"from infile {quoted(file.name)} {settings}"
                self.query(f"{sql}\n{source} format {input_format}")
        except OSError as error:
            raise EngineError(
                _CANNOT_WRITE_TO_FILE, f"DB::Exception: {error} (CANNOT_WRITE_TO_FILE_DESCRIPTOR)"
            ) from error
        return self.statistics

    def close(self) -> None:
        # The engine breaks down if a stream outlives its connection.
        stream, self._stream = self._stream, None
        if stream is not None:
            with contextlib.suppress(Exception):
                stream.cancel()
        self._connection.close()

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def new_mark() -> str:
    """A name for a statement that nothing else bears."""
    return f"{_MARK}{secrets.token_hex(12)}"


def quoted(text: str) -> str:
    """*text* as a string literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def quoted_name(name: str) -> str:
    """*name* as an identifier."""
    escaped = name.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{escaped}`"


def _engine_error(error: Exception) -> EngineError:
    found = _CODE.search(str(error))
    if found:
        return EngineError(int(found[1]), found[2].strip())
    return EngineError(1002, f"DB::Exception: {error} (UNKNOWN_EXCEPTION)")
