"""ClickHouse request: what a client asks through URL, headers and body, in one place.

Pipeline: clickhouse-connect | curl | rotel -> [request] -> ClickHouse interface -> engine
Source: ClickHouse, "HTTP Interface".
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

MAX_QUERY_SECONDS = "300"
"""A read ends after this time unless its client sets max_execution_time itself."""

# Consumed by the interface, or without meaning here; everything else in the URL is a setting.
_OWN = frozenset(
    # Split, for one name a line would be forty lines.
    """add_http_cors_header buffer_size client_protocol_version close_session compress database
    decompress default_format enable_http_compression http_headers_progress_interval_ms
    http_zlib_compression_level log_comment password query query_id quota_key readonly role
    send_progress_in_http_headers session_check session_id session_timeout stacktrace user
    wait_end_of_query cancel_http_readonly_queries_on_client_close""".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class QueryRequest:
    """One request to the ClickHouse interface, without its body."""

    url_query: str
    database: str
    default_format: str
    query_id: str
    session_id: str
    is_read_only: bool
    body_encoding: str
    body_in_blocks: bool
    wants_blocks: bool
    waits_for_end: bool
    accepted_encodings: str
    content_type: str = ""
    revision: int = 0
    settings: dict[str, str] = field(default_factory=dict)


def read_request(
    method: str, parameters: Mapping[str, str], headers: Mapping[str, str]
) -> QueryRequest:
    """Gather what *parameters* (of the URL) and *headers* (lower-case keys) say."""
    packs = parameters.get("enable_http_compression", "0") not in ("0", "false", "")
    return QueryRequest(
        url_query=parameters.get("query", ""),
        database=parameters.get("database") or headers.get("x-clickhouse-database", ""),
        default_format=parameters.get("default_format")
        or headers.get("x-clickhouse-format")
        or "TabSeparated",
        query_id=parameters.get("query_id") or str(uuid.uuid4()),
        session_id=parameters.get("session_id", ""),
        is_read_only=method != "POST" or parameters.get("readonly", "0") not in ("0", ""),
        body_encoding=headers.get("content-encoding", "").strip().lower(),
        body_in_blocks=parameters.get("decompress", "0") == "1",
        wants_blocks=parameters.get("compress", "0") == "1",
        waits_for_end=parameters.get("wait_end_of_query", "0") in ("1", "true"),
        accepted_encodings=headers.get("accept-encoding", "") if packs else "",
        content_type=headers.get("content-type", ""),
        revision=_number(parameters.get("client_protocol_version", "")),
        settings=settings_in(parameters),
    )


def for_reader(query: QueryRequest) -> QueryRequest:
    """The same request from somebody who may only read.

    It gets no session: what the engine holds read-only stays so, and could not be lent again.
    """
    settings = {**query.settings, "readonly": "2"}
    return replace(query, is_read_only=True, session_id="", settings=settings)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() else 0


def settings_in(parameters: Mapping[str, str]) -> dict[str, str]:
    """What of *parameters* goes to the engine: settings and `param_...`."""
    return {key: value for key, value in parameters.items() if key not in _OWN}
