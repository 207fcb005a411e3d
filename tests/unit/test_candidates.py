"""Candidates of any shape are understood, and what is not known stays unknown."""

from __future__ import annotations

import json
import uuid
from collections import namedtuple
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel

import ragotel
from ragotel import attributes as at
from ragotel.candidates import read
from ragotel.chunks import ChunkBook
from ragotel.lists import list_json, settle, shas_of
from ragotel.testing import recording
from ragotel.text import chunk_sha


@dataclass
class Chunk:
    id: str
    score: float
    text: str
    metadata: dict[str, Any] = field(default_factory=dict)


class Passage(BaseModel):
    chunk_id: str
    similarity: float
    content: str


class Document:
    """A framework's document: text and metadata, often no id, never a score."""

    def __init__(self, page_content: str, metadata: dict[str, Any], id: str | None = None) -> None:
        self.page_content = page_content
        self.metadata = metadata
        self.id = id


class Node:
    """A node that keeps its text behind a method and its score in a wrapper."""

    def __init__(self, node_id: str, text: str) -> None:
        self.node_id = node_id
        self.text = text
        self.metadata = {"doc_id": f"doc-of-{node_id}"}

    def get_content(self) -> str:
        return self.text


@dataclass
class NodeWithScore:
    node: Node
    score: float | None


@dataclass(slots=True)
class Slotted:
    doc_id: str
    relevance_score: float


class Frugal:
    """Properties beyond a candidate's own parts must not be touched."""

    id = "frugal"

    @property
    def embedding(self) -> Any:
        raise AssertionError("an embedding was fetched")

    @property
    def parent_document(self) -> Any:
        raise AssertionError("a document was fetched")


Row = namedtuple("Row", "id score text")
POINT = SimpleNamespace(id=7, version=3, score=0.5, payload={"text": "seven", "doc_id": "d"})
HIT = {"_id": "a", "_score": 2.5, "_source": {"text": "eins", "doc_id": "d"}}

