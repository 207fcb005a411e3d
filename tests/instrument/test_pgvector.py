"""pgvector: what a search in SQL says of itself."""

from __future__ import annotations

import pytest
from laws import ids, scores

from ragotel.instrument import pgvector
from ragotel.testing import Recorded

SQL = "select id, text, embedding {} %s as distance from chunks order by distance LIMIT 5"


@pytest.mark.parametrize(
    ("operator", "kind"),
    [("<->", "l2"), ("<=>", "cosine_distance"), ("<#>", "negative_dot"), ("<+>", "l1")],
)
def test_the_operator_tells_the_kind(recorded: Recorded, operator: str, kind: str) -> None:
    """All operators are distances, each of its own kind; k is the limit."""
    with pgvector.searching(SQL.format(operator), query="how long?", index="docs") as stage:
        stage.candidates([{"id": 7, "text": "one", "distance": 0.25}])
    found = recorded.stage("retrieve")
    assert (ids(found), scores(found)) == (["7"], [0.25])
    assert (found["rag.score.kind"], found["rag.score.higher_is_better"]) == (kind, False)
    assert found["gen_ai.retrieval.top_k"] == 5
    assert found["gen_ai.data_source.id"] == "docs"
    assert found["gen_ai.retrieval.query.text"] == "how long?"


def test_several_measures_are_no_kind(recorded: Recorded) -> None:
    """A sum of two distances is neither of them."""
    with pgvector.searching("select a <-> %s + b <=> %s from t") as stage:
        stage.candidates([])
    assert "rag.score.kind" not in recorded.stage("retrieve")
