"""Exchange: one HTTP request between the event loop and the thread that runs its statement.

Pipeline: client <-> [exchange] <-> ClickHouse interface -> engine
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

from starlette.responses import PlainTextResponse

Message = dict[str, Any]
ABORT = "ragotel.abort"
"""Type of the message after which an answer ends without its proper end."""
_DEPTH = 4
_CANCEL_EVERY_S = 0.2
BODY_IDLE_S = 30.0
"""So long a client may leave its body unfinished without sending a piece."""
_END = b""


class DisconnectedError(Exception):
    """The client has gone; whatever is still to be sent has no reader."""


class Exchange:
    """Body pieces in, ASGI messages out, both with back-pressure.

    `chunks` and `send` are called by the thread, everything else by the event loop.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._inbox: asyncio.Queue[bytes | None] = asyncio.Queue(_DEPTH)
        self._outbox: asyncio.Queue[Message | None] = asyncio.Queue(_DEPTH)
        self._is_ready = asyncio.Event()
        self._gone = threading.Event()
        self._ended = threading.Event()
        self.on_disconnect: Callable[[], None] | None = None
        """Called (by a thread of its own) when the client goes before its answer is whole.

        Called again until the work ends: a statement that has only just begun cannot be found.
        """

    def chunks(self) -> Iterator[bytes]:
        """The pieces of the body."""
        while True:
            try:
                chunk = self._call(asyncio.wait_for(self._inbox.get(), BODY_IDLE_S))
            except (TimeoutError, asyncio.TimeoutError, FutureTimeoutError):
                self._loop.call_soon_threadsafe(self._leave)
                raise DisconnectedError from None
            if chunk is None:
                raise DisconnectedError
            if chunk == _END:
                return
            yield chunk

    def check(self) -> None:
        """Raise DisconnectedError where nobody waits for the answer any more."""
        if self._gone.is_set():
            raise DisconnectedError

    def send(self, message: Message) -> None:
        """Pass an ASGI message to the client; waits while the client is slow."""
        self._call(self._outbox.put(message))

    def _call(self, coroutine: Any) -> Any:
        if self._gone.is_set():
            coroutine.close()
            raise DisconnectedError
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def run(self, pool: Executor, work: Callable[[], None], receive: Any, send: Any) -> None:
        """Do *work* in *pool* and carry everything to and fro until it has ended."""
        feeding = asyncio.ensure_future(self._feed(receive))
        try:
            # A body that does not come must not hold one of the few threads.
            await asyncio.wait_for(self._is_ready.wait(), BODY_IDLE_S)
        except (TimeoutError, asyncio.TimeoutError):
            feeding.cancel()
            await PlainTextResponse("The body did not arrive in time.\n", 408)(
                {"type": "http"}, receive, send
            )
            return
        except asyncio.CancelledError:
            feeding.cancel()
            raise
        working = asyncio.ensure_future(self._loop.run_in_executor(pool, self._worked(work)))
        try:
            while (message := await self._outbox.get()) is not None:
                try:
                    await send(message)
                except OSError:
                    self._leave()
        except asyncio.CancelledError:
            self._leave()
            raise
        finally:
            feeding.cancel()
        await working

    def _worked(self, work: Callable[[], None]) -> Callable[[], None]:
        def whole() -> None:
            try:
                with contextlib.suppress(DisconnectedError):
                    work()
            finally:
                self._ended.set()
                self._loop.call_soon_threadsafe(asyncio.ensure_future, self._outbox.put(None))

        return whole

    async def _feed(self, receive: Any) -> None:
        is_whole = False
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self._leave()
                return
            if is_whole:
                continue
            if body := message.get("body", b""):
                if self._inbox.full():
                    self._is_ready.set()
                await self._inbox.put(body)
            if not message.get("more_body", False):
                is_whole = True
                self._is_ready.set()
                await self._inbox.put(_END)

    def _leave(self) -> None:
        if self._gone.is_set():
            return
        self._gone.set()
        self._is_ready.set()
        # Whoever waits for room or for the body is let go.
        for queue in (self._outbox, self._inbox):
            while not queue.empty():
                queue.get_nowait()
        self._inbox.put_nowait(None)
        threading.Thread(target=self._cancel, daemon=True).start()

    def _cancel(self) -> None:
        is_first = True
        while is_first or not self._ended.wait(_CANCEL_EVERY_S):
            is_first = False
            cancel = self.on_disconnect
            if cancel is not None:
                with contextlib.suppress(Exception):
                    cancel()
