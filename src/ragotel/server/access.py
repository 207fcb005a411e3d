"""Access: who may speak to the server, and from where.

Pipeline: client -> [access] -> OTLP receivers | ClickHouse HTTP interface
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from ragotel.errors import ConfigurationError


def check_binding(host: str, token: str) -> None:
    """Refuse to listen beyond this machine without a token.

    Raises:
        ConfigurationError: *host* is no loopback address and *token* is empty.
    """
    if not token and not is_loopback(host):
        raise ConfigurationError(
            f"Listening on {host} lets others in; give --token (or RAGOTEL_TOKEN), "
            "or listen on 127.0.0.1."
        )


def check_reader_token(token: str, reader_token: str) -> None:
    """Refuse a reader's token that would keep nobody from writing.

    Raises:
        ConfigurationError: There is no *token*, or both are the same.
    """
    if reader_token and not token:
        raise ConfigurationError(
            "--reader-token alone would let everybody else write; give --token too."
        )
    if reader_token and reader_token == token:
        raise ConfigurationError("--reader-token must differ from --token.")


def is_loopback(host: str) -> bool:
    """Whether *host*, a name or an address, can only be reached from this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Access:
    """Checks each request against the server's tokens ('' for none)."""

    def __init__(self, token: str, reader_token: str = "") -> None:
        self._token = token.encode()
        self._reader_token = reader_token.encode()

    def is_allowed(self, *offered: str) -> bool:
        """Whether one of the *offered* secrets is the token; compared in constant time."""
        return not self._token or _is_among(self._token, offered)

    def is_reader(self, *offered: str) -> bool:
        """Whether one of the *offered* secrets lets its bearer read, and nothing else."""
        return bool(self._reader_token) and _is_among(self._reader_token, offered)

    def refusal(self, headers: Mapping[str, str]) -> str:
        """Why a request from a browser must not be answered; '' where it may be.

        Without a token any page that a browser on this machine shows could otherwise send
        statements to the server, by itself or under a host name that it has rebound.
        """
        origin, host = headers.get("origin", ""), headers.get("host", "")
        try:
            origin_host, name = urlsplit(origin).netloc, urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return f"the host name {host!r} or the origin {origin!r} is none"
        if origin and origin_host != host:
            return f"pages of {origin} may not ask this server"
        if not self._token and host and not is_loopback(name):
            return f"this server does not answer for the host name {host!r}"
        return ""


def _is_among(token: bytes, offered: tuple[str, ...]) -> bool:
    matches = [hmac.compare_digest(secret.encode(), token) for secret in offered]
    return any(matches)


def secrets_in(headers: Mapping[str, str], parameters: Mapping[str, str]) -> list[str]:
    """All that a client of the ClickHouse interface may offer as password."""
    found = [headers.get("x-clickhouse-key", ""), parameters.get("password", "")]
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        found.append(value.strip())
    elif scheme.lower() == "basic":
        try:
            pair = base64.b64decode(value, validate=True).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            pair = ""
        found.append(pair.partition(":")[2])
    return [secret for secret in found if secret]
