"""ClickHouse reply: status, headers and wording of answers and errors, as a server gives them.

Pipeline: engine -> ClickHouse interface -> [reply] -> client
"""

from __future__ import annotations

import json

from ragotel.store.handles import EngineError, Statistics

_BAD_REQUEST = {
    *(6, 7, 8, 25, 26, 27, 36, 38, 41, 43, 44, 53, 62, 69, 70, 72, 80, 117, 130, 131, 167, 168),
    *(321, 349, 386, 456, 457),
}
_NOT_FOUND = {16, 46, 47, 50, 56, 60, 63, 73, 81, 92, 109, 115, 155, 284, 331, 336, 373}
_STATUS = {
    **dict.fromkeys(_BAD_REQUEST, 400),
    **dict.fromkeys(_NOT_FOUND, 404),
    48: 501,
    159: 408,
    192: 403,
    193: 403,
    194: 401,
    202: 503,
    209: 408,
    210: 503,
    241: 500,
    497: 403,
    516: 403,
}
_CONTENT_TYPES = {
    "CSV": "text/csv; charset=UTF-8; header=absent",
    "CSVWithNames": "text/csv; charset=UTF-8; header=present",
    "JSON": "application/json; charset=UTF-8",
    "JSONCompact": "application/json; charset=UTF-8",
    "JSONStrings": "application/json; charset=UTF-8",
    "JSONColumns": "application/json; charset=UTF-8",
    "JSONEachRow": "application/x-ndjson; charset=UTF-8",
    "JSONCompactEachRow": "application/x-ndjson; charset=UTF-8",
    "TabSeparated": "text/tab-separated-values; charset=UTF-8",
    "TSV": "text/tab-separated-values; charset=UTF-8",
    "TabSeparatedWithNames": "text/tab-separated-values; charset=UTF-8",
    "TabSeparatedWithNamesAndTypes": "text/tab-separated-values; charset=UTF-8",
    "XML": "application/xml; charset=UTF-8",
    "Native": "application/octet-stream",
    "RowBinary": "application/octet-stream",
    "RowBinaryWithNamesAndTypes": "application/octet-stream",
    "Arrow": "application/octet-stream",
    "ArrowStream": "application/octet-stream",
    "Parquet": "application/octet-stream",
}

AUTHENTICATION_FAILED = EngineError(
    516,
    "DB::Exception: Authentication failed: password is incorrect, or there is no user with such "
    "name. (AUTHENTICATION_FAILED)",
)
READ_ONLY = EngineError(
    164,
    "DB::Exception: Cannot execute query in readonly mode. For queries over HTTP, method GET "
    "implies readonly. You should use method POST for modifying queries. (READONLY)",
)


def refused(message: str) -> EngineError:
    """An error for what this interface does not let through."""
    return EngineError(497, f"DB::Exception: {message} (ACCESS_DENIED)")


def status_of(error: EngineError) -> int:
    return _STATUS.get(error.code, 500)


def error_text(error: EngineError, version: str) -> str:
    """One line, as a ClickHouse server words it."""
    return f"Code: {error.code}. {error} (version {version} (official build))\n"


def error_headers(error: EngineError) -> dict[str, str]:
    return {
        "X-ClickHouse-Exception-Code": str(error.code),
        "Content-Type": "text/plain; charset=UTF-8",
    }


def answer_headers(query_id: str, output_format: str, timezone: str, server: str) -> dict[str, str]:
    return {
        "Content-Type": _CONTENT_TYPES.get(output_format, "text/plain; charset=UTF-8"),
        "X-ClickHouse-Server-Display-Name": server,
        "X-ClickHouse-Query-Id": query_id,
        "X-ClickHouse-Format": output_format,
        "X-ClickHouse-Timezone": timezone,
    }


def summary(statistics: Statistics) -> str:
    """The text of X-ClickHouse-Summary."""
    return json.dumps(
        {
            "read_rows": str(statistics.read_rows),
            "read_bytes": str(statistics.read_bytes),
            "written_rows": str(statistics.written_rows),
            "written_bytes": str(statistics.written_bytes),
            "total_rows_to_read": "0",
            "result_rows": str(statistics.written_rows or statistics.read_rows),
            "result_bytes": str(statistics.written_bytes or statistics.read_bytes),
            "elapsed_ns": str(statistics.elapsed_ns),
        },
        separators=(",", ":"),
    )
