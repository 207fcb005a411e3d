"""References: from what a person holds (a trace id, a request id, a beginning of one) to a request.

Pipeline: rag_requests -> [triage] -> cli | server
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ragotel.errors import InputError, NotFoundError
from ragotel.store import Store

SHORTEST_PREFIX = 6
_IDS_PER_QUERY = 300
_SHOWN_STRANGERS = 5
"""A query's parameters travel in its URL, which servers cut at 64 KB."""


class RequestKey(NamedTuple):
    """What every view joins on; either part is '' where it is not known."""

    trace_id: str
    request_id: str


def resolve_request(store: Store, reference: str) -> RequestKey:
    """The one request that *reference* means: a trace or request id, or how one begins.

    Raises:
        NotFoundError: No request has it.
        InputError: It is too short, or several requests have it; the message names them.
    """
    reference = reference.strip()
    if not reference:
        raise InputError("An empty reference names no request.")
    for column, value in _readings(reference):
        found = _matching(store, f"{column} = {{reference:String}}", value)
        if found:
            return _only(reference, found)
    if len(reference) < SHORTEST_PREFIX:
        raise NotFoundError(
            f"No request has the id {reference!r}; the beginning of an id "
            f"needs {SHORTEST_PREFIX} characters."
        )
    found = _matching(
        store,
        "startsWith(trace_id, lower({reference:String})) or "
        " startsWith(request_id, {reference:String})",
        reference,
    )
    if not found:
        raise NotFoundError(
            f"No request has the trace or request id {reference!r}, "
            "or one that begins so; `ragotel find` looks for user, day and words."
        )
    return _only(reference, found)


def _readings(reference: str) -> Iterator[tuple[str, str]]:
    yield "request_id", reference
    yield "trace_id", reference
    if reference.lower() != reference:
        yield "trace_id", reference.lower()


def _matching(store: Store, where: str, reference: str) -> list[RequestKey]:
    """Requests like that; of one whose own span never arrived, the stages will do."""
    for table in ("rag_requests", "rag_stages"):
        is_request = "1" if table == "rag_requests" else "stage != 'ingest'"
        rows = store.query(
            f"select distinct trace_id, request_id from {table}\n"  # noqa: S608 (values are bound)
            f"where ({where}) and {is_request} limit 6",
            {"reference": reference},
        ).result_rows
        if rows:
            return [RequestKey(*row) for row in rows]
    return []


def _only(reference: str, found: Sequence[RequestKey]) -> RequestKey:
    if len(found) == 1:
        return found[0]
    names = ", ".join(key.request_id or key.trace_id for key in found[:5])
    more = ", ..." if len(found) > 5 else ""
    raise InputError(f"{reference!r} means several requests: {names}{more}. Give one request id.")


def complete_references(store: Store, given: Sequence[RequestKey]) -> list[RequestKey]:
    """Each of *given* with its missing half, where exactly one request has the other half.

    What is not found stays as it was given: the request may arrive later, and the views match
    a reference that has one half only.
    """
    traces = {key.trace_id for key in given if key.trace_id and not key.request_id}
    requests = {key.request_id for key in given if key.request_id and not key.trace_id}
    # A person may hand over a request id where the file says trace_id, or the reverse.
    by_trace = _unique(store, "trace_id", traces | requests)
    by_request = _unique(store, "request_id", traces | requests)
    return [_completed(key, by_trace, by_request) for key in given]


def _completed(
    key: RequestKey, by_trace: dict[str, RequestKey], by_request: dict[str, RequestKey]
) -> RequestKey:
    if key.trace_id and key.request_id:
        return key
    if key.trace_id:
        return by_trace.get(key.trace_id) or by_request.get(key.trace_id) or key
    return by_request.get(key.request_id) or by_trace.get(key.request_id) or key


def _unique(store: Store, column: str, values: Iterable[str]) -> dict[str, RequestKey]:
    found: dict[str, list[RequestKey]] = {}
    for part in _parts(sorted(values)):
        rows: Sequence[Sequence[Any]] = store.query(
            f"select distinct trace_id, request_id from rag_requests "  # noqa: S608
            f"where {column} in {{ids:Array(String)}}",
            {"ids": part},
        ).result_rows
        for row in rows:
            key = RequestKey(*row)
            found.setdefault(getattr(key, column), []).append(key)
    return {value: keys[0] for value, keys in found.items() if len(keys) == 1}


def strangers(store: Store, sql: str, values: Iterable[str]) -> list[str]:
    """Those of *values* that no cell of *sql*, asked for them as `{ids:Array(String)}`, has."""
    wanted = sorted({value for value in values if value})
    known: set[str] = set()
    for part in _parts(wanted):
        rows = store.query(sql, {"ids": part}).result_rows
        known.update(cell for row in rows for cell in row)
    return [value for value in wanted if value not in known]


def strange_requests(store: Store, keys: Iterable[RequestKey], things: str) -> list[str]:
    """A note on the requests of *keys* that are not there (yet): their ids may be mistyped."""
    names = strangers(
        store,
        "select trace_id, request_id from rag_requests\n"
        "where trace_id in {ids:Array(String)} or request_id in {ids:Array(String)}",
        (key.request_id or key.trace_id for key in keys),
    )
    return [not_there("request", names, things)] if names else []


def not_there(kind: str, names: Sequence[str], things: str) -> str:
    """Which things of a *kind* the store lacks; *things* were loaded for them all the same."""
    more = ", ..." if len(names) > _SHOWN_STRANGERS else ""
    shown = ", ".join(names[:_SHOWN_STRANGERS])
    return f"Not in the store: {kind} {shown}{more}; such {things} count once it is"


def _parts(values: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(values), _IDS_PER_QUERY):
        yield values[start : start + _IDS_PER_QUERY]