SHAPES: dict[str, tuple[Any, list[Any], list[Any], list[Any]]] = {
    "dataclasses": ([Chunk("a", 0.5, "x")], ["a"], [0.5], ["x"]),
    "pydantic": ([Passage(chunk_id="a", similarity=0.5, content="x")], ["a"], [0.5], ["x"]),
    "slots": ([Slotted("d", 0.5)], ["d"], [0.5], [None]),
    "named tuples": ([Row("a", 0.5, "x")], ["a"], [0.5], ["x"]),
    "dicts": ([{"id": "a", "score": 1}, {"id": "b"}], ["a", "b"], [1.0, None], [None, None]),
    "framework documents": (
        [Document("x", {"chunk_id": "m"}), Document("y", {})],
        ["m", chunk_sha("y")], [None, None], ["x", "y"],
    ),
    "document, score": ([(Document("x", {"id": "m"}), 0.5)], ["m"], [0.5], ["x"]),
    "score, document": ([(0.5, Document("x", {"id": "m"}))], ["m"], [0.5], ["x"]),
    "dict, score": ([({"id": "a", "text": "x"}, 0.5)], ["a"], [0.5], ["x"]),
    "id, score": ([("a", 0.5), ("b", 0.25)], ["a", "b"], [0.5, 0.25], [None, None]),
    "int id, score": ([(3, 0.5), (4, 0.25)], ["3", "4"], [0.5, 0.25], [None, None]),
    "id, text, score": ([("a", "some text", 0.5)], ["a"], [0.5], ["some text"]),
    "text, score": ([("some text", 0.5)], [chunk_sha("some text")], [0.5], ["some text"]),
    "nodes with scores": ([NodeWithScore(Node("n", "x"), None)], ["n"], [None], ["x"]),
    "points": (SimpleNamespace(points=[POINT]), ["7"], [0.5], ["seven"]),
    "hits": ({"hits": [{"id": "a", "score": 0.5}]}, ["a"], [0.5], [None]),
    "hits in hits": ({"took": 1, "hits": {"total": 1, "hits": [HIT]}}, ["a"], [2.5], ["eins"]),
    "matches": (
        {"matches": [{"id": "a", "score": 0.5, "metadata": {"text": "x"}}], "namespace": ""},
        ["a"], [0.5], ["x"],
    ),
    "documents": (
        {"documents": [SimpleNamespace(id="a", content="x", meta={}, score=0.5)]},
        ["a"], [0.5], ["x"],
    ),
    "dict of nested lists": (
        {"ids": [["a", "b"]], "distances": [[0.1, 0.2]], "documents": [["x", "y"]],
         "metadatas": [[{"doc_id": "d"}, None]], "embeddings": None},
        ["a", "b"], [0.1, 0.2], ["x", "y"],
    ),
    "dict of lists": ({"id": ["a"], "score": [0.5]}, ["a"], [0.5], [None]),
    "documents and scores": (([Document("x", {"id": "m"})], [0.5]), ["m"], [0.5], ["x"]),
    "list beside something": (([{"id": "a"}], {"took": 3}), ["a"], [None], [None]),
    "distances and indices": (
        (np.array([[0.5, 0.25]], dtype="float64"), np.array([[7, 9]])),
        ["7", "9"], [0.5, 0.25], [None, None],
    ),
    "one list per query": ([[{"id": 1, "distance": 0.5, "entity": {"text": "x"}}]],
                           ["1"], [0.5], ["x"]),
    "ids": ([3, 4], ["3", "4"], [None, None], [None, None]),
    "array of ids": (np.array([3, 4]), ["3", "4"], [None, None], [None, None]),
    "array of rows": (np.array([[3, 0.5], [4, 0.25]]), ["3", "4"], [0.5, 0.25], [None, None]),
    "array of named columns": (
        np.array([("a", 0.5)], dtype=[("id", "U4"), ("score", "f8")]), ["a"], [0.5], [None],
    ),
    "data frame": (
        pd.DataFrame({"chunk_id": ["a", "b"], "score": [0.5, float("nan")], "text": ["x", "y"]}),
        ["a", "b"], [0.5, None], ["x", "y"],
    ),
    "rows of a data frame": (
        [row for _, row in pd.DataFrame({"id": ["a"], "score": [0.5]}).iterrows()],
        ["a"], [0.5], [None],
    ),
    "texts": (["one passage", "two"], [chunk_sha("one passage"), chunk_sha("two")],
              [None, None], ["one passage", "two"]),
    "scores by id": ({"a": 0.5, "b": 0.25}, ["a", "b"], [0.5, 0.25], [None, None]),
    "records by id": ({"a": {"score": 0.5, "text": "x"}}, ["a"], [0.5], ["x"]),
    "uuids": ([uuid.UUID(int=1)], [str(uuid.UUID(int=1))], [None], [None]),
    "tuple of dicts": (({"id": "a"}, {"id": "b"}), ["a", "b"], [None, None], [None, None]),
    "mixed": ([{"id": "a"}, None, ("b", 0.5), "some text"],
              ["a", None, "b", chunk_sha("some text")], [None, None, 0.5, None],
              [None, None, None, "some text"]),
    "missing everything": ([{"id": None, "score": None, "text": None}], [None], [None], [None]),
    "empty": ([], [], [], []),
    "only named attributes are read": ([Frugal()], ["frugal"], [None], [None]),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str) -> None:
    """Ids as texts, scores as floats, texts as they are; nothing is invented."""
    value, ids, scores, texts = SHAPES[name]
    found = read(value)
    assert found is not None
    book = ChunkBook()
    settle(found, book)
    made = json.loads(list_json(found, shas_of(found, book), 100))
    assert [row["id"] for row in made] == ids
    assert [row["score"] for row in made] == scores
    assert found.texts == texts
    assert [row.get("sha") for row in made] == [text and chunk_sha(text) for text in texts]


@pytest.mark.parametrize(
    "value",
    [None, 7, "a text", b"bytes", object(), iter([{"id": "a"}]), {}, [object()], (x for x in "ab")],
)
def test_what_is_no_list_of_candidates_is_none(value: object) -> None:
    """Not understood is not the same as empty."""
    assert read(value) is None


def test_an_iterator_is_not_consumed() -> None:
    """A generator of candidates is left as it is."""
    hits = iter([{"id": "a"}, {"id": "b"}])
    assert read(hits) is None
    assert next(hits) == {"id": "a"}


