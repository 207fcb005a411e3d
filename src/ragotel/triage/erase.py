"""Erasure: deletes one user or one request from every table that holds it, and looks again.

Pipeline: person -> [triage] -> otel_traces and the typed tables

The rows are deleted by mutations, which rewrite the parts on the disk: nothing stays behind for a
later merge. The engine keeps the files from before for some minutes; `wait_for_files` has it delete
them. `rag_requests` comes last, so that an erasure that was cut off can be run again.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from ragotel.store import Store
from ragotel.text import content_hash
from ragotel.triage.references import RequestKey

_REQUEST, _TRACE, _SPAN = "request", "trace", "span"
_OF_REQUESTS = (
    *("rag_stages", "rag_prompts", "rag_grades", "rag_complaints", "rag_label_attachments"),
    *("rag_probes", "rag_ablations", "rag_label_decisions"),
)
_ROWS_AT_ONCE = 10_000
_POLL_S = 0.5
_OLD_FILES = (
    "select table, name from system.parts "
    "where database = currentDatabase() and not active and table in {tables:Array(String)}"
)


class Erased(NamedTuple):
    """One table: rows that were found, and rows that are left."""

    table_name: str
    found: int
    left: int


@dataclass(frozen=True)
class Erasure:
    """What an erasure found and left, by table."""

    requests: int
    traces: int
    tables: list[Erased]

    @property
    def left(self) -> int:
        return sum(table.left for table in self.tables)


def keys_of_user(store: Store, user_id: str) -> list[RequestKey]:
    """List the requests of a user, by the name as it is or by its hash (content rule `hashed`)."""
    rows = store.query(
        "select distinct trace_id, request_id from rag_requests "
        "where user_id in {names:Array(String)} order by trace_id, request_id",
        {"names": _names(user_id)},
    ).result_rows
    return [RequestKey(*row) for row in rows]


def _names(user_id: str) -> list[str]:
    return [user_id, content_hash(user_id)]


def erase(
    store: Store,
    keys: Sequence[RequestKey],
    *,
    user_id: str | None = None,
    with_chunks: bool = False,
    is_dry: bool = False,
) -> Erasure:
    """Delete the requests *keys*, and what *user_id* complained about, from every table.

    *with_chunks* also deletes passages that no other request and no manifest names. *is_dry* only
    counts. A trace is deleted whole where all of its requests are; of one that others share, the
    spans below the erased requests are deleted.
    """
    with _listed(store, keys) as listing:
        traces = _list_spans(store, listing)
        conditions = _conditions(listing, user_id)
        if with_chunks:
            chunks = _list_chunks(store, listing)
            conditions = {"rag_chunks": chunks, **conditions}
        parameters = {"names": _names(user_id or "")}
        tables = []
        for table, where in conditions.items():
            count = f"select count() from {table} where {where}"  # noqa: S608 (values are bound)
            found = int(store.scalar(count, parameters))
            if found and not is_dry:
                store.command(
                    f"alter table {table} delete where {where} settings mutations_sync = 2",
                    parameters,
                )
            left = found if is_dry or not found else int(store.scalar(count, parameters))
            tables.append(Erased(table, found, left))
    return Erasure(len(keys), traces, tables)


def wait_for_files(store: Store, tables: Sequence[str], timeout_s: float = 180.0) -> int:
    """Have the engine delete the files that its tables' rows were in before; the number left.

    It looks for such files every half a minute or so. Files that become old meanwhile, as merges
    make them, are not waited for.
    """
    parameters = {"tables": list(tables)}
    old = set(store.query(_OLD_FILES, parameters).result_rows)
    waited = sorted({table for table, _ in old})
    try:
        for table in waited:
            store.command(f"alter table {table} modify setting old_parts_lifetime = 0")
        until = time.monotonic() + timeout_s
        while old and time.monotonic() < until:
            time.sleep(_POLL_S)
            old &= set(store.query(_OLD_FILES, parameters).result_rows)
    finally:
        for table in waited:
            store.command(f"alter table {table} reset setting old_parts_lifetime")
    return len(old)


@contextmanager
def _listed(store: Store, keys: Sequence[RequestKey]) -> Iterator[str]:
    """Keep *keys* in a table of their own: a busy user's do not fit into a statement."""
    listing = f"rag_erase_{secrets.token_hex(8)}"
    store.command(
        f"create table {listing} (kind String, trace_id String, id String) engine = Memory"
    )
    try:
        _list(store, listing, [(_REQUEST, *key) for key in keys])
        yield listing
    finally:
        store.command(f"drop table if exists {listing}")


