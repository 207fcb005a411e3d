"""Sessions: handles that live on between requests, for clients that say SET or USE.

Pipeline: ClickHouse interface -> [sessions] -> engine
Most clients name a session and never leave anything in it; those get a fresh handle each time.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from ragotel.store.handles import Engine, EngineError, Handle

IDLE_S = 600.0
MAX_SESSIONS = 200
_PATIENCE_S = 10.0


@dataclass
class _Session:
    handle: Handle
    lock: threading.Lock = field(default_factory=threading.Lock)
    used_at: float = field(default_factory=time.monotonic)


class Sessions:
    """All sessions of the server; safe to share."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sessions: dict[str, _Session] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def handle(
        self, session_id: str, database: str, settings: dict[str, str], *, keeps: bool
    ) -> Iterator[Handle]:
        """A handle with *settings*: the session's if it has one or *keeps* state, else a fresh one.

        Raises:
            EngineError: A setting or the database is unknown, or the session is busy.
        """
        session = self._find(session_id, create=keeps) if session_id else None
        if session is None:
            with self._engine.handle(database, settings) as handle:
                yield handle
            return
        if not session.lock.acquire(timeout=_PATIENCE_S):
            raise EngineError(
                373, f"DB::Exception: Session {session_id} is locked. (SESSION_IS_LOCKED)"
            )
        try:
            with _lent(session.handle, database, settings) as handle:
                yield handle
        finally:
            session.used_at = time.monotonic()
            session.lock.release()

    def close(self) -> None:
        with self._lock:
            for session in self._sessions.values():
                session.handle.close()
            self._sessions.clear()

    def _find(self, session_id: str, *, create: bool) -> _Session | None:
        with self._lock:
            self._forget_old()
            session = self._sessions.get(session_id)
            if session is None and create:
                session = self._sessions[session_id] = _Session(self._engine.handle())
            if session is not None:
                session.used_at = time.monotonic()
            return session

    def _forget_old(self) -> None:
        before = time.monotonic() - IDLE_S
        by_age = sorted(self._sessions.items(), key=lambda item: item[1].used_at)
        for at, (session_id, session) in enumerate(by_age):
            is_surplus = len(by_age) - at >= MAX_SESSIONS
            if (session.used_at < before or is_surplus) and session.lock.acquire(blocking=False):
                session.handle.close()
                del self._sessions[session_id]


@contextlib.contextmanager
def _lent(handle: Handle, database: str, settings: dict[str, str]) -> Iterator[Handle]:
    """The session's handle with the settings of one request, which are set back afterwards."""
    plain = [name for name in settings if not name.startswith("param_")]
    before = handle.settings(plain)
    try:
        if database:
            handle.use(database)
        handle.set(settings)
        yield handle
    finally:
        with contextlib.suppress(EngineError):
            handle.set(before)