def test_extras_are_read_where_present() -> None:
    """doc_id, doc_version, superseded, tokens and leg, on the element or in its metadata."""
    found = read(
        [
            {"id": "a", "doc_id": "d", "metadata": {"superseded": True, "tokens": 12}},
            {"id": "b", "metadata": {"doc_version": 3, "leg": "bm25", "token_count": "7"}},
        ]
    )
    assert found is not None
    settle(found, ChunkBook())
    assert json.loads(list_json(found, None, 10)) == [
        {"id": "a", "score": None, "doc_id": "d", "superseded": True, "tokens": 12},
        {"id": "b", "score": None, "doc_version": "3", "leg": "bm25", "tokens": 7},
    ]


def test_distances_are_lower_is_better() -> None:
    """A distance stands in for a missing score, and says which way it runs."""
    found = read({"ids": [["a"]], "distances": [[0.1]]})
    assert found is not None
    assert found.higher_is_better is False


def test_the_users_extractors_come_first() -> None:
    """An extractor that raises keeps what is found without it, and counts."""
    readers = {"id": lambda item: item["key"], "doc_id": lambda item: 1 / 0}
    found = read([{"id": "a", "key": "k"}], readers)
    assert found is not None
    assert (found.ids, found.faults) == (["k"], 1)


def test_scores_keep_their_value_through_an_overwrite() -> None:
    """A reranker that overwrites scores and sorts in place does not change what was read."""
    hits = [Chunk("a", 0.5, "x"), Chunk("b", 0.25, "y")]
    found = read(hits)
    for hit in hits:
        hit.score = 9.0
    hits.reverse()
    assert found is not None
    assert (found.ids, found.scores) == (["a", "b"], [0.5, 0.25])


class Tensor:
    """A 0-d view into an array, as torch gives them: it changes with the array."""

    shape: tuple[int, ...] = ()

    def __init__(self, cell: list[float]) -> None:
        self.cell = cell

    def __float__(self) -> float:
        return self.cell[0]


def test_views_into_an_array_are_cast_at_once() -> None:
    """Scores that are views are read before the array changes."""
    cell = [0.5]
    found = read([{"id": "a", "score": Tensor(cell)}])
    cell[0] = 9.0
    assert found is not None
    assert found.scores == [0.5]


@pytest.mark.parametrize(
    ("value", "score", "state"),
    [
        (np.float32(0.5), 0.5, None),
        (np.float16(0.5), 0.5, None),
        (Decimal("0.5"), 0.5, None),
        (np.int64(3), 3.0, None),
        ("0.5", 0.5, None),
        (True, 1.0, None),
        (None, None, None),
        (float("nan"), None, "nan"),
        (float("-inf"), None, "inf"),
        (10**400, None, "inf"),
        ("high", None, "invalid"),
        ([1, 2], None, "invalid"),
    ],
)
def test_scores_are_floats_or_null_with_a_mark(value: Any, score: Any, state: Any) -> None:
    """Never NaN, never 0.0 for a missing one."""
    found = read([{"id": "a", "score": value}])
    assert found is not None
    settle(found, ChunkBook())
    expected = {"id": "a", "score": score} | ({"score_state": state} if state else {})
    assert json.loads(list_json(found, None, 10)) == [expected]


@pytest.mark.parametrize(
    ("value", "key"),
    [(1, "1"), ("b", "b"), (None, None), ("", None), (uuid.UUID(int=1), str(uuid.UUID(int=1))),
     (np.int64(5), "5"), (2.0, "2"), (float("nan"), None), (b"x", "x")],
)  # fmt: skip
def test_ids_are_texts_or_null(value: Any, key: str | None) -> None:
    """A missing id is null: neither its rank nor an empty text."""
    found = read([{"id": value, "score": 0.5}])
    assert found is not None
    settle(found, ChunkBook())
    assert found.keys == [key]


def test_of_a_huge_list_the_first_elements_are_read_and_the_number_of_all_is_kept() -> None:
    """A list of 20,000 costs the service no more than one of 5,000, and its count stays true."""
    hits = [{"id": f"doc#{n}", "score": 1.0} for n in range(20_000)]

    @ragotel.retrieve
    def search(question: str) -> list[dict[str, Any]]:
        return hits

    with recording() as recorded:
        assert search("all") is hits
    (span,) = recorded.stages("retrieve")
    assert span[at.COUNT] == 20_000
    listed = span[at.DOCUMENTS]
    assert [listed[0]["id"], listed[-1]["id"], len(listed)] == ["doc#0", "doc#999", 1_000]


BIG = 1_000_000
"""Elements; a reader that looked at them all would make the service wait for seconds."""


