"""Backfill: spans of other instrumentations read again, whole traces at a time.

Pipeline: otel_traces -> [backfill] -> rag_foreign_in -> typed tables -> views
At insert a span is seen beside those of its batch only. Here the whole trace is known: each span
belongs to its nearest enclosing request, a trace of several requests is told apart, and beside
ragotel's own record of a trace no other one is a request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from ragotel.errors import InputError
from ragotel.store import catalog
from ragotel.store.foreign_trees import STAGES, Place, Span, assign, may_be_apart
from ragotel.store.open import Store
from ragotel.store.otlp_rows import SpanRow

CONVENTIONS = ("openinference", "genai", "traceloop", "langfuse", "mlflow", "other")
_MARKS = frozenset(
    (
        *("openinference.span.kind", "langfuse.observation.type", "mlflow.spanType"),
        *("traceloop.span.kind", "llm.request.type", "gen_ai.is_streaming"),
        *("gen_ai.operation.name", "gen_ai.system", "gen_ai.provider.name"),
    )
)
_TRACES_PER_STEP = 100
_GATEWAY = "0105_rag_foreign_mv"
_COUNTS = (
    ("llm.token_count.prompt", "llm.token_count.completion"),
    ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
    ("gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens"),
)
_TOKENS = "multiIf({}, '')".format(
    ", ".join(
        f"mapContains(SpanAttributes, '{taken}'),\n"
        f"    concat(SpanAttributes['{taken}'], '/', SpanAttributes['{given}'])"
        for taken, given in _COUNTS
    )
)


def _first_of(names: Sequence[str]) -> str:
    listed = ", ".join(f"SpanAttributes['{name}']" for name in names)
    return f"arrayFirst(text -> text != '', [{listed}])"


_ASKED = _first_of(
    (
        *("input.value", "langfuse.trace.input", "langfuse.observation.input"),
        *("mlflow.spanInputs", "traceloop.entity.input", "gen_ai.input.messages"),
    )
)
_ANSWERED = _first_of(
    (
        *("output.value", "langfuse.trace.output", "langfuse.observation.output"),
        *("mlflow.spanOutputs", "traceloop.entity.output", "gen_ai.output.messages"),
    )
)
_SILENT = (
    # Of a workflow GenAI's instrumentations never record what it was asked.
    "SpanAttributes['gen_ai.operation.name'] not in ('invoke_workflow', 'invoke_agent')\n"
    f"    and rag_json_question({_ASKED}) = ''\n"
    f"    and rag_json_answer({_ANSWERED}) in ('', 'null')"
)
_REPEATED = "(repeated)"
"""Stands for the request of a span that repeats another: no row has it."""
_PLACE = "transform(concat(trace_id, '/', span_id), {spans:Array(String)}, "
_REQUEST = _PLACE + "{requests:Array(String)}, '')"
_FLAG = _PLACE + "{flags:Array(UInt8)}, 0)"
_COLUMNS = (
    *("trace_id", "request_id", "is_request", "span_id", "parent_span_id", "started_at"),
    *("duration", "service_name", "span_name", "scope_name", "attributes", "status_code"),
    *("event_names", "event_attributes", "convention", "stage"),
)


@dataclass
class BackfillReport:
    """What was read; *rewritten_count* traces had other rows, or none, before."""

    days: list[date] = field(default_factory=list)
    trace_count: int = 0
    span_count: int = 0
    rewritten_count: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON shows it."""
        return {
            "days": [day.isoformat() for day in self.days],
            "traces": self.trace_count,
            "spans": self.span_count,
            "rewritten": self.rewritten_count,
        }


def backfill(
    store: Store,
    *,
    since: date | None = None,
    conventions: Sequence[str] = (),
    progress: Callable[[int], None] = lambda _: None,
) -> BackfillReport:
    """Derive the rows of every span by another convention that is in `otel_traces`, day by day.

    Running it twice changes nothing. A trace whose rows are right costs a look only.

    Args:
        since: The first day (UTC); all days where it is None.
        conventions: Only traces with spans of these; all where it is empty.
        progress: Called with the number of spans looked at so far.

    Raises:
        InputError: A convention has no such name.
    """
    unknown = sorted(set(conventions) - set(CONVENTIONS))
    if unknown:
        raise InputError(
            f"There is no convention {unknown[0]!r}; there are {', '.join(CONVENTIONS)}."
        )
    report = BackfillReport()
    settled: set[str] = set()
    for day in _days(store, since):
        report.days.append(day)
        # A trace that spans midnight was read whole on its first day.
        traces = [one for one in _traces_of(store, day, conventions) if one not in settled]
        settled = set(traces)
        for group in _groups(traces):
            _settle(store, group, report)
            progress(report.span_count)
    return report