def _list(store: Store, listing: str, rows: Sequence[tuple[str, str, str]]) -> None:
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        store.insert(listing, rows[start : start + _ROWS_AT_ONCE], ("kind", "trace_id", "id"))


def _list_spans(store: Store, listing: str) -> int:
    """List the traces that go as a whole, and the spans that go of others; the number of traces."""
    traces = store.query(
        "select trace_id, countIf((trace_id, request_id) not in "  # noqa: S608 (our own table)
        f"(select trace_id, id from {listing} where kind = 'request')) as others\n"
        "from (select distinct trace_id, request_id from rag_requests\n"
        f"    where trace_id in (select trace_id from {listing})\n"
        f"    union distinct select trace_id, id from {listing})\n"
        "where trace_id != ''\ngroup by trace_id"
    ).result_rows
    whole = [trace_id for trace_id, others in traces if not others]
    shared = [trace_id for trace_id, others in traces if others]
    _list(store, listing, [(_TRACE, trace_id, "") for trace_id in whole])
    if shared:
        _list(store, listing, list(_spans_below(store, listing)))
    return len(traces)


def _spans_below(store: Store, listing: str) -> Iterator[tuple[str, str, str]]:
    """Find the spans of shared traces whose nearest request above is to be erased."""
    of_shared = (
        f"in (select trace_id from {listing} where kind = 'request') and trace not in "  # noqa: S608
        f"(select trace_id from {listing} where kind = 'trace')"
    )
    roots = {
        (trace, span): bool(is_erased)
        for trace, span, is_erased in store.query(
            "select trace_id as trace, span_id, max((trace_id, request_id) in "  # noqa: S608
            f"(select trace_id, id from {listing} where kind = 'request'))\n"
            f"from rag_requests where trace {of_shared} group by trace, span_id"
        ).result_rows
    }
    spans = store.query(
        "select TraceId as trace, SpanId, ParentSpanId, (TraceId, "  # noqa: S608
        "SpanAttributes['rag.request.id']) in "
        f"(select trace_id, id from {listing} where kind = 'request')\n"
        f"from otel_traces where trace {of_shared}"
    ).result_rows
    parents = {(trace, span): parent for trace, span, parent, _ in spans}
    for trace, span, _, is_named in spans:
        at, seen = span, set()
        while (trace, at) not in roots and (trace, at) in parents and at not in seen:
            seen.add(at)
            at = parents[trace, at]
        if is_named or roots.get((trace, at), False):
            yield _SPAN, trace, span


def _conditions(listing: str, user_id: str | None) -> dict[str, str]:
    """Give the rows to be deleted, by table, the requests themselves last."""

    def ids(kind: str, columns: str = "trace_id, id") -> str:
        return f"(select {columns} from {listing} where kind = '{kind}')"  # noqa: S608

    of_requests = (
        f"((trace_id, request_id) in {ids(_REQUEST)}"
        f" or trace_id in {ids(_TRACE, 'trace_id')}"
        f" or (trace_id = '' and request_id in {ids(_REQUEST, 'id')} and request_id != ''))"
    )
    of_tables = dict.fromkeys(_OF_REQUESTS, of_requests)
    if user_id is not None:
        of_tables["rag_complaints"] += " or reported_by in {names:Array(String)}"
    in_traces = f"TraceId in {ids(_TRACE, 'trace_id')}"
    return {
        "otel_traces": f"{in_traces} or (TraceId, SpanId) in {ids(_SPAN)}",
        "otel_traces_trace_id_ts": in_traces,
        **of_tables,
        "rag_requests": of_requests,
    }


def _list_chunks(store: Store, listing: str) -> str:
    """List the passages that only these requests name; the condition that finds them."""
    of_requests = _conditions(listing, None)["rag_stages"]
    shas = store.query(
        "select distinct arrayJoin(candidate_shas) as sha from rag_stages "  # noqa: S608
        f"where {of_requests}\n"
        f"except select arrayJoin(candidate_shas) from rag_stages where not ({of_requests})\n"
        "except select chunk_sha from rag_index_chunks"
    ).result_rows
    _list(store, listing, [("chunk", "", sha) for (sha,) in shas if sha])
    return f"chunk_sha in (select id from {listing} where kind = 'chunk')"  # noqa: S608
