"""Check: which limits are broken in a span of time; each view is asked once.

Pipeline: limits_on_buckets, alert_* -> [triage] -> cli
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta, timezone
from typing import Any

from ragotel.errors import InputError
from ragotel.model import CANARY_SERVICE
from ragotel.store import Store
from ragotel.triage.question import Conditions, Question
from ragotel.triage.times import Moment, sql_time

BUCKET_ALERTS = ("corpus_gap", "bucket_limits", "bucket_deviation")
"""Alerts that stand on one reading of the verdicts."""
ALERTS = (*BUCKET_ALERTS, "ingest", "degraded", "capture_losses")
"""Every alert; its view is called alert_ and so."""
COLUMNS = (
    *("name", "service_name", "label_set", "subject", "window_at", "observed", "allowed"),
    *("sample_count", "example_trace_id", "example_request_id", "message"),
)
"""What every alert view has."""
_SERVICES = "\nunion distinct ".join(
    f"select distinct toString(service_name) from {table} "  # noqa: S608 (tables of ours)
    "where service_name != {canary:String}"
    for table in ("rag_requests", "rag_stages", "rag_ingest_runs", "rag_losses")
)
_PLAIN = re.compile(r"[\w.:-]+", re.ASCII)


@dataclass(frozen=True)
class Window:
    """Which days, service and label set are judged; days are whole."""

    since: Moment
    until: Moment
    service: str | None = None
    label_set: str | None = None

    @property
    def start(self) -> datetime:
        return _midnight(self.since.start)

    @property
    def end(self) -> datetime:
        """The first moment that is not judged any more."""
        last = max(self.until.end - timedelta(microseconds=1), self.until.start)
        return _midnight(last) + timedelta(days=1)


@dataclass(frozen=True)
class Checked:
    """What was judged, and what is beyond its limit, the oldest window first."""

    window: Window
    judged: dict[str, int]
    alerts: list[dict[str, Any]] = field(default_factory=list)

    @property
    def is_fine(self) -> bool:
        return not self.alerts

    @property
    def is_judged(self) -> bool:
        """Whether anything was there to judge."""
        return any(self.judged.values())


def check(store: Store, window: Window, names: Sequence[str] = ALERTS) -> Checked:
    """Judge *window* by the alerts called *names*.

    Raises:
        InputError: There is no such service, or no such label set.
    """
    _require(store, "service", window.service, _SERVICES)
    _require(store, "label set", window.label_set, "select distinct label_set from rag_labels")
    judged: dict[str, int] = {}
    found: list[dict[str, Any]] = []
    if set(names) & set(BUCKET_ALERTS):
        rows = buckets_question(window).ask(store)
        judged["labelled requests"] = sum(
            row["labelled_requests"] for row in rows if row["bucket"] == "corpus_gap"
        )
        found += [alert for alert in _broken(rows) if alert["name"] in names]
    if "ingest" in names:
        judged["ingest runs"] = _count(store, "rag_ingest_runs", window)
    if {"degraded", "capture_losses"} & set(names):
        judged["requests"] = _count(store, "rag_requests", window)
    for name in names:
        if name not in BUCKET_ALERTS:
            found += alert_question(name, window).ask(store)
    found.sort(key=lambda row: (row["window_at"], ALERTS.index(row["name"]), row["subject"]))
    return Checked(window, judged, found)


def _require(store: Store, what: str, name: str | None, known_sql: str) -> None:
    """See that *name*, where one is given, is known; a slip must not look like all is well."""
    if name is None:
        return
    rows = store.query(known_sql, {"canary": CANARY_SERVICE}).result_rows
    known = sorted(row[0] for row in rows)
    if name not in known:
        names = f"there are {', '.join(map(repr, known))}" if known else "there is none yet"
        raise InputError(f"There is no {what} {name!r}; {names}.")


def buckets_question(window: Window) -> Question:
    """The share of each bucket beside its limits, and what of it is broken."""
    where = Conditions()
    where.add(
        "day >= {since:Date} and day < {until:Date}",
        since=window.start.date().isoformat(),
        until=window.end.date().isoformat(),
    )
    where.equal("service_name", window.service)
    where.equal("label_set", window.label_set)
    return Question(
        "select\n    toDateTime64(day, 9, 'UTC') as window_at, service_name, label_set, bucket,\n"
        "    labelled_requests, sample_count, example_trace_id, example_request_id, broken\n"
        f"from limits_on_buckets\n{where}",
        where.parameters,
    )


def alert_question(name: str, window: Window) -> Question:
    """The rows of one alert view in *window*."""
    where = _by_time("window_at", window)
    return Question(f"select {', '.join(COLUMNS)}\nfrom alert_{name}\n{where}", where.parameters)


def show_command(alert: Mapping[str, Any]) -> str:
    """The command that shows the example of *alert*; empty where it has none.

    Ids come from outside: one that a shell would obey is quoted.
    """
    trace_id = alert["example_trace_id"]
    if not trace_id:
        return ""
    view = {"ingest": "dist_ingest_runs", "capture_losses": "rag_losses"}.get(alert["name"])
    if view is None:
        return f"ragotel show {shlex.quote(alert['example_request_id'] or trace_id)}"
    literal = trace_id.replace("\\", "\\\\").replace("'", "\\'")
    statement = " ".join(("select * from", view, f"where trace_id = '{literal}'"))
    quoted = f'"{statement}"' if _PLAIN.fullmatch(trace_id) else shlex.quote(statement)
    return f"ragotel sql --format Vertical {quoted}"


def _broken(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows as the alert views have them."""
    for row in rows:
        for name, observed, allowed, message in row["broken"]:
            own = {"name": name, "subject": row["bucket"], "observed": observed}
            alert = {**row, **own, "allowed": allowed, "message": message}
            yield {column: alert[column] for column in COLUMNS}


def _count(store: Store, table: str, window: Window) -> int:
    where = _by_time("started_at", window)
    where.add("service_name != {canary:String}", canary=CANARY_SERVICE)
    keys = "trace_id, request_id" if table == "rag_requests" else "trace_id, span_id"
    question = Question(
        f"select uniqExact({keys}) as found\nfrom {table}\n{where}", where.parameters
    )
    return int(question.ask(store)[0]["found"])


def _by_time(column: str, window: Window) -> Conditions:
    where = Conditions()
    where.add(f"{column} >= {{since:DateTime64(6, 'UTC')}}", since=sql_time(window.start))
    where.add(f"{column} < {{until:DateTime64(6, 'UTC')}}", until=sql_time(window.end))
    where.equal("service_name", window.service)
    return where


def _midnight(moment: datetime) -> datetime:
    return datetime.combine(moment.astimezone(timezone.utc).date(), time(), timezone.utc)