def settle(store: Store, traces: Iterable[str]) -> BackfillReport:
    """Bring the rows of *traces* to what the whole traces say."""
    report = BackfillReport()
    for group in _groups(sorted(set(traces))):
        _settle(store, group, report)
    return report


def foreign_traces(rows: Iterable[SpanRow]) -> set[str]:
    """The traces of those *rows* that another instrumentation may have written."""
    return {
        row.trace_id
        for row in rows
        if "rag.stage" not in row.attributes
        and (not _MARKS.isdisjoint(row.attributes) or _is_search(row))
    }


def _is_search(row: SpanRow) -> bool:
    return any(event.name in ("db.query.result", "db.search.result") for event in row.events)


def _groups(traces: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(traces), _TRACES_PER_STEP):
        yield traces[start : start + _TRACES_PER_STEP]


def _days(store: Store, since: date | None) -> list[date]:
    rows = store.query(
        "select distinct toDate(Timestamp) as day from otel_traces\n"
        "where Timestamp >= toDateTime64({since:String}, 9, 'UTC') order by day",
        {"since": f"{since or date(1970, 1, 1)} 00:00:00"},
    ).result_rows
    return [row[0] for row in rows]


def _traces_of(store: Store, day: date, conventions: Sequence[str]) -> list[str]:
    """Traces that have a span by one of *conventions* on *day*."""
    rows = store.query(
        "select distinct TraceId from otel_traces\n"
        "where Timestamp >= toDateTime64({day:String}, 9, 'UTC')\n"
        "    and Timestamp < toDateTime64({day:String}, 9, 'UTC') + interval 1 day\n"
        "    and not mapContains(SpanAttributes, 'rag.stage')\n"
        "    and rag_foreign_convention(SpanAttributes, ScopeName, Events.Name)\n"
        "        in {conventions:Array(String)}\n"
        "order by TraceId",
        {"day": f"{day} 00:00:00", "conventions": list(conventions or CONVENTIONS)},
    ).result_rows
    return [row[0] for row in rows]


def _settle(store: Store, traces: Sequence[str], report: BackfillReport) -> None:
    trees, found = _trees(store, traces), _rows_of(store, traces)
    wrong: dict[str, dict[str, Place]] = {}
    for trace_id, spans in trees.items():
        places = assign(spans)
        report.trace_count += 1
        report.span_count += len(places)
        stages = {
            span.span_id
            for span in spans
            if span.stage in STAGES and not places[span.span_id].is_repeated
        }
        if not _stands(places, stages, found.get(trace_id, _Rows())):
            wrong[trace_id] = places
    if wrong:
        report.rewritten_count += len(wrong)
        _rewrite(store, wrong)


def _trees(store: Store, traces: Sequence[str]) -> dict[str, list[Span]]:
    """Every span of *traces*: those that no convention wrote belong to the tree as well."""
    rows = store.query(
        "select TraceId, SpanId, ParentSpanId, SpanKind, SpanAttributes['rag.stage'],\n"
        "    rag_foreign_convention(SpanAttributes, ScopeName, Events.Name) as convention,\n"
        "    rag_foreign_stage(convention, SpanAttributes, SpanName, ScopeName, Events.Name),\n"
        "    toUnixTimestamp64Nano(Timestamp), least(Duration, 86400000000000), ScopeName,\n"
        f"    {_TOKENS}\n"
        "from otel_traces where TraceId in {traces:Array(String)}\n"
        "order by TraceId, SpanId, Timestamp limit 1 by TraceId, SpanId",
        {"traces": list(traces)},
    ).result_rows
    trees: dict[str, list[Span]] = {}
    for row in rows:
        trace_id, span_id, parent, kind, own_stage, convention, stage, started_ns, took_ns = row[:9]
        span = Span(
            span_id=span_id,
            parent_span_id=parent,
            is_entry=kind in ("Server", "Consumer"),
            own_stage=own_stage,
            stage=stage if convention and not own_stage else "",
            started_ns=started_ns,
            ended_ns=started_ns + took_ns,
            scope=row[9],
            tokens=row[10],
        )
        trees.setdefault(trace_id, []).append(span)
    _mark_silent(store, trees)
    return trees


