"""ClickHouse query: runs the statement of one request and writes the answer, in a thread.

Pipeline: ClickHouse interface -> exchange -> [query] -> engine
"""

from __future__ import annotations

import contextlib
import itertools
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ragotel.errors import InputError
from ragotel.server import clickhouse_reply as reply
from ragotel.server import statement
from ragotel.server.clickhouse_form import is_form, read_form
from ragotel.server.clickhouse_request import MAX_QUERY_SECONDS, QueryRequest, settings_in
from ragotel.server.exchange import ABORT, Exchange
from ragotel.server.native_revision import HAS_SERIALIZATION, from_revision, to_revision
from ragotel.server.sessions import Sessions
from ragotel.store.encodings import BlockPacker, Packer, packer_for, unpack, unpack_blocks
from ragotel.store.handles import MARK_SETTING, Engine, EngineError, Handle, Statistics, new_mark

MAX_STATEMENT_BYTES = 64 << 20
"""Of a statement that is not an INSERT with a named format; those may have any length."""
_HEAD_BYTES = 1 << 16
_CONTROL = re.compile("[\x00-\x1f\x7f]")
# The engine gives these block by block; the others have a frame and come as one text.
_STREAMED = {
    "Native",
    "TabSeparated",
    "TSV",
    "CSV",
    "RowBinary",
    "JSONEachRow",
    "JSONCompactEachRow",
}


@dataclass(frozen=True)
class ServerFacts:
    """What every answer tells about the server."""

    version: str
    timezone: str
    name: str


