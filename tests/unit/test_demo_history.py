"""The demo's corpus and its history: each mistake really changes what is indexed or sent."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from ragotel.demo import history, traffic
from ragotel.demo.corpus import Chunk, Document, chunk_pages, parse, reference_site, sentences
from ragotel.demo.labels import resolve, shipped_labels

TODAY = date(2026, 11, 30)


@pytest.fixture(scope="module")
def site() -> list[Document]:
    return reference_site()


def chunks_of(crawl: list[Document]) -> dict[str, Chunk]:
    return {chunk.chunk_id: chunk for chunk in chunk_pages(parse(page) for page in crawl)}


def test_the_reference_gives_about_a_thousand_passages(site: list[Document]) -> None:
    """Every page parses; passages are short and named by page and position."""
    assert all(parse(page).text for page in site)
    chunks = chunks_of(site)
    assert 800 < len(chunks) < 1500
    assert list(chunks)[:2] == ["assert#0", "assert#1"]
    assert sum(len(chunk.text) for chunk in chunks.values()) / len(chunks) < 400


def test_no_long_paragraph_stands_twice(site: list[Document]) -> None:
    """A paragraph that several topics repeat is indexed once."""
    paragraphs = [
        text for page in site for text in set(parse(page).text.split("\n\n")) if len(text) >= 60
    ]
    assert len(paragraphs) == len(set(paragraphs))


def test_a_page_with_another_ruler_parses_to_nothing(site: list[Document]) -> None:
    """After the new theme the pages concerned are listed, and empty; all others are as before."""
    crawl = history.rethemed(site)
    empty = [page.doc_id for page in map(parse, crawl) if not page.text]
    assert empty == sorted(history.RETHEMED)
    before, after = chunks_of(site), chunks_of(crawl)
    gone = before.keys() - after.keys()
    assert {chunk_id.split("#")[0] for chunk_id in gone} == set(history.RETHEMED)
    assert {name: before[name] for name in after} == after


def test_a_truncated_crawl_loses_the_ends_of_long_pages(site: list[Document]) -> None:
    """Short pages stay whole; long ones lose passages from the end, none becomes empty."""
    before, after = chunks_of(site), chunks_of(history.truncated(site))
    assert len(before) - len(after) > 100
    assert {chunk.doc_id for chunk in after.values()} == {c.doc_id for c in before.values()}
    short = {page.doc_id for page in site if len(page.source) <= history.CRAWL_LIMIT_CHARS}
    lost = {chunk.doc_id for name, chunk in before.items() if name not in after}
    assert lost
    assert not lost & short


def test_the_archive_holds_superseded_twins(site: list[Document]) -> None:
    """Each old page is its page with one statement changed, and is marked superseded."""
    chunks = chunks_of(history.with_archive(site))
    old = {name: chunk for name, chunk in chunks.items() if chunk.superseded}
    differing = [
        chunk.doc_id
        for name, chunk in old.items()
        if chunk.text != chunks[name.removeprefix("archive/")].text
    ]
    assert differing == sorted({chunk.doc_id for chunk in old.values()})
    assert len(differing) == 6


def test_clipped_template_is_another_version() -> None:
    """The templates have different versions, and the clipping one cuts a passage."""
    versions = {
        template.version
        for template in (history.TEMPLATE, history.CLIPPED_TEMPLATE, history.VAGUE_TEMPLATE)
    }
    assert len(versions) == 3
    sent = history.CLIPPED_TEMPLATE.passage.format(id="a#0", title="A", text="x" * 500)
    assert sent.count("x") == 120


def test_sentences_lose_no_text() -> None:
    """Cutting at sentences keeps every word."""
    text = 'One, e.g. this. Two: "three" (four). Five?\nSix 1.5 is one.'
    assert sentences(text) == [
        "One, e.g. this.",
        "Two:",
        '"three" (four).',
        "Five?",
        "Six 1.5 is one.",
    ]


def test_traffic_lies_on_its_day_and_is_the_same_each_time(site: list[Document]) -> None:
    """Fourteen days end yesterday; each day's questions are equal in every run."""
    labels = resolve(shipped_labels(), list(chunks_of(site).values()))
    start = traffic.first_day(TODAY)
    assert traffic.day_of(start, history.DAYS) == TODAY - timedelta(days=1)
    assert traffic.complaint_day(start) == TODAY - timedelta(days=11)
    for day in range(1, history.DAYS + 1):
        asks = traffic.day_traffic(start, day, labels)
        assert asks == traffic.day_traffic(start, day, labels)
        assert {ask.at.date() for ask in asks} == {traffic.day_of(start, day)}
        assert len({ask.user for ask in asks}) > 4
        assert sum(ask.label is None for ask in asks) >= 4
