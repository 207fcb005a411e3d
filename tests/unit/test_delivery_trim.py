"""Spans that are too large for any receiver."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragotel.delivery.otlp import encode_span
from ragotel.delivery.trim import fit_span, shorten
from ragotel.model import SpanData


def span(**attributes: str | int) -> SpanData:
    return SpanData(1, 2, 0, "rag.assemble", 1, 1, 2, dict(attributes))


def test_small_span_is_left_alone() -> None:
    """A span that fits is encoded as it is."""
    small = span(prompt="hello")
    assert fit_span(small, 1000) == (small, encode_span(small))


def test_long_text_keeps_head_and_tail() -> None:
    """The longest text is cut in the middle, the others stay, and the span says so."""
    big = span(**{"rag.prompt.text": "HEAD" + "x" * 300_000 + "TAIL", "rag.query": "why?"})
    fitted, encoded = fit_span(big, 100_000)
    assert len(encoded) <= 100_000
    assert len(encoded) > 90_000
    prompt = str(fitted.attributes.pop("rag.prompt.text"))
    assert (prompt[:4], prompt[-4:]) == ("HEAD", "TAIL")
    assert fitted.attributes == {"rag.query": "why?", "rag.content_mode": "truncated"}


def test_list_keeps_its_first_elements() -> None:
    """A JSON list stays valid JSON, best first, so that ranks do not move."""
    rows = [{"id": f"chunk-{n}", "score": 1.5} for n in range(10_000)]
    fitted, encoded = fit_span(span(**{"rag.candidates": json.dumps(rows)}), 50_000)
    kept = json.loads(str(fitted.attributes["rag.candidates"]))
    assert len(encoded) <= 50_000
    assert kept == rows[: len(kept)]
    assert len(kept) > 1000


def test_span_of_many_small_attributes_is_refused() -> None:
    """Where no text can be cut the fault is told, so that it can be counted."""
    with pytest.raises(ValueError, match="cannot be cut"):
        fit_span(span(**{f"key-{n}": "x" * 50 for n in range(200)}), 4096)


@given(
    text=st.one_of(st.text(max_size=3000), st.lists(st.text(max_size=50)).map(json.dumps)),
    target=st.integers(64, 2000),
)
def test_shortened_text_fits(text: str, target: int) -> None:
    """Cutting never gives more bytes than asked for."""
    assert len(shorten(text, target).encode()) <= target


@given(
    texts=st.dictionaries(st.text(min_size=1, max_size=10), st.text(max_size=5000), max_size=6),
    limit=st.integers(8192, 20_000),
)
def test_any_span_of_few_texts_fits(texts: dict[str, str], limit: int) -> None:
    """Whatever the texts are, a span of a few of them is made to fit."""
    _, encoded = fit_span(span(**texts), limit)
    assert len(encoded) <= limit
