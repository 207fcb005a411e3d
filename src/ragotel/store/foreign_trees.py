"""Foreign trees: which request a span of another instrumentation belongs to, its trace known whole.

Pipeline: otel_traces -> [foreign_trees] -> backfill -> rag_foreign_in. Plain functions, no store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

LISTS = ("retrieve", "rerank")
STAGES = (*LISTS, "generate")


@dataclass(frozen=True)
class Span:
    """A span of a trace.

    *own_stage* is ragotel's, *stage* that of another convention ('' and 'other' take no part);
    *is_entry* marks a server's or consumer's span: what it calls is a matter of that service.
    """

    span_id: str
    parent_span_id: str
    is_entry: bool
    own_stage: str
    stage: str
    started_ns: int
    ended_ns: int = 0
    scope: str = ""
    tokens: str = ""
    """Tokens in and out as text; '' where the span counts none."""
    is_silent: bool = False
    """A chain that tells neither what it was asked nor what it answered."""


class Place(NamedTuple):
    """Where a span belongs: its request's id ('' where the trace has one), and whether it is it.

    A span that *is_repeated* is a call that another span of its trace records as well.
    """

    request_id: str
    is_request: bool
    is_repeated: bool = False


def assign(spans: Sequence[Span]) -> dict[str, Place]:
    """The place of every span of one trace that retrieves, reranks, generates or chains.

    Spans under one entry span, or under one root, are one request, unless several of the topmost
    chains both search and generate: then each of these is one, and what stands beside them
    belongs to none. A chain above several of these that tells neither question nor answer, such
    as a conversation's, is no request itself. Beside ragotel's own record nothing is a request.
    One call of a model that a framework's and a client's instrumentation both wrote counts once.
    """
    by_id = {span.span_id: span for span in spans}
    read = [span for span in spans if span.stage in (*STAGES, "chain")]
    if any(span.own_stage for span in spans):
        return {span.span_id: Place("", False) for span in read}
    groups = _groups(read, by_id, frozenset())
    if any(span.is_silent for span in read):
        silent = frozenset(span.span_id for span in read if span.is_silent)
        apart = _groups([span for span in read if not span.is_silent], by_id, silent)
        if _told_apart(apart, by_id) > _told_apart(groups, by_id):
            groups = apart
    requests = [request for tops in groups.values() for request in _requests(tops, by_id)]
    places = {span.span_id: Place("", False) for span in read}
    for root, members in requests:
        request_id = root if len(requests) > 1 else ""
        repeated = _repeated([span for span in members if span.stage == "generate"])
        places.update(
            (span.span_id, Place(request_id, span.span_id == root, span.span_id in repeated))
            for span in members
        )
    return places


def may_be_apart(spans: Sequence[Span]) -> bool:
    """Whether a chain has two below it, side by side, that both search and generate.

    Only then does it matter which chains are silent.
    """
    by_id = {span.span_id: span for span in spans}
    below: dict[str, set[str]] = {}
    for span in spans:
        if span.stage in STAGES:
            for above in _path(span, by_id):
                if above.stage == "chain":
                    below.setdefault(above.span_id, set()).add(span.stage)
    whole = {
        name
        for name, stages in below.items()
        if "generate" in stages and not stages.isdisjoint(LISTS)
    }
    outer = [
        next(
            (one.span_id for one in _path(by_id[name], by_id) if one.span_id in whole - {name}), ""
        )
        for name in whole
    ]
    return any(name and outer.count(name) > 1 for name in outer)


def _groups(
    read: Sequence[Span], by_id: dict[str, Span], passed_over: frozenset[str]
) -> dict[str, dict[str, list[Span]]]:
    """Spans by what bounds their request, then by the topmost chain or call above them."""
    groups: dict[str, dict[str, list[Span]]] = {}
    for span in read:
        top, anchor = _top_and_anchor(span, by_id, passed_over)
        groups.setdefault(anchor, {}).setdefault(top, []).append(span)
    return groups


def _told_apart(groups: dict[str, dict[str, list[Span]]], by_id: dict[str, Span]) -> int:
    """How many chains both search and generate, of those that stand side by side."""
    return max(
        (
            sum(_is_whole(by_id[top], found) for top, found in tops.items())
            for tops in groups.values()
        ),
        default=0,
    )


def _repeated(calls: Sequence[Span]) -> set[str]:
    """Calls within another scope's call that counts the same tokens, or else none."""
    found: set[str] = set()
    for outer in calls:
        for inner in calls:
            if inner.scope == outer.scope or not _is_within(inner, outer):
                continue
            if not inner.tokens or inner.tokens == outer.tokens:
                found.add(inner.span_id)
            elif not outer.tokens:
                found.add(outer.span_id)
    return found


def _is_within(inner: Span, outer: Span) -> bool:
    """Whether *inner* ran during *outer*; of two that ran at the same time only one did."""
    if (inner.started_ns, inner.ended_ns) == (outer.started_ns, outer.ended_ns):
        return inner.parent_span_id == outer.span_id or (
            outer.parent_span_id != inner.span_id and inner.span_id > outer.span_id
        )
    return outer.started_ns <= inner.started_ns and inner.ended_ns <= outer.ended_ns


def _top_and_anchor(
    span: Span, by_id: dict[str, Span], passed_over: frozenset[str]
) -> tuple[str, str]:
    """The topmost span by a convention above *span*, and what bounds its request."""
    top = span.span_id
    for above in _path(span, by_id):
        if above.is_entry and not above.stage:
            return top, above.span_id
        if above.stage in (*STAGES, "chain") and above.span_id not in passed_over:
            top = above.span_id
        last = above
    # A parent that never arrived is one all the same: what it called stays together.
    return top, last.parent_span_id or last.span_id


def _path(span: Span, by_id: dict[str, Span]) -> Iterator[Span]:
    """*span* and those above it; a circle, which only a broken sender makes, ends it."""
    seen: set[str] = set()
    current: Span | None = span
    while current is not None and current.span_id not in seen:
        seen.add(current.span_id)
        yield current
        current = by_id.get(current.parent_span_id)


def _requests(tops: dict[str, list[Span]], by_id: dict[str, Span]) -> list[tuple[str, list[Span]]]:
    """The requests of one group: (span id of the request, its spans)."""
    whole = [top for top, members in tops.items() if _is_whole(by_id[top], members)]
    if len(whole) > 1:
        return [(top, tops[top]) for top in whole]
    root = whole[0] if whole else _root(tops, by_id)
    return [(root, [span for members in tops.values() for span in members])]


def _is_whole(top: Span, members: Sequence[Span]) -> bool:
    stages = {span.stage for span in members}
    return top.stage == "chain" and "generate" in stages and not stages.isdisjoint(LISTS)


def _root(tops: dict[str, list[Span]], by_id: dict[str, Span]) -> str:
    """The request's span where no chain holds it all: the last chain or call that generates."""

    def order(top: str) -> tuple[bool, bool, int]:
        span = by_id[top]
        generates = any(member.stage == "generate" for member in tops[top])
        return span.stage == "chain", generates, span.started_ns

    return max(tops, key=order)