class Made(Sequence[Any]):
    """Makes its elements when they are asked for, as rows of a cursor are; counts them."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.made = 0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: Any) -> Any:
        self.made += 1
        return {"id": f"c{at}", "score": 0.5}


@pytest.mark.parametrize(
    ("value", "first", "read_count", "unread"),
    [
        (Made(BIG), "c0", 5_000, BIG - 5_000),
        ({"hits": Made(BIG)}, "c0", 5_000, BIG - 5_000),
        (tuple([("a", 0.5)] * BIG), "a", 5_000, BIG - 5_000),
        (range(10**12), 0, 5_000, 10**12 - 5_000),
        (np.arange(BIG), 0, 5_000, BIG - 5_000),
        (pd.DataFrame({"id": range(BIG), "score": 0.5}), 0, 5_000, BIG - 5_000),
        ({f"c{n}": 0.5 for n in range(BIG)}, "c0", 5_000, BIG - 5_000),
        ((np.zeros((1, BIG)), np.arange(BIG).reshape(1, BIG)), 0, 5_000, 0),
        ({"ids": [["a"] * BIG], "distances": [[0.5] * BIG]}, "a", 5_000, 0),
    ],
)
def test_of_a_long_result_of_any_kind_the_first_elements_are_read(
    value: Any, first: Any, read_count: int, unread: int
) -> None:
    """The rest is counted where its number costs nothing, and no element of it is made."""
    found = read(value)
    assert found is not None
    assert (found.ids[0], len(found), found.unread) == (first, read_count, unread)
    if isinstance(value, Made):
        assert value.made == 5_000


def test_a_list_of_very_many_lists_is_read_up_to_a_limit() -> None:
    """Each of them costs something, whatever it holds; together they cost no more than a limit."""
    found = read([[{"id": f"c{n}"}] for n in range(5_000)])
    assert found is not None
    assert 1_000 < len(found) < 5_000
    assert found.ids[:2] == ["c0", "c1"]


class Plain:
    """Has nothing that a candidate has."""

    def __init__(self, n: int) -> None:
        self.n = n


def test_thousands_of_objects_that_are_no_candidates_are_told_by_one_look() -> None:
    """Objects of one class are not looked at one by one when their names say nothing."""
    assert read([Plain(n) for n in range(3)]) is None
    calls = 0

    class Counting(Plain):
        @property
        def document(self) -> None:
            nonlocal calls
            calls += 1
            raise RuntimeError

    assert read([Counting(n) for n in range(3_000)]) is None
    assert calls < 10


class Unmeasured:
    """Stands where a text is expected, and cannot be asked for its length."""

    def __len__(self) -> int:
        raise RuntimeError


def test_a_text_that_is_no_text_does_not_cost_the_span() -> None:
    """The list is there, its text unknown."""
    result = [{"id": "a", "text": Unmeasured()}]
    with recording() as sink:
        assert ragotel.ingest(lambda: result)() is result
        assert ragotel.retrieve(lambda: result)() is result
        assert [row["id"] for row in sink.stage("retrieve")[at.DOCUMENTS]] == ["a"]
        assert [row["id"] for row in sink.stage("ingest")[at.CANDIDATES]] == ["a"]


def test_lists_within_lists_within_lists_end() -> None:
    """A matrix, and a list that holds itself many times, cost a bounded number of looks."""
    itself: list[Any] = []
    itself.extend([itself] * 30)
    matrix = [[[[None] * 900] * 900] * 900] * 900
    with recording() as sink:
        for value in (itself, matrix, tuple(itself)):
            for decorate in (ragotel.request, ragotel.assemble, ragotel.generate, ragotel.retrieve):
                assert decorate(lambda value=value: value)() is value
        assert len(sink.raw) == 12


def test_thousands_of_strangers_among_candidates_cost_little() -> None:
    """A class whose elements say nothing again and again is no longer asked; ranks stay true."""
    calls = 0

    class Asked:
        def __getattr__(self, name: str) -> Any:
            nonlocal calls
            calls += 1
            raise AttributeError(name)

    found = read([{"id": "a", "score": 0.5}, *(Asked() for _ in range(3_000)), {"id": "b"}])
    assert found is not None
    assert (len(found), found.ids[0], found.ids[-1], found.ids[1]) == (3_002, "a", "b", None)
    assert calls < 3_000 * 10


def test_long_rows_among_candidates_cost_as_little_as_short_ones() -> None:
    """A list of another list's length, among thousands of candidates, is no pair: few parts do."""
    parts = 0

    class Row(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            nonlocal parts
            for part in super().__iter__():
                parts += 1
                yield part

    row = Row([7] * 3_000)
    found = read([{"id": "a", "score": 0.5}, *[row] * 3_000])
    assert found is not None
    assert (len(found), found.ids[0]) == (3_001, "a")
    assert parts < 3_000 * 50


def test_objects_that_hold_themselves_are_read_to_a_depth() -> None:
    """Whatever they are asked for, what they give is asked again: a few times, not a thousand."""
    asked = 0

    class Endless:
        def __getattr__(self, name: str) -> Any:
            nonlocal asked
            if name.startswith("__"):
                raise AttributeError(name)
            asked += 1
            return self

    read([Endless()] * 100)
    assert 0 < asked < 100 * 1_000


class Counted(str):
    """A text that counts how often somebody goes through its characters."""

    walks = 0

    def __iter__(self) -> Iterator[str]:
        Counted.walks += 1
        return super().__iter__()


def test_metadata_that_is_text_is_not_walked_through() -> None:
    """A database gives JSON as text: its characters are no names, and there may be a million."""
    text = Counted("x" * 1_000)
    found = read([{"id": f"c{n}", "metadata": text} for n in range(20)])
    assert found is not None
    assert found.ids[:2] == ["c0", "c1"]
    mixed = read([{"id": "a", "metadata": text}, {"id": "b", "metadata": {"doc_id": "d"}}, text])
    assert mixed is not None
    assert (mixed.ids, mixed.extras["doc_id"]) == (["a", "b", None], [None, "d", None])
    assert Counted.walks == 0


class Walked(list[Any]):
    """A list that counts how many of its elements were asked for."""

    steps = 0

    def __iter__(self) -> Iterator[Any]:
        for element in super().__iter__():
            Walked.steps += 1
            yield element


@pytest.mark.parametrize("leaf", [None, "a", 1, [1]])
def test_lists_of_lists_of_lists_cost_a_bounded_number_of_steps(leaf: Any) -> None:
    """As a prompt or a list: whatever stands at the bottom, it costs a look as well."""
    value = Walked([leaf])
    for _ in range(4):
        value = Walked([value] * 1_000)
    Walked.steps = 0
    with recording() as sink:
        for decorate in (ragotel.assemble, ragotel.retrieve):
            assert decorate(lambda: value)() is value
        assert len(sink.raw) == 2
    assert Walked.steps < 100_000


def test_a_reply_of_very_many_citations_is_read_up_to_a_limit() -> None:
    """Of choices too."""
    choices = [{"finish_reason": "stop"}] * BIG
    reply = {"text": "yes", "citations": Walked(["a"] * BIG), "choices": choices}
    Walked.steps = 0
    with recording() as sink:
        assert ragotel.generate(lambda: reply)() is reply
        span = sink.stage("generate")
    assert (len(span[at.CITATIONS]), len(span[at.FINISH_REASONS])) == (1_000, 100)
    assert Walked.steps <= 5_001


def test_pairs_that_hold_themselves_are_read_to_a_depth() -> None:
    """A row whose document is the row again costs a few looks, not as many as the stack lasts."""
    row = Walked([0, 0.5])
    row.append(row)
    Walked.steps = 0
    read([row] * 100)
    assert 0 < Walked.steps < 100 * 100


def test_a_nest_of_lists_is_no_id() -> None:
    """Its text would take gigabytes; a pair, or an object of a document store, is one."""
    nest: list[Any] = ["x" * 1_000]
    for _ in range(4):
        nest = [nest] * 1_000
    itself: list[Any] = []
    itself.append(itself)
    ids = [("doc", 1), {"$oid": "5f"}, nest, itself, dict.fromkeys(range(9_000), "x")]
    with recording() as sink:
        ragotel.retrieve(lambda: [{"id": one, "text": "t", "score": 1.0} for one in ids])()
        rows = sink.stage("retrieve")[at.DOCUMENTS]
    assert [row.get("id") for row in rows][:2] == ["('doc', 1)", "{'$oid': '5f'}"]
    assert [row.get("id") for row in rows][2:] == [rows[2].get("id")] * 3
