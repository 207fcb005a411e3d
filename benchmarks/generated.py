"""A store of generated requests: distinct prompts of 16 KB, fifty candidates twice, five spans.

Every tenth request has a label and a grade; of those 3 % lack their gold chunk in the index, 12 %
in the list, 1 % in the prompt, 6 % are answered wrong. All follows from the request's number.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from ragotel.store import Store
from ragotel.store.otlp_rows import COLUMNS, FORMAT, TABLE, Origin, SpanRow, encode_rows
from ragotel.text import chunk_sha
from ragotel.triage.grades import Grade, write_grades
from ragotel.triage.labels import Label, Passage, write_labels
from ragotel.triage.references import RequestKey

CHUNKS, CHUNK_CHARS = 5_000, 2_000
CANDIDATES, SENT = 50, 8
USERS, DAYS = 2_000, 14
LABEL_EVERY = 10
GROUP = 1_000
"""Requests in one insert: about 30 MB, what `ragotel load` groups as well."""
FIRST = datetime(2026, 11, 1, tzinfo=timezone.utc)
INDEX, VERSION = "docs", "v1"
SERVICES = tuple(Origin(f"bot-{n}", {"service.name": f"bot-{n}"}, "ragotel", "1") for n in range(3))


class Chunk(NamedTuple):
    id: str
    text: str
    sha: str
    claim: str


class Asked(NamedTuple):
    """What is decided about one request before it is written."""

    number: int
    candidates: list[int]
    sent: list[int]
    gold: int | None
    grade: str

    @property
    def trace_id(self) -> str:
        return f"{random.Random(self.number).getrandbits(128):032x}"

    @property
    def request_id(self) -> str:
        return self.trace_id[:16]

    @property
    def user_id(self) -> str:
        return f"user-{self.number * 7919 % USERS}"

    @property
    def started_at(self) -> datetime:
        minute = self.number * 37 % (DAYS * 24 * 60)
        return FIRST + timedelta(minutes=minute, microseconds=self.number)


class Corpus:
    """Chunks of common words, each with one claim of its own."""

    def __init__(self) -> None:
        draw = random.Random(7)
        self.words = ["".join(draw.choices("abcdeilmnoprstu", k=k % 7 + 3)) for k in range(3_000)]
        self.chunks = [self._chunk(number, draw) for number in range(CHUNKS)]

    def _chunk(self, number: int, draw: random.Random) -> Chunk:
        claim = f"tariff {number} costs {number * 13 % 9973} crowns"
        words = draw.choices(self.words, k=CHUNK_CHARS // 6)
        half = len(words) // 2
        body = f"{' '.join(words[:half])}. The {claim}. {' '.join(words[half:])}"
        text = body[:CHUNK_CHARS]
        return Chunk(f"page-{number // 10}.md#{number}", text, chunk_sha(text), claim)

    def sentence(self, seed: int, count: int) -> str:
        return " ".join(random.Random(seed).choices(self.words, k=count))


def decide(number: int) -> Asked:
    """The lists of request *number*, and where its gold chunk stands in them if it has a label."""
    draw = random.Random(number)
    # The last chunks are in no list and the very last tenth of them in no index either.
    found = draw.sample(range(CHUNKS - 200), CANDIDATES)
    sent = found[:SENT]
    if number % LABEL_EVERY:
        return Asked(number, found, sent, None, "")
    fate = draw.random()
    if fate < 0.03:
        return Asked(number, found, sent, CHUNKS - 1 - draw.randrange(20), "wrong")
    if fate < 0.15:
        return Asked(number, found, sent, CHUNKS - 200 + draw.randrange(180), "wrong")
    if fate < 0.16:
        return Asked(number, found, sent, found[draw.randrange(SENT, CANDIDATES)], "wrong")
    gold = sent[draw.randrange(SENT)]
    return Asked(number, found, sent, gold, "wrong" if fate < 0.22 else "correct")


def spans_of(asked: Asked, corpus: Corpus) -> Iterator[SpanRow]:
    """The five spans of one request, as the receiver decodes them."""
    question = f"{corpus.sentence(asked.number, 11)} {asked.number}?"
    answer = corpus.sentence(asked.number + 1, 40)
    listed = [corpus.chunks[at] for at in asked.candidates]
    sent = [corpus.chunks[at] for at in asked.sent]
    prompt = "\n\n".join((*(chunk.text for chunk in sent), question))
    common = {"rag.schema": "1", "rag.request.id": asked.request_id, "rag.outcome": "ok"}
    label = {"rag.label.id": f"label-{asked.number}"} if asked.number % 20 == 0 else {}
    ranked = {"rag.candidates.count": str(CANDIDATES), "rag.score.higher_is_better": "true"}
    yield _span(
        *(asked, 0, "rag.request", 0, 900),
        {
            **common,
            **label,
            "rag.stage": "request",
            "user.id": asked.user_id,
            "rag.query": question,
            "rag.answer": answer,
        },
    )
    yield _span(
        *(asked, 1, f"retrieval {INDEX}", 5, 40),
        {
            **common,
            **ranked,
            "rag.stage": "retrieve",
            "rag.stage.name": "dense",
            "gen_ai.retrieval.top_k": str(CANDIDATES),
            "gen_ai.retrieval.documents": _list(listed, ("sha",)),
            "gen_ai.data_source.id": INDEX,
            "rag.index.version": VERSION,
        },
    )
    yield _span(
        *(asked, 2, "rag.rerank", 50, 60),
        {**common, **ranked, "rag.stage": "rerank", "rag.candidates": _list(listed, ())},
    )
    dropped = [{"id": chunk.id, "reason": "budget", "inferred": True} for chunk in listed[SENT:]]
    yield _span(
        *(asked, 3, "rag.assemble", 120, 2),
        {
            **common,
            "rag.stage": "assemble",
            "rag.content_mode": "full",
            "rag.candidates": _list(sent, ("sha", "chars", "tokens")),
            "rag.candidates.count": str(SENT),
            "rag.dropped": json.dumps(dropped),
            "rag.prompt.text": prompt,
            "rag.prompt.chars": str(len(prompt)),
            "rag.budget.tokens": "4000",
            "gen_ai.prompt.name": "answer",
            "gen_ai.prompt.version": "e1",
        },
    )
    yield _span(
        *(asked, 4, "chat m", 125, 700),
        {**common, "rag.stage": "generate", "gen_ai.request.model": "m"},
    )


def _list(chunks: list[Chunk], keys: tuple[str, ...]) -> str:
    """As the emit half writes them: the hash where a text is first seen and where it was sent."""
    return json.dumps(
        [
            {"id": chunk.id, "score": 1 - at / 64} | {key: _part(chunk, key) for key in keys}
            for at, chunk in enumerate(chunks)
        ]
    )


def _part(chunk: Chunk, key: str) -> str | int:
    return {"sha": chunk.sha, "chars": len(chunk.text), "tokens": 500}[key]


def _span(
    asked: Asked, at: int, name: str, after_ms: int, took_ms: int, attributes: dict[str, str]
) -> SpanRow:
    # In whole microseconds: a float of seconds since 1970 has no room for them.
    micros = (asked.started_at - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(
        microseconds=1
    )
    return SpanRow(
        start_ns=micros * 1_000 + after_ms * 1_000_000,
        duration_ns=took_ms * 1_000_000,
        trace_id=asked.trace_id,
        span_id=f"{asked.request_id[:15]}{at}",
        parent_span_id=f"{asked.request_id[:15]}0" if at else "",
        trace_state="",
        name=name,
        kind="Internal",
        origin=SERVICES[asked.number % len(SERVICES)],
        attributes=attributes,
        status_code="Ok",
        status_message="",
    )


def fill(store: Store, requests: int) -> float:
    """Insert everything; the seconds that the engine took for the spans, all views fed."""
    corpus, took_s = Corpus(), 0.0
    write_manifest(store, corpus)
    for start in range(0, requests, GROUP):
        group = [decide(number) for number in range(start, min(start + GROUP, requests))]
        block = b"".join(encode_rows(row for asked in group for row in spans_of(asked, corpus)))
        began = time.perf_counter()
        store.client.raw_insert(TABLE, list(COLUMNS), block, fmt=FORMAT)
        took_s += time.perf_counter() - began
    write_told(store, corpus, requests)
    return took_s


def write_manifest(store: Store, corpus: Corpus) -> None:
    """The index version that served: every chunk but the last twenty."""
    served = corpus.chunks[: CHUNKS - 20]
    store.insert("rag_chunks_in", [(c.sha, c.text) for c in served], ("chunk_sha", "text"))
    rows = [
        (INDEX, chunk.id, VERSION, "load", chunk.id.partition("#")[0], chunk.sha, len(chunk.text))
        for chunk in served
    ]
    names = ("index_name", "chunk_id", "version", "load_id", "doc_id", "chunk_sha", "chars")
    store.insert("rag_index_chunks", rows, names)
    whole = ("index_name", "version", "load_id", "chunk_rows")
    store.insert("rag_index_versions", [(INDEX, VERSION, "load", len(rows))], whole)


def write_told(store: Store, corpus: Corpus, requests: int) -> None:
    """Labels and grades of every tenth request; half of them meet by their question alone."""
    labels, grades = [], []
    for number in range(0, requests, LABEL_EVERY):
        asked = decide(number)
        gold = corpus.chunks[asked.gold or 0]
        labels.append(
            Label(
                question=f"{corpus.sentence(number, 11)} {number}?",
                label_id=f"label-{number}",
                passages=(Passage(chunk_ids=[gold.id], spans=[gold.claim]),),
            )
        )
        key = RequestKey(asked.trace_id, asked.request_id)
        grades.append(Grade(key, asked.grade, "judge", labels[-1].label_id if number % 3 else ""))
    write_labels(store, labels)
    write_grades(store, grades)
