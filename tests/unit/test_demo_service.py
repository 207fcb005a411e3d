"""The demo's pipeline, run plain: what it finds, packs and answers."""

from __future__ import annotations

from collections import Counter

import pytest

from ragotel.demo.corpus import Chunk, chunk_pages, parse, reference_site
from ragotel.demo.embedding import Encoder
from ragotel.demo.history import SMALL_BUDGET_TOKENS, rethemed
from ragotel.demo.labels import grade, resolve, shipped_labels
from ragotel.demo.model import ABSTENTION, questions
from ragotel.demo.search import Index
from ragotel.demo.service import RERANKED, TOP_K, DocsBot, count_tokens


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder()


@pytest.fixture
def bot(encoder: Encoder) -> DocsBot:
    bot = DocsBot(encoder)
    bot.ingest(reference_site(), index_version="v1")
    return bot


def ranked(bot: DocsBot, question: str) -> list[tuple[str, float]]:
    fused = bot.fuse(bot.search_words(question), bot.search_meaning(question))
    return [(hit.chunk_id, hit.score) for hit in bot.rerank(question, fused)]


def test_the_pipeline_is_deterministic(encoder: Encoder, bot: DocsBot) -> None:
    """A second index, and vectors computed in another order, give the same lists and answers."""
    asked = [label["question"] for label in shipped_labels()]
    first = [(ranked(bot, question), bot.answer(question, "ana", "c").answer) for question in asked]
    other = DocsBot(Encoder())
    other.ingest(reversed_site := reference_site()[::-1], index_version="v1")
    assert len(reversed_site) > 70
    again = [
        (ranked(other, question), other.answer(question, "ana", "c").answer)
        for question in reversed(asked)
    ]
    assert first == again[::-1]


def test_most_questions_are_answered_right_and_nothing_is_invented(bot: DocsBot) -> None:
    """Two of three answerable questions are right, not all; the others are abstained from."""
    labels = resolve(shipped_labels(), bot.release.index.chunks)
    grades = Counter(
        (label["answerable"], grade(label, bot.answer(label["question"], "ana", "c").answer))
        for label in labels
    )
    answerable = sum(label["answerable"] for label in labels)
    assert 0.6 < grades[True, "correct"] / answerable < 0.95
    assert grades[False, "abstained"] == len(labels) - answerable


def test_both_legs_return_k_passages_best_first(bot: DocsBot) -> None:
    """Each leg gives at most k passages by falling score; words that no passage has give none."""
    for search in (bot.search_words, bot.search_meaning):
        hits = search("What does the continue statement do?")
        assert len(hits) == TOP_K
        assert hits == sorted(hits, key=lambda hit: -hit.score)
    assert bot.search_words("xyzzy plugh") == []


def test_reranking_keeps_what_it_was_given(bot: DocsBot) -> None:
    """The reranked list is a part of the fused one."""
    question = "Are leading zeros allowed in a decimal number?"
    fused = bot.fuse(bot.search_words(question), bot.search_meaning(question))
    reranked = bot.rerank(question, fused)
    assert len(reranked) == RERANKED
    assert {hit.chunk_id for hit in reranked} <= {hit.chunk_id for hit in fused}


def test_a_small_budget_drops_passages_from_the_end(bot: DocsBot) -> None:
    """What does not fit is left out; a prompt without passages makes the model abstain."""
    question = "Are leading zeros allowed in a decimal number?"
    hits = bot.rerank(question, bot.search_words(question))
    whole = bot.build_prompt(question, hits)
    bot.release.budget = SMALL_BUDGET_TOKENS
    small = bot.build_prompt(question, hits)
    assert [f"[{hit.chunk_id}]" in whole for hit in hits] == [True] * RERANKED
    sent = [f"[{hit.chunk_id}]" in small for hit in hits]
    assert sent == sorted(sent, reverse=True)
    assert sum(sent) < RERANKED
    bot.release.budget = 1
    assert bot.complete(bot.build_prompt(question, hits)) == ABSTENTION


def test_an_ingest_run_counts_what_it_did(bot: DocsBot) -> None:
    """Empty pages and deleted passages are counted against the version before."""
    before = {chunk.chunk_id for chunk in bot.release.index.chunks}
    run = bot.ingest(rethemed(reference_site()), index_version="v2")
    after = {chunk.chunk_id for chunk in bot.release.index.chunks}
    assert (run.index_version, run.parent_version) == ("v2", "v1")
    assert run.docs_empty == 6
    assert run.docs_listed == run.docs_parsed + run.docs_empty
    assert (run.chunks_written, run.chunks_deleted) == (0, len(before - after))


def test_an_index_without_passages_finds_nothing(encoder: Encoder) -> None:
    """An empty version answers, with empty lists."""
    empty = Index("v0", (), encoder)
    assert empty.by_words("a question", 3) == empty.by_meaning("a question", 3) == []


def test_a_question_that_asks_two_things_is_split() -> None:
    """Each part is answered by itself; an "and" inside of a part stays."""
    assert questions("What is a, and what is b?") == ["What is a", "what is b?"]
    assert questions("What does x and y return?") == ["What does x and y return?"]


def test_vectors_are_read_back_from_the_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The second encoder computes nothing; a damaged file is computed anew."""
    folder = tmp_path_factory.mktemp("cache")
    texts = ["one sentence", "another sentence"]
    assert Encoder(folder).learn(texts) == 2
    second = Encoder(folder)
    assert second.learn(texts) == 0
    assert (second.vectors(texts) == Encoder().vectors(texts)).all()
    (file,) = folder.iterdir()
    file.write_bytes(b"not vectors")
    assert Encoder(folder).learn(texts) == 2


def test_tokens_are_words_and_signs() -> None:
    """A budget counts what the model reads."""
    assert count_tokens('the "assert" statement.') == 6


def test_chunk_ids_are_unique() -> None:
    """A passage is named once."""
    chunks: list[Chunk] = chunk_pages(parse(page) for page in reference_site())
    assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)
