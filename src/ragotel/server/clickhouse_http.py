"""ClickHouse HTTP interface: the embedded engine as clickhouse-connect, curl and rotel see it.

Pipeline: views -> engine -> [ClickHouse interface] -> clients
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers, QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from ragotel.server import clickhouse_reply as reply
from ragotel.server.access import Access, secrets_in
from ragotel.server.clickhouse_query import QueryJob, ServerFacts
from ragotel.server.clickhouse_request import for_reader, read_request
from ragotel.server.exchange import ABORT, Exchange
from ragotel.server.sessions import Sessions
from ragotel.store.handles import Engine, EngineError

CANCEL_S = 5.0
"""A statement that is still being planned cannot be cancelled; nobody waits longer for it."""
MAX_STATEMENTS = 24
"""How many run at the same time; further ones wait."""


class ClickHouseInterface:
    """The ASGI endpoint of `/`; `close` after the last request."""

    def __init__(self, engine: Engine, access: Access) -> None:
        self._engine = engine
        self._access = access
        self._sessions = Sessions(engine)
        self._running: set[QueryJob] = set()
        self._pool = ThreadPoolExecutor(MAX_STATEMENTS, thread_name_prefix="ragotel-statement")
        with engine.handle() as handle:
            version = handle.query("select version()").decode().strip()
            timezone = handle.query("select timezone()").decode().strip()
        self.facts = ServerFacts(version=version, timezone=timezone, name="ragotel")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers, parameters = Headers(scope=scope), QueryParams(scope["query_string"])
        refusal, offered = self._access.refusal(headers), secrets_in(headers, parameters)
        error = reply.refused(refusal) if refusal else None
        may_write = self._access.is_allowed(*offered)
        if not may_write and not self._access.is_reader(*offered):
            error = reply.AUTHENTICATION_FAILED
        if error is not None:
            await self._refused(error, offered)(scope, receive, send)
            return
        if scope["method"] in ("GET", "HEAD") and "query" not in parameters:
            await PlainTextResponse("Ok.\n")(scope, receive, send)
            return
        query = read_request(scope["method"], parameters, headers)
        if not may_write:
            query = for_reader(query)
        exchange = Exchange()
        job = QueryJob(query, exchange, self._engine, self._sessions, self.facts)

        async def forward(message: dict[str, Any]) -> None:
            # Not to end an answer is how HTTP says that it is not whole.
            if message["type"] != ABORT:
                await send(message)

        await exchange.run(self._pool, self._counted(job), receive, forward)

    def close(self) -> bool:
        """Cancel what still runs; whether all of it has ended in `CANCEL_S`."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        deadline = time.monotonic() + CANCEL_S
        while self._running and time.monotonic() < deadline:
            self._engine.kill_all()
            time.sleep(0.1)
        if self._running:
            return False
        self._sessions.close()
        return True

    def _counted(self, job: QueryJob) -> Callable[[], None]:
        def run() -> None:
            self._running.add(job)
            try:
                job.run()
            finally:
                self._running.discard(job)

        return run

    def _refused(self, error: EngineError, offered: list[str]) -> Response:
        status = reply.status_of(error)
        headers = reply.error_headers(error)
        if error is reply.AUTHENTICATION_FAILED and not offered:
            status, headers["WWW-Authenticate"] = 401, 'Basic realm="ragotel"'
        return PlainTextResponse(reply.error_text(error, self.facts.version), status, headers)


def clickhouse_app(interface: ClickHouseInterface, access: Access) -> Starlette:
    """The ASGI application of the HTTP port; further routes (a console) may be mounted on it."""

    async def ping(request: Request) -> Response:
        return PlainTextResponse("Ok.\n")

    async def health(request: Request) -> Response:
        facts = interface.facts
        return JSONResponse({"status": "ok", "version": facts.version, "pid": os.getpid()})

    return Starlette(
        routes=[
            Route("/ping", ping),
            Route("/replicas_status", ping),
            Route("/health", health),
            Route("/", interface),
        ]
    )
