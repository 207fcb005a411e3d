"""Laws of recording: it changes nothing, crosses nothing, and its lists survive the wire."""

from __future__ import annotations

import asyncio
import json
import math
import random
import threading
from array import array
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ragotel
from ragotel import attributes as at
from ragotel.candidates import read
from ragotel.chunks import ChunkBook
from ragotel.lists import list_json, settle, shas_of
from ragotel.survivors import find_survivors
from ragotel.testing import recording

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=20)
    | st.binary(max_size=5)
    | st.uuids()
    | st.decimals()
    | st.complex_numbers()
)
KEYS = st.sampled_from(
    [
        "id",
        "score",
        "text",
        "metadata",
        "chunk_id",
        "doc_id",
        "content",
        "payload",
        "document",
        "node",
        "hits",
        "ids",
        "scores",
        "distances",
        "documents",
        "metadatas",
        "index",
        "superseded",
        "tokens",
        "leg",
        "usage",
        "choices",
        "answer",
        "messages",
    ]
) | st.text(max_size=5)
SHAPES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.tuples(inner, inner)
        | st.dictionaries(KEYS, inner, max_size=6)
        | st.sets(st.integers(), max_size=3)
    ),
    max_leaves=30,
)
DECORATORS = [
    ragotel.request, ragotel.retrieve, ragotel.fuse, ragotel.rerank, ragotel.blend,
    ragotel.filter, ragotel.assemble, ragotel.generate, ragotel.ingest,
]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(argument=SHAPES, result=SHAPES)
def test_any_value_passes_through_every_decorator(argument: Any, result: Any) -> None:
    """The result is the very object, nothing is raised, every span has valid JSON and UTF-8."""
    before = repr((argument, result))
    with recording() as sink:
        for decorate in DECORATORS:
            recorded: Any = decorate(lambda value: result)
            assert recorded(argument) is result
        spans = sink.raw
    assert repr((argument, result)) == before
    assert len(spans) == len(DECORATORS)
    for span in spans:
        assert span.attributes[at.OUTCOME] == "ok"
        for key, value in span.attributes.items():
            assert isinstance(value, (str, bool, int, float)), key
            if isinstance(value, str):
                value.encode()
            if key in (at.DOCUMENTS, at.CANDIDATES, at.DROPPED, at.CHUNKS):
                json.loads(str(value), parse_constant=_refuse)


def _refuse(name: str) -> None:
    raise AssertionError(f"{name} in a list")


CLEAN = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.none()
            | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40),
            "score": st.none() | st.floats() | st.integers(-(2**60), 2**60),
        },
        optional={"text": st.text(max_size=60), "superseded": st.booleans()},
    ),
    max_size=30,
)


def as_written(score: float) -> float:
    """Nine digits of a number of single precision, which tell it from all others; else itself."""
    return float(f"{score:.9g}") if array("f", (score,))[0] == score else score


@settings(max_examples=300, deadline=None)
@given(ROWS)
def test_candidates_survive_the_wire(hits: list[dict[str, Any]]) -> None:
    """Ids, scores and ranks read back from the JSON are those that were returned."""
    found = read(hits)
    if not hits:
        assert found is not None
        assert len(found) == 0
        return
    assert found is not None
    book = ChunkBook()
    settle(found, book)
    rows = json.loads(list_json(found, shas_of(found, book), 1000))
    assert len(rows) == len(hits)
    for row, hit in zip(rows, hits, strict=True):
        if hit["id"] is not None:
            assert row["id"] == hit["id"]
        elif hit.get("text"):
            assert row["id"] == row["sha"]
        else:
            assert row["id"] is None
        score = hit["score"]
        if score is None or not math.isfinite(score):
            assert row["score"] is None
        else:
            assert row["score"] == as_written(float(score))


