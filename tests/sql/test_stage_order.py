"""What the order of stages says: a list cut before it is reranked, and an agent's second search."""

from __future__ import annotations

import pytest
from small_worlds import COLUMNS, span_row

from ragotel.store import Store

HITS = [{"id": "a", "score": 0.9}, {"id": "b", "score": 0.8}]


@pytest.mark.parametrize(
    ("stages", "is_cut_before"),
    [
        (("retrieve", "rerank", "assemble", "generate"), False),
        (("retrieve", "assemble", "rerank", "assemble", "generate"), True),
        (("retrieve", "assemble", "retrieve", "rerank", "assemble", "generate"), False),
    ],
)
def test_truncation_before_reranking(
    store: Store, stages: tuple[str, ...], is_cut_before: bool
) -> None:
    """A rerank after an assembly is one of a cut list, unless a new search lies in between."""
    rows = [span_row("t", "r", "root", "", "request", 0, 900, {})]
    rows += [
        span_row(
            *("t", "r", f"s{at}", "root", stage, 10 * at + 10, 5),
            {"rag.candidates": HITS, "rag.candidates.count": "2"} if stage != "generate" else {},
        )
        for at, stage in enumerate(stages)
    ]
    store.insert("otel_traces", rows, COLUMNS)
    found = store.scalar("select reranked_after_truncation from rag_request_flows")
    assert bool(found) is is_cut_before
