"""Lists: what the later lists of a request need not say again."""

from __future__ import annotations

from ragotel.chunks import MAX_SPAN_CHARS, ChunkBook
from ragotel.columns import Candidates
from ragotel.lists import Told, dropped_json, settle, shas_of


def listed(book: ChunkBook, *pairs: tuple[str | None, str | None]) -> Candidates:
    """A settled list of ids and texts."""
    ids, texts = [key for key, _ in pairs], [text for _, text in pairs]
    found = Candidates(ids, [0.5] * len(pairs), texts)
    settle(found, book)
    return found


def test_texts_that_were_told_need_no_second_look() -> None:
    """The same texts in another order have the hashes of before; only the first list says them."""
    book, told = ChunkBook(), Told()
    first = listed(book, ("a", "one"), ("b", "two"), ("c", "three"))
    assert not told.recall(first)
    shas = shas_of(first, book)
    assert told.unsaid(first, 10) == shas
    second = listed(book, ("c", "three"), ("a", "one"))
    assert told.recall(second)
    assert second.shas == [shas[2], shas[0]]
    assert told.unsaid(second, 10) is None


def test_a_text_not_told_is_looked_at() -> None:
    """A new id, another text, a missing text, and what was beyond the limit are no old news."""
    book, told = ChunkBook(), Told()
    first = listed(book, ("a", "one"), ("b", "two"), ("c", "three"))
    shas_of(first, book)
    told.unsaid(first, 2)
    assert told.recall(listed(book, ("b", "two")))
    assert not told.recall(listed(book, ("d", "one")))
    assert not told.recall(listed(book, ("a", "two")))
    assert not told.recall(listed(book, ("a", None)))
    assert not told.recall(listed(book, ("c", "three")))


def test_an_id_with_two_texts_makes_all_uncertain() -> None:
    """From then on each list is looked at, and the id is told each time."""
    book, told = ChunkBook(), Told()
    for text in ("one", "other"):
        found = listed(book, ("a", text))
        shas_of(found, book)
        assert told.unsaid(found, 10) == found.shas
    again = listed(book, ("a", "one"))
    assert not told.recall(again)
    shas_of(again, book)
    assert told.unsaid(again, 10) == again.shas


def test_a_book_says_whether_a_span_had_no_room() -> None:
    """What did not fit goes with a later list, which must therefore be looked at."""
    book = ChunkBook()
    texts = [letter * 90_000 for letter in "abcdefg"]
    shas = book.shas(texts)
    assert len(book.take_new(shas, texts, frozenset())) == MAX_SPAN_CHARS // 90_000
    assert book.has_more
    assert len(book.take_new(shas, texts, frozenset())) == 2
    assert not book.has_more


def test_what_was_dropped_is_written_alike_in_either_way() -> None:
    """One reason for all is written at once, several one by one; odd ids are escaped."""
    assert dropped_json([("a", "limit", True), ("b", "limit", True)]) == (
        '[{"id":"a","reason":"limit","inferred":true},{"id":"b","reason":"limit","inferred":true}]'
    )
    assert dropped_json([("a", "limit", True), ("b", "other", False)]) == (
        '[{"id":"a","reason":"limit","inferred":true},{"id":"b","reason":"other","inferred":false}]'
    )
    assert dropped_json([('"', "50%", True), (None, "50%", True)]) == (
        '[{"id":"\\"","reason":"50%","inferred":true},{"id":null,"reason":"50%","inferred":true}]'
    )