WORDS = st.lists(
    st.sampled_from(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]),
    max_size=30,
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(WORDS, min_size=1, max_size=8),
    st.randoms(use_true_random=False),
    st.integers(0, 8),
)
def test_every_rendered_passage_is_found_in_order(
    bodies: list[list[str]], rng: random.Random, count: int
) -> None:
    """Distinct passages rendered whole in any order are the survivors, in that order."""
    texts: list[str | None] = [
        f"Passage {n} of {len(bodies)} begins here: {' '.join(b)} and ends ({n})."
        for n, b in enumerate(bodies)
    ]
    chosen = rng.sample(range(len(texts)), min(count, len(texts)))
    prompt = "Use these:\n" + "\n\n".join(str(texts[n]) for n in chosen) + "\nQuestion?"
    found, unknown = find_survivors(prompt, texts)
    assert [s.rank for s in found] == chosen
    assert all(s.is_whole for s in found)
    assert unknown == set()


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=400), st.lists(st.none() | st.text(max_size=80), max_size=10))
def test_survivors_of_any_prompt(prompt: str, texts: list[str | None]) -> None:
    """Whatever the texts: nothing is raised, lengths are within bounds, ranks are once."""
    found, unknown = find_survivors(prompt, texts)
    ranks = [s.rank for s in found]
    assert len(set(ranks)) == len(ranks)
    assert not unknown & set(ranks)
    for survivor in found:
        assert 0 < survivor.kept_chars <= len(texts[survivor.rank] or "")


class Service:
    """A request with legs on threads and tasks in random order, and a stream with one inside."""

    def __init__(self, rng: random.Random, pool: ThreadPoolExecutor) -> None:
        self.rng = rng
        self.pool = pool

    @ragotel.retrieve(leg="leg")
    def leg(self, query: str) -> list[dict[str, Any]]:
        if self.rng.random() < 0.3:
            threading.Event().wait(0.001)
        return [{"id": query}]

    @ragotel.retrieve(leg="task")
    async def task(self, query: str) -> list[dict[str, Any]]:
        for _ in range(self.rng.randrange(3)):
            await asyncio.sleep(0)
        return [{"id": query}]

    @ragotel.generate
    async def stream(self, prompt: str) -> Any:
        for _ in range(2):
            await asyncio.sleep(0)
            yield self.leg(prompt)[0]["id"]

    @ragotel.request
    async def answer(self, question: str) -> str:
        loop = asyncio.get_running_loop()
        jobs = [
            loop.run_in_executor(self.pool, self.leg, question),
            self.task(question),
            asyncio.create_task(self.task(question)),
            asyncio.to_thread(self.leg, question),
        ]
        self.rng.shuffle(jobs)
        await asyncio.gather(*jobs)
        return "".join([part async for part in self.stream(question)])


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.integers(2, 12))
def test_nothing_crosses_requests(seed: int, count: int) -> None:
    """Interleaved on one loop and one pool, each stage names the request that asked it."""

    async def run(service: Service) -> None:
        await asyncio.gather(*(service.answer(f"question-{n}") for n in range(count)))

    with recording(fixed=False) as sink, ThreadPoolExecutor(3) as pool:
        asyncio.run(run(Service(random.Random(seed), pool)))
        requests = {s[at.REQUEST_ID]: s[at.QUERY] for s in sink.stages("request")}
        stages = sink.stages("retrieve")
        spans = sink.spans
    assert sorted(requests.values()) == sorted(f"question-{n}" for n in range(count))
    assert len(stages) == 6 * count
    assert all(requests[s[at.REQUEST_ID]] == s[at.RETRIEVAL_QUERY] for s in stages)
    traces = {s["attributes"][at.REQUEST_ID]: s["trace_id"] for s in spans}
    assert len(set(traces.values())) == count
    parents = {s["span_id"]: s["attributes"][at.REQUEST_ID] for s in spans}
    assert all(
        parents[s["parent_span_id"]] == s["attributes"][at.REQUEST_ID]
        for s in spans
        if s["parent_span_id"]
    )
