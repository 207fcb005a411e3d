"""A receiver with faults in front of a real one: refuses, hangs, is slow, or answers as it is told.

What it does not answer itself it hands on, and gives the real answer back.
"""

from __future__ import annotations

import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from receiver import Receiver, Reply, http_receiver

_HANDED_ON = ("content-type", "content-encoding")
_UPSTREAM_S = 120.0


class Gate(Receiver):
    """Stands on one port for as long as a run lasts; `reply` decides on each message."""

    def __init__(self, upstream: str) -> None:
        super().__init__()
        self._upstream = upstream
        self._listening = ExitStack()
        self.port = 0
        self.open()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def open(self) -> None:
        self.released = threading.Event()
        url = self._listening.enter_context(http_receiver(self, self.port))
        self.port = int(url.rsplit(":", 1)[1])

    def close(self) -> None:
        """Stop to listen, and break every connection."""
        self._listening.close()

    def take(self, raw: bytes, headers: dict[str, str]) -> Reply:
        released = self.released
        with self.changed:
            self.messages += 1
            reply = self.reply(self.messages)
        released.wait(reply.delay_s)
        return reply if reply.status != 200 else self._hand_on(raw, headers)

    def _hand_on(self, raw: bytes, headers: dict[str, str]) -> Reply:
        kept = {name: headers[name] for name in _HANDED_ON if name in headers}
        request = urllib.request.Request(self._upstream, raw, kept)
        try:
            with urllib.request.urlopen(request, timeout=_UPSTREAM_S) as answer:
                return Reply(answer.status, body=answer.read())
        except urllib.error.HTTPError as error:
            told = {k: v for k, v in error.headers.items() if k == "Retry-After"}
            return Reply(error.code, told, error.read())

    @contextmanager
    def answering(self, reply: Callable[[int], Reply]) -> Iterator[None]:
        """Answer so for a while; what hangs is let go at the end."""
        before, self.reply = self.reply, reply
        try:
            yield
        finally:
            self.reply = before
            hanging, self.released = self.released, threading.Event()
            hanging.set()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Refuse connections for a while."""
        self.close()
        try:
            yield
        finally:
            self.open()
