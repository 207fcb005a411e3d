"""The demo's labelled questions, on the language reference of the Python that runs the tests."""

from __future__ import annotations

from collections import Counter

import pytest

from ragotel.demo.corpus import Chunk, chunk_pages, parse, reference_site
from ragotel.demo.labels import SET, Label, grade, resolve, shipped_labels, states
from ragotel.demo.model import ABSTENTION
from ragotel.demo.traffic import COMPLAINT_LABEL, COMPLAINT_QUESTION


@pytest.fixture(scope="module")
def chunks() -> list[Chunk]:
    return chunk_pages(parse(document) for document in reference_site())


@pytest.fixture(scope="module")
def labels(chunks: list[Chunk]) -> list[Label]:
    return resolve(shipped_labels(), chunks)


def test_every_label_resolves(labels: list[Label]) -> None:
    """No shipped question is left out on this Python."""
    assert [label["label_id"] for label in labels] == [
        label["label_id"] for label in shipped_labels()
    ]


def test_every_claim_stands_in_each_of_its_chunks(labels: list[Label], chunks: list[Chunk]) -> None:
    """A resolved chunk states one of the claim's wordings."""
    texts = {chunk.chunk_id: chunk.text for chunk in chunks}
    wrong = [
        (label["label_id"], chunk_id)
        for label in labels
        for passage in label["passages"]
        for chunk_id in passage["chunk_ids"]
        if not states(texts[chunk_id], passage["spans"])
    ]
    assert wrong == []


def test_every_wording_is_found_by_a_reader() -> None:
    """An answer with a claim's wording is graded correct, one with half of it wrong."""
    for label in shipped_labels():
        if not label["answerable"]:
            continue
        spans = [passage["spans"][0] for passage in label["passages"]]
        assert grade(label, "Well: " + " And: ".join(spans)) == "correct", label["label_id"]
        assert grade(label, spans[0][: len(spans[0]) // 2]) == "wrong", label["label_id"]


def test_the_set_has_every_kind_of_question() -> None:
    """Sixty or more questions: some need two passages, some have alternatives, some no answer."""
    labels = shipped_labels()
    assert len({label["label_id"] for label in labels}) == len(labels) >= 60
    assert len({label["question"] for label in labels}) == len(labels)
    assert {label["set"] for label in labels} == {SET}
    kinds = Counter(
        "outside" if not label["answerable"] else f"{len(label['passages'])} passages"
        for label in labels
    )
    assert kinds["outside"] >= 6
    assert kinds["2 passages"] >= 6
    assert sum(len(p["spans"]) > 1 for label in labels for p in label["passages"]) >= 3


def test_unanswerable_questions_name_no_passage() -> None:
    """A question that is answerable has passages, and only such a one."""
    assert [
        label["label_id"]
        for label in shipped_labels()
        if label["answerable"] != bool(label["passages"])
    ] == []


def test_the_complaint_is_worded_unlike_its_label() -> None:
    """The complaint's question meets no label by its words: it needs `labels attach`."""
    by_id = {label["label_id"]: label for label in shipped_labels()}
    assert by_id[COMPLAINT_LABEL]["answerable"]
    assert COMPLAINT_QUESTION not in {label["question"] for label in by_id.values()}


def test_abstaining_is_graded_as_such() -> None:
    """The model's abstention is neither right nor wrong."""
    assert {grade(label, ABSTENTION) for label in shipped_labels()} == {"abstained"}


def test_a_claim_does_not_match_inside_a_word() -> None:
    """ "10 seats" does not stand in "110 seats"."""
    assert states("there are 10 seats.", ["10 seats"])
    assert not states("there are 110 seats.", ["10 seats"])
    assert states("110 seats, or 10 seats", ["10 seats"])
