"""Find: requests for a vague complaint: a user, a rough day, two words of question or answer.

Pipeline: rag_requests -> [triage] -> cli | server. No window is assumed: any age is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragotel.model import CANARY_SERVICE
from ragotel.store import Store
from ragotel.text import normalise
from ragotel.triage.question import Conditions, Question
from ragotel.triage.times import Moment, sql_time

_WORDS = re.compile(r"[^\x00-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+")
_MOST_WORDS = 12
_READINGS = ("word", "part", "any")
_PART = 0.9
_FAR = ((43_200, 0.0), (3 * 86_400, 0.2), (14 * 86_400, 0.5))
_FARTHEST = 1.0
"""Points that a request loses by its distance from the time that was named, in seconds.

A day is vague by half a day on both sides, for users live in every zone. Two weeks away costs as
much as all the words, so that no wording outweighs it.
"""


@dataclass(frozen=True)
class Search:
    """What is known of the request; everything but *limit* may be missing.

    *around* only ranks (nearer first; with *text* by points, see `find_requests`); *since* and
    *until* (excluded) bound the time.
    """

    text: str = ""
    user: str | None = None
    session: str | None = None
    tenant: str | None = None
    service: str | None = None
    request: str | None = None
    since: Moment | None = None
    until: Moment | None = None
    around: Moment | None = None
    limit: int = 20

    @property
    def all_words(self) -> list[str]:
        """The words of *text*, normalised, each once, split where the store's word index splits."""
        return list(dict.fromkeys(_WORDS.findall(normalise(self.text))))

    @property
    def words(self) -> list[str]:
        """Those that are looked for: the first few."""
        return self.all_words[:_MOST_WORDS]

    @property
    def readings(self) -> Sequence[str]:
        """How the words are read, one after the other until something is found."""
        if not self.words:
            return _READINGS[:1]
        return _READINGS if self.around is None else ("near",)

    @property
    def has_words_only(self) -> bool:
        named = (self.user, self.session, self.tenant, self.service, self.request)
        return not any(named) and self.since is None and self.until is None


@dataclass
class Found:
    """What a search gave; *reading* is how the words were read: word, part, any or near."""

    rows: list[dict[str, Any]]
    question: Question
    reading: str = "word"
    words: list[str] = field(default_factory=list)


def find_requests(store: Store, search: Search) -> Found:
    """Look for *search*: all words as whole words; else as parts of words; else any of them.

    With both *around* and *text* the words and the day are weighed against each other. A request
    that has any of the words gets points: the share of the words that it has (a word that stands
    only within a longer one counts 0.9), less what its distance from the day costs: nothing up to
    12 hours from it, 0.2 up to 3 days, 0.5 up to 14 days, 1 beyond.

    Each row has words_matched, the number of its complaints, index_versions (index and version of
    each index that served it) and, where it is labelled, its bucket.
    """
    for reading in search.readings:
        question = find_question(search, reading)
        rows = question.ask(store)
        if rows or reading == search.readings[-1]:
            break
    _add_verdicts(store, rows)
    _add_complaints(store, rows)
    _add_index_versions(store, rows)
    return Found(rows, question, reading, search.words)


def find_question(search: Search, reading: str = "") -> Question:
    """The SELECT for *search*, its words read as *reading* (by default the first of them)."""
    where, words = _conditions(search), search.words
    reading = reading or search.readings[0]
    tests = [_test(where, at, word, reading) for at, word in enumerate(words)]
    if tests and reading in ("any", "near"):
        where.add("(" + "\n        or ".join(tests) + ")")
    elif tests:
        where.clauses.extend(tests)
    is_counted = reading in ("any", "near")
    matched = " + ".join(f"({test})" for test in tests) if is_counted else str(len(tests))
    points = _points(search, where) if reading == "near" else ""
    where.parameters["limit"] = search.limit
    return Question(
        "select\n"
        "    trace_id, request_id, started_at, service_name, user_id, session_id, tenant,\n"
        "    query as question, answer, outcome, label_id,\n"
        f"    {matched or 0} as words_matched{points}\n"
        f"from rag_requests\n{where}\n"
        f"order by {'points' if points else 'words_matched'} desc, {_nearness(search, where)}\n"
        "limit 1 by trace_id, request_id\n"
        "limit {limit:UInt32}",
        where.parameters,
    )


def _points(search: Search, where: Conditions) -> str:
    """The columns of a search by words around a day: whole words, seconds away, points."""
    words = range(len(search.words))
    whole = " + ".join(f"({_test(where, at, search.words[at], 'word')})" for at in words)
    steps = ", ".join(f"seconds_away <= {seconds}, {lost}" for seconds, lost in _FAR)
    return (
        f",\n    {whole} as whole_words,\n    {_distance(search, where)} as seconds_away,\n"
        f"    round((whole_words + {_PART} * (words_matched - whole_words)) / {len(words)}\n"
        f"        - multiIf({steps}, {_FARTHEST}), 3) as points"
    )


