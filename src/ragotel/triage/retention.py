"""Retention: deletes what is older than a person allows, but nothing that a verdict rests on.

Pipeline: person -> [triage] -> rag_retention; otel_traces and the typed tables

A request that has a label, a grade, a complaint, an attachment, a probe, an ablation or a decision
is exempt, and with it its whole trace: a table's own TTL could not know that.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from ragotel.errors import InputError
from ragotel.store import Store


@dataclass(frozen=True)
class _Table:
    """A table of a kind: the column of its age, and what exempts a row."""

    name: str
    time: str
    exempt: str


_BY_REQUEST = "(trace_id, request_id) in (select trace_id, request_id from {listing})"
_BY_TRACE = "TraceId in (select trace_id from {listing})"
_IN_USE = (
    "chunk_sha in (select chunk_sha from rag_index_chunks) or chunk_sha in "
    "(select arrayJoin(candidate_shas) from rag_stages)"
)
KINDS: Mapping[str, tuple[_Table, ...]] = {
    "traces": (
        _Table("otel_traces", "Timestamp", _BY_TRACE),
        _Table("otel_traces_trace_id_ts", "End", _BY_TRACE),
    ),
    "prompts": (_Table("rag_prompts", "started_at", _BY_REQUEST),),
    "requests": (
        _Table("rag_stages", "started_at", _BY_REQUEST),
        _Table("rag_requests", "started_at", _BY_REQUEST),
    ),
    # After the requests: a passage that none names any more is of no use.
    "chunks": (_Table("rag_chunks", "first_seen_at", _IN_USE),),
    "losses": (_Table("rag_losses", "lost_at", "0"),),
}
"""What can be kept for how long; the order is that of deleting."""

_NAMED = (
    *("rag_grades", "rag_complaints", "rag_label_attachments", "rag_probes", "rag_ablations"),
    "rag_label_decisions",
)


@dataclass(frozen=True)
class Kept:
    """One table: rows older than its kind allows, how many of these are exempt or deleted."""

    kind: str
    days: int | None
    table_name: str
    older: int = 0
    exempt: int = 0
    deleted: int = 0


def set_days(store: Store, kind: str, days: int | None) -> None:
    """Keep *kind* for *days*; None: for good.

    Raises:
        InputError: There is no such kind.
    """
    if kind not in KINDS:
        raise InputError(f"There is no kind {kind!r}; it can be {', '.join(KINDS)}.")
    store.insert("rag_retention", [(kind, days)], ("kind", "days"))


def days_of(store: Store) -> dict[str, int | None]:
    """Tell for how many days each kind is kept; None: for good, as all are until one is set."""
    rows = store.query(
        "select kind, days from rag_retention order by written_at desc limit 1 by kind"
    ).result_rows
    known = dict(rows)
    return {kind: known.get(kind) for kind in KINDS}


def apply(store: Store, *, is_dry: bool = False) -> list[Kept]:
    """Delete what is older than its kind allows and not exempt; *is_dry*: only count."""
    days = days_of(store)
    done: list[Kept] = []
    with _exempt(store, is_needed=any(days.values())) as listing:
        for kind, tables in KINDS.items():
            for table in tables:
                limit = days[kind]
                if limit is None:
                    done.append(Kept(kind, None, table.name))
                else:
                    done.append(_apply(store, kind, limit, table, listing, is_dry))
    return done


def _apply(store: Store, kind: str, days: int, table: _Table, listing: str, is_dry: bool) -> Kept:
    is_exempt = table.exempt.format(listing=listing)
    is_older = f"{table.time} < now('UTC') - toIntervalDay({{days:UInt32}})"
    parameters = {"days": days}
    ((older, exempt),) = store.query(
        f"select count(), countIf({is_exempt}) from {table.name} where {is_older}",  # noqa: S608
        parameters,
    ).result_rows
    deleted = older - exempt
    if deleted and not is_dry:
        store.command(
            f"alter table {table.name} delete where {is_older} and not ({is_exempt}) "
            "settings mutations_sync = 2",
            parameters,
        )
    return Kept(kind, days, table.name, older, exempt, deleted)


@contextmanager
def _exempt(store: Store, is_needed: bool) -> Iterator[str]:
    """List the requests that stay, in a table of its own, while the block runs."""
    listing = f"rag_retention_{secrets.token_hex(8)}"
    store.command(f"create table {listing} (trace_id String, request_id String) engine = Memory")
    try:
        if is_needed:
            named = "\n    union distinct ".join(
                f"select trace_id, request_id from {table}"  # noqa: S608 (our own names)
                for table in _NAMED
            )
            store.command(
                f"insert into {listing} select distinct trace_id, request_id "  # noqa: S608
                "from rag_request_labels"
            )
            # A reference may give the trace or the request alone.
            store.command(
                f"insert into {listing} with named as ({named})\n"  # noqa: S608
                "select distinct trace_id, request_id from rag_requests\n"
                "where (trace_id, request_id) in (select trace_id, request_id from named)\n"
                "    or request_id in (select request_id from named where trace_id = '')\n"
                "    or trace_id in (select trace_id from named where request_id = '')\n"
                "    or label_id != ''"
            )
        yield listing
    finally:
        store.command(f"drop table if exists {listing}")