def _mark_silent(store: Store, trees: dict[str, list[Span]]) -> None:
    """Find the chains that say nothing, in the few traces where that decides."""
    traces = [trace_id for trace_id, spans in trees.items() if may_be_apart(spans)]
    if not traces:
        return
    silent = {
        (trace_id, span_id)
        for trace_id, span_id in store.query(
            "select TraceId, SpanId from otel_traces\n"  # noqa: S608 (constants)
            f"where TraceId in {{traces:Array(String)}} and {_SILENT}",
            {"traces": traces},
        ).result_rows
    }
    for trace_id in traces:
        trees[trace_id] = [
            replace(span, is_silent=span.stage == "chain" and (trace_id, span.span_id) in silent)
            for span in trees[trace_id]
        ]


@dataclass
class _Rows:
    """The rows that a trace has, as (span id, request id)."""

    requests: set[tuple[str, str]] = field(default_factory=set)
    stages: set[tuple[str, str]] = field(default_factory=set)
    is_untold: bool = False
    """Whether a request's question or answer is missing."""
    is_told: bool = False
    """Whether a stage has a question or a prompt."""


def _rows_of(store: Store, traces: Sequence[str]) -> dict[str, _Rows]:
    where = "where trace_id in {traces:Array(String)} and convention != 'ragotel'"
    parameters = {"traces": list(traces)}
    found: dict[str, _Rows] = {}
    for trace_id, span_id, request_id, is_untold in store.query(
        "select distinct trace_id, span_id, request_id, query = '' or answer = ''\n"
        f"from rag_requests {where}",
        parameters,
    ).result_rows:
        rows = found.setdefault(trace_id, _Rows())
        rows.requests.add((span_id, request_id))
        rows.is_untold |= bool(is_untold)
    for trace_id, span_id, request_id, is_told in store.query(
        "select distinct trace_id, span_id, request_id,\n"
        "    query != '' or content_mode = 'full'\n"
        f"from rag_stages {where}",
        parameters,
    ).result_rows:
        rows = found.setdefault(trace_id, _Rows())
        rows.stages.add((span_id, request_id))
        rows.is_told |= bool(is_told)
    return found


def _stands(places: Mapping[str, Place], stages: set[str], rows: _Rows) -> bool:
    """Whether the rows are already what the whole trace says."""
    asked = {(span_id, place.request_id) for span_id, place in places.items() if place.is_request}
    run = {(span_id, places[span_id].request_id) for span_id in stages}
    return asked == rows.requests and run == rows.stages and not (rows.is_untold and rows.is_told)


def _rewrite(store: Store, wrong: Mapping[str, Mapping[str, Place]]) -> None:
    """Write the rows of these traces anew; take away those that stand under another request."""
    told_apart = [
        (f"{trace_id}/{span_id}", place)
        for trace_id, places in wrong.items()
        for span_id, place in places.items()
        if place != Place("", False)
    ]
    parameters = {
        "traces": list(wrong),
        "spans": ["", *(key for key, _ in told_apart)],
        "requests": ["", *(_written(place) for _, place in told_apart)],
        "flags": [0, *(int(place.is_request) for _, place in told_apart)],
    }
    placed = {"request_id": f"{_REQUEST} as request_id", "is_request": f"{_FLAG} as is_request"}
    store.command(
        f"insert into rag_foreign_in ({', '.join(_COLUMNS)})\n"
        f"select {', '.join(placed.get(name, name) for name in _COLUMNS)}\n"
        f"from ({_incoming('TraceId in {traces:Array(String)}')})\n"
        f"where {_REQUEST} != '{_REPEATED}'\n"
        "order by trace_id, span_id limit 1 by trace_id, span_id",
        parameters,
    )
    elsewhere = f"request_id != {_REQUEST}"
    for table, is_wrong in (
        ("rag_requests", f"({elsewhere} or {_FLAG} = 0)"),
        ("rag_stages", elsewhere),
        ("rag_prompts", elsewhere),
    ):
        store.command(
            f"delete from {table}\n"  # noqa: S608 (a table of ours, values are bound)
            "where trace_id in {traces:Array(String)} and convention != 'ragotel'\n"
            f"    and {is_wrong}",
            parameters,
        )


def _written(place: Place) -> str:
    return _REPEATED if place.is_repeated else place.request_id


def _incoming(condition: str) -> str:
    """The statement by which spans come in at insert, over the spans of *condition*."""
    text = next(file.text for file in catalog.tables() if file.name == _GATEWAY)
    body = re.split(r"(?m)^create materialized view .* as\n", text)[1]
    return body.replace("where\n", f"where\n                {condition} and\n", 1)