def _conditions(search: Search) -> Conditions:
    where = Conditions()
    where.equal("user_id", search.user)
    where.equal("session_id", search.session)
    where.equal("tenant", search.tenant)
    where.equal("service_name", search.service)
    if search.service is None and search.request is None:
        where.add("service_name != {canary:String}", canary=CANARY_SERVICE)
    if search.request is not None:
        where.add(
            "(request_id = {request:String} or trace_id = lower({request:String})\n"
            "        or startsWith(request_id, {request:String})\n"
            "        or startsWith(trace_id, lower({request:String})))",
            request=search.request,
        )
    if search.since is not None:
        where.add("started_at >= {since:DateTime64(6, 'UTC')}", since=sql_time(search.since.start))
    if search.until is not None:
        where.add("started_at < {until:DateTime64(6, 'UTC')}", until=sql_time(search.until.end))
    return where


def _test(where: Conditions, at: int, word: str, reading: str) -> str:
    """Whether one word stands in the question or the answer; the word itself is bound."""
    where.parameters[f"word_{at}"] = word
    bound = f"{{word_{at}:String}}"
    if reading == "word":
        return f"(hasToken(query_norm, {bound}) or hasToken(answer_norm, {bound}))"
    return f"(position(query_norm, {bound}) > 0 or position(answer_norm, {bound}) > 0)"


def _nearness(search: Search, where: Conditions) -> str:
    if search.around is None:
        return "started_at desc, trace_id, request_id"
    return f"{_distance(search, where)}, started_at desc, trace_id, request_id"


def _distance(search: Search, where: Conditions) -> str:
    """Seconds between a request and the time that was named; 0 within a day that was."""
    assert search.around is not None
    where.parameters["around_start"] = sql_time(search.around.start)
    where.parameters["around_end"] = sql_time(search.around.end)
    return (
        "greatest(\n"
        "        dateDiff('second', started_at, {around_start:DateTime64(6, 'UTC')}),\n"
        "        dateDiff('second', {around_end:DateTime64(6, 'UTC')}, started_at),\n"
        "        0\n"
        "    )"
    )


def _add_verdicts(store: Store, rows: list[dict[str, Any]]) -> None:
    """Put the bucket of each labelled request into its row; several labels give several buckets."""
    verdicts: dict[tuple[str, str], list[str]] = {}
    for part in _parts(rows):
        for row in verdicts_question(part).ask(store) if _is_labelled(store, part) else ():
            key = (row["trace_id"], row["request_id"])
            verdicts.setdefault(key, []).append(row["bucket"])
    for row in rows:
        row["bucket"] = ", ".join(verdicts.get((row["trace_id"], row["request_id"]), []))


def _is_labelled(store: Store, rows: list[dict[str, Any]]) -> bool:
    """Whether a label meets any of *rows*: cheap to ask, where the verdicts are not."""
    found = store.scalar(
        "select count() from rag_request_labels\n"
        "where trace_id in {traces:Array(String)} and request_id in {requests:Array(String)}",
        _ids(rows),
    )
    return bool(found)


def verdicts_question(rows: list[dict[str, Any]]) -> Question:
    """The buckets of the requests in *rows*."""
    return Question(
        "select trace_id, request_id, bucket\nfrom triage_requests\n"
        "where trace_id in {traces:Array(String)} and request_id in {requests:Array(String)}\n"
        "order by label_id",
        _ids(rows),
    )


def _add_complaints(store: Store, rows: list[dict[str, Any]]) -> None:
    """Count the complaints about each request; one may name the trace, the request or both."""
    for part in _parts(rows):
        complaints = store.query(
            "select trace_id, request_id from rag_complaints final\n"
            "where trace_id in {traces:Array(String)} or request_id in {requests:Array(String)}",
            _ids(part),
        ).result_rows
        for row in part:
            row["complaints"] = sum(
                trace_id in ("", row["trace_id"]) and request_id in ("", row["request_id"])
                for trace_id, request_id in complaints
            )


def _add_index_versions(store: Store, rows: list[dict[str, Any]]) -> None:
    """Say which index versions served each request: it is judged against those, not today's."""
    served: dict[tuple[str, str], list[str]] = {}
    for part in _parts(rows):
        found = store.query(
            "select trace_id, request_id,\n"
            "    arraySort(groupUniqArray(trimBoth(concat(index_name, ' ', index_version))))\n"
            "from rag_stages\n"
            "where trace_id in {traces:Array(String)} and request_id in {requests:Array(String)}\n"
            "    and stage = 'retrieve' and index_version != ''\n"
            "group by trace_id, request_id",
            _ids(part),
        ).result_rows
        served.update(((trace_id, request_id), names) for trace_id, request_id, names in found)
    for row in rows:
        row["index_versions"] = served.get((row["trace_id"], row["request_id"]), [])


def _ids(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "traces": sorted({row["trace_id"] for row in rows}),
        "requests": sorted({row["request_id"] for row in rows}),
    }


def _parts(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """A query's parameters travel in its URL: a few hundred ids at a time."""
    for start in range(0, len(rows), 300):
        yield rows[start : start + 300]