class QueryJob:
    """One request: `run` reads the body from the exchange and sends the whole answer to it."""

    def __init__(
        self,
        query: QueryRequest,
        exchange: Exchange,
        engine: Engine,
        sessions: Sessions,
        facts: ServerFacts,
    ) -> None:
        self._query = query
        self._exchange = exchange
        self._engine = engine
        self._sessions = sessions
        self._facts = facts
        self._is_started = False

    def run(self) -> None:
        try:
            self._run()
        except EngineError as error:
            self._fail(error)
        except InputError as error:
            self._fail(EngineError(117, f"DB::Exception: {error} (INCORRECT_DATA)"))

    def _run(self) -> None:
        pieces = unpack(self._exchange.chunks(), self._query.body_encoding)
        if self._query.body_in_blocks:
            pieces = unpack_blocks(pieces)
        given = self._query.url_query.encode()
        if is_form(self._query.content_type):
            self._run_form(given, pieces)
            return
        if given and statement.is_insert(given):
            self._insert_from_url(given, pieces)
            return
        head, pieces = _head(pieces)
        insert = statement.find_insert(head) if not given else None
        if insert is not None:
            self._insert(insert, itertools.chain([head[insert.data_at :]], pieces))
            return
        text = b"\n".join(filter(None, (given, _whole(head, pieces))))
        self._statement(text)

    def _run_form(self, given: bytes, pieces: Iterator[bytes]) -> None:
        head, pieces = _head(pieces)
        fields = read_form(self._query.content_type, _whole(head, pieces))
        settings = {**self._query.settings, **settings_in(fields)}
        self._query = replace(self._query, settings=settings)
        self._statement(given or fields.get("query", "").encode())

    def _insert_from_url(self, given: bytes, pieces: Iterator[bytes]) -> None:
        insert = statement.find_insert(given)
        if insert is not None:
            inline = given[insert.data_at :]
            self._insert(insert, itertools.chain([inline] if inline.strip() else [], pieces))
        elif statement.is_insert_without_data(given):
            sql = given.decode().rstrip().removesuffix(";")
            if sql.lower().endswith("values"):
                sql = sql[: -len("values")]
            self._insert(statement.Insert(sql, "Values", len(given)), pieces)
        else:
            head, pieces = _head(pieces)
            self._statement(given + _whole(head, pieces))

    def _insert(self, insert: statement.Insert, chunks: Iterable[bytes]) -> None:
        with self._handle(f"{insert.sql} {insert.settings}".encode(), {}) as handle:
            filled: Iterator[bytes] = (chunk for chunk in chunks if chunk)
            if insert.input_format == "Native" and self._query.revision > 0:
                filled = iter([from_revision(b"".join(filled), self._query.revision)])
            statistics = handle.insert(insert.sql, insert.input_format, filled, insert.settings)
            self._answer(b"", statistics, "")

    def _statement(self, text: bytes) -> None:
        if not text.strip():
            raise EngineError(62, "DB::Exception: Syntax error: Empty query. (SYNTAX_ERROR)")
        sql = text.decode("utf-8", "replace")
        limits = {} if statement.is_insert(text) else {"max_execution_time": MAX_QUERY_SECONDS}
        with self._handle(text, limits) as handle:
            named = statement.output_format(text) or self._query.default_format
            can_stream = statement.is_select(text) and not self._query.waits_for_end
            is_revised = named == "Native" and self._query.revision >= HAS_SERIALIZATION
            if can_stream and named in _STREAMED and not is_revised:
                self._stream(handle.stream(sql, named), named)
            else:
                body = handle.query(sql, named)
                if is_revised:
                    body = to_revision(body, self._query.revision)
                self._answer(body, handle.statistics, named)

    @contextlib.contextmanager
    def _handle(self, text: bytes, limits: dict[str, str]) -> Iterator[Handle]:
        """A handle that may run *text*, named so that it is cancelled when the client goes away."""
        if statement.has_several(text):
            raise EngineError(
                62, "DB::Exception: Syntax error: Multi-statements are not allowed. (SYNTAX_ERROR)"
            )
        if outside := statement.outside_name(text):
            raise reply.refused(f"{outside!r} reaches beyond the store; this server does not.")
        mark = new_mark()
        settings = {
            "implicit_select": "0",
            **limits,
            **self._query.settings,
            MARK_SETTING: mark,
        }
        keeps = statement.keeps_session(text)
        query = self._query
        with self._sessions.handle(
            query.session_id, query.database, settings, keeps=keeps
        ) as handle:
            if query.is_read_only and not handle.is_read_only(text.decode("utf-8", "replace")):
                raise reply.READ_ONLY
            self._exchange.on_disconnect = lambda: self._engine.kill(mark)
            self._exchange.check()
            try:
                yield handle
            finally:
                self._exchange.on_disconnect = None

    def _stream(self, chunks: Iterator[bytes], output_format: str) -> None:
        first = next(chunks, b"")
        packer = self._start(output_format, Statistics(), is_stream=True)
        try:
            for chunk in itertools.chain([first], chunks):
                self._send_body(packer.pack(chunk) if packer else chunk)
        except EngineError as error:
            self._break_off(error, packer)
            return
        self._send_body(packer.finish() if packer else b"", more=False)

    def _answer(self, body: bytes, statistics: Statistics, output_format: str) -> None:
        packer = self._start(output_format, statistics)
        self._send_body(packer.pack(body) + packer.finish() if packer else body, more=False)

    def _start(
        self, output_format: str, statistics: Statistics, *, is_stream: bool = False
    ) -> Packer | None:
        headers = reply.answer_headers(
            self._query.query_id, output_format, self._facts.timezone, self._facts.name
        )
        headers["X-ClickHouse-Summary"] = reply.summary(statistics)
        if is_stream:
            self._tag = secrets.token_hex(8)
            headers["X-ClickHouse-Exception-Tag"] = self._tag
        if self._query.wants_blocks:
            self._send_start(200, headers)
            return BlockPacker()
        packed = packer_for(self._query.accepted_encodings)
        if packed:
            headers["Content-Encoding"] = packed[0]
        self._send_start(200, headers)
        return packed[1] if packed else None

    def _break_off(self, error: EngineError, packer: Packer | None) -> None:
        """Tell of an error when part of the answer has been sent, as servers since 25.11 do."""
        message = reply.error_text(error, self._facts.version).encode()
        tag = self._tag.encode()
        block = b"__exception__\r\n%s\r\n%s%d %s\r\n__exception__\r\n"
        block %= (tag, message, len(message), tag)
        self._send_body((packer.pack(block) + packer.finish()) if packer else block)
        # Without a proper end no client takes the part for the whole.
        self._exchange.send({"type": ABORT})

    def _fail(self, error: EngineError) -> None:
        if self._is_started:
            self._exchange.send({"type": ABORT})
            return
        headers = reply.answer_headers(
            self._query.query_id, "TabSeparated", self._facts.timezone, self._facts.name
        )
        self._send_start(reply.status_of(error), {**headers, **reply.error_headers(error)})
        text = reply.error_text(error, self._facts.version).encode()
        # A client that asked for blocks reads an error as blocks too.
        self._send_body(BlockPacker().pack(text) if self._query.wants_blocks else text, more=False)

    def _send_start(self, status: int, headers: dict[str, str]) -> None:
        self._is_started = True
        # A line's end in what the client itself named, such as query_id, would end the header.
        clean = {key: _CONTROL.sub("?", value) for key, value in headers.items()}
        pairs = [(key.lower().encode(), value.encode()) for key, value in clean.items()]
        self._exchange.send({"type": "http.response.start", "status": status, "headers": pairs})

    def _send_body(self, body: bytes, *, more: bool = True) -> None:
        if body or not more:
            self._exchange.send({"type": "http.response.body", "body": body, "more_body": more})


def _head(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The beginning of a body, as much as tells what it is, and the rest."""
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= _HEAD_BYTES:
            break
    return head, pieces


def _whole(head: bytes, pieces: Iterator[bytes]) -> bytes:
    parts, total = [head], len(head)
    for piece in pieces:
        total += len(piece)
        if total > MAX_STATEMENT_BYTES:
            raise EngineError(
                62,
                f"DB::Exception: The statement is larger than {MAX_STATEMENT_BYTES} bytes. "
                "(SYNTAX_ERROR)",
            )
        parts.append(piece)
    return b"".join(parts)
