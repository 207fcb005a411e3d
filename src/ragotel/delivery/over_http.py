"""OTLP over HTTP: one kept connection, POST of protobuf, gzip.

Pipeline: worker -> [over_http] -> receiver

Source: https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

from __future__ import annotations

import base64
import http.client
import io
import math
import socket
import ssl
import time
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from ragotel.delivery.otlp import Envelope
from ragotel.delivery.partial import read_partial_success
from ragotel.delivery.transport import Answer, OtlpCodec
from ragotel.settings import Settings

_RETRYABLE = frozenset({408, 429, 502, 503, 504})
_ANSWER_BYTES = 64 * 1024


class HttpTransport(OtlpCodec):
    """Sends with the standard library, so that nothing else has to be installed or instrumented."""

    can_close_after_fork = True

    def __init__(self, settings: Settings, envelope: Envelope) -> None:
        super().__init__(settings, envelope)
        self.sends_gzip = self._gzip
        self._connect_s = max(0.5, settings.exit_timeout_s / 2) if settings.spool else float("inf")
        """With a spool nothing is lost by giving up soon, and the end of the process may wait."""
        self._url = urlsplit(settings.endpoint)
        self._certificate = settings.certificate
        self._path = (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")
        self._target = self._path
        self._headers: dict[str, str] = {
            "Content-Type": "application/x-protobuf",
            "User-Agent": "ragotel",
            **({"Content-Encoding": "gzip"} if self._gzip else {}),
            **_credentials(self._url.username, self._url.password),
            **settings.headers,
        }
        self._proxy_headers: dict[str, str] = {}
        self._connection: http.client.HTTPConnection | None = None

    def send(self, message: bytes, timeout_s: float) -> Answer:
        is_kept = self._connection is not None
        try:
            return self._post(message, timeout_s)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            # A receiver may close a kept connection at any moment: that alone is no failure.
            if is_kept and not isinstance(error, TimeoutError):
                try:
                    return self._post(message, timeout_s)
                except (OSError, http.client.HTTPException) as again:
                    self.close()
                    error = again
            return Answer("retry", f"{self._url.hostname}: {type(error).__name__}: {error}")

    def _post(self, message: bytes, timeout_s: float) -> Answer:
        connection = self._connection
        if connection is None:
            connection = self._connection = self._connect(min(timeout_s, self._connect_s))
        until = time.monotonic() + timeout_s
        connection.timeout = timeout_s
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        headers = {**self._headers, **self._proxy_headers}
        connection.request("POST", self._target, message, headers)
        connection.response_class = partial(_TimedResponse, until)  # type: ignore[assignment]
        response = connection.getresponse()
        body = response.read(_ANSWER_BYTES)
        if response.will_close or not response.isclosed():
            self.close()
        told_s = retry_after_s(response.getheader("Retry-After"), response.getheader("Date"))
        return _answer(response.status, told_s, body, response.getheader("Location"))

    def _connect(self, timeout_s: float) -> http.client.HTTPConnection:
        url, host = self._url, self._url.hostname or "localhost"
        is_tls = url.scheme == "https"
        port = url.port or (443 if is_tls else 80)
        proxy = None if proxy_bypass(host) else getproxies().get(url.scheme)
        through = urlsplit(proxy if "://" in proxy else f"http://{proxy}") if proxy else None
        at = (through.hostname or host, through.port or 80) if through else (host, port)
        connection: http.client.HTTPConnection
        if is_tls:
            context = ssl.create_default_context(cafile=self._certificate)
            connection = http.client.HTTPSConnection(*at, timeout=timeout_s, context=context)
        else:
            connection = http.client.HTTPConnection(*at, timeout=timeout_s)
        self._target, self._proxy_headers = self._path, {}
        if through:
            credentials = _credentials(through.username, through.password, "Proxy-Authorization")
            if is_tls:
                connection.set_tunnel(host, port, credentials)
            else:
                # Proxies keep tunnels for TLS, and refuse one to any other port.
                self._target = f"http://{url.netloc.rpartition('@')[2]}{self._path}"
                self._proxy_headers = credentials
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def interrupt(self) -> None:
        connection = self._connection
        wire = connection.sock if connection is not None else None
        if wire is not None:
            with suppress(OSError):
                wire.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class _TimedResponse(http.client.HTTPResponse):
    """An answer that must be whole by a time: one byte after the other would never time out."""

    def __init__(self, until: float, sock: socket.socket, *args: Any, **keywords: Any) -> None:
        super().__init__(_TimedSocket(sock, until), *args, **keywords)  # type: ignore[arg-type]


class _TimedSocket:
    """What an answer asks of its socket."""

    def __init__(self, sock: socket.socket, until: float) -> None:
        self._sock = sock
        self._until = until

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._sock, self._until))


class _TimedReader(io.RawIOBase):
    def __init__(self, sock: socket.socket, until: float) -> None:
        self._sock = sock
        self._until = until
        # The socket's own file keeps it open until the answer is read.
        self._file = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._until - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the answer did not end in time")
        self._sock.settimeout(left_s)
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


def _credentials(
    user: str | None, password: str | None, header: str = "Authorization"
) -> dict[str, str]:
    if user is None:
        return {}
    pair = f"{unquote(user)}:{unquote(password or '')}".encode()
    return {header: f"Basic {base64.b64encode(pair).decode()}"}


def _answer(status: int, told_s: float | None, body: bytes, location: str | None) -> Answer:
    if 200 <= status < 300:
        rejected, words = read_partial_success(body)
        return Answer("ok", words, rejected)
    words = body[:200].decode("utf-8", "replace").strip()
    detail = f"HTTP {status} {words}".strip()
    if location and 300 <= status < 400:
        # Not followed: what is sent goes where it was told to go, and nowhere else.
        detail = f"{detail}; it points to {location}, name that as endpoint"
    if status == 413:
        return Answer("too_large", detail)
    if status in _RETRYABLE:
        return Answer("retry", detail, retry_after_s=told_s)
    # Beyond the specification, which never retries these: gateways give them in a restart.
    return Answer("doubtful" if status >= 500 else "refused", detail)


def retry_after_s(text: str | None, date: str | None) -> float | None:
    """Read Retry-After: seconds, or a date, which counts from the answer's own *date*.

    This machine's clock may have jumped, or never have been right; None: there is nothing to read.
    """
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            now_s = parsedate_to_datetime(date).timestamp() if date else time.time()
            seconds = parsedate_to_datetime(text).timestamp() - now_s
        except (TypeError, ValueError):
            return None
    return seconds if math.isfinite(seconds) else None
