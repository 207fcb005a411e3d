"""Survivors: which candidates stand in this prompt, whole or in part.

Pipeline: recorder -> encoding (on the worker's thread) -> [survivors] -> span attributes

Texts are looked for by their first characters, and what one candidate explains is no longer
searched for the others: so an overlapping neighbour is not taken for sent, and each further search
reads only what is left, mostly the template.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ragotel.pacing import Pace
from ragotel.page import (
    PROBE_CHARS,
    WINDOW_CHARS,
    Page,
    Probe,
    common_chars,
    make_probe,
    make_probes,
    simplified_words,
    simplify,
    stands_alone,
)

_HINT_CHARS = 2000
_SCAN_LIMIT_CHARS = 400_000_000
"""Beyond so much reading of one prompt the search ends; what was not looked for stays unknown."""
_PROBED_AT_ONCE = 64
_WORD = re.compile(r"\S+")


@dataclass(slots=True)
class Survivor:
    """A candidate that stands in the prompt; *rank* counts the list that went in from 0."""

    rank: int
    start: int
    """Where it stands, in characters."""
    end: int
    kept_chars: int
    """How much of the text stands there in one piece: all of its length if it is whole."""
    is_whole: bool


Probes: TypeAlias = Callable[[Sequence[str]], Sequence[Probe]]
Measure: TypeAlias = Callable[[Page, int, str], "Survivor | None"]


def find_survivors(
    prompt: str,
    texts: Sequence[str | None],
    pace: Pace | None = None,
    probes: Probes = make_probes,
    question: str = "",
) -> tuple[list[Survivor], set[int]]:
    """Find which of *texts* stand in *prompt*.

    Args:
        prompt: the whole prompt.
        texts: the candidates' texts, best first; None where one is not known.
        pace: steps aside between pieces of work.
        probes: `make_probes`, or a cache in front of it.
        question: the user's own words: where they stand, no part of a passage is looked for.

    Returns:
        The survivors in prompt order, and the ranks that could not be looked for: those without a
        text, and the last ones if the search would have taken too long.
    """
    pace = pace or Pace()
    # Stripped where it comes to that: most are told apart by one word.
    stripped = [text or "" for text in texts]
    ranks = [rank for rank, text in enumerate(stripped) if text]
    unknown = set(range(len(texts))).difference(ranks) if len(ranks) < len(texts) else set()
    page = Page(prompt, pace)
    found: dict[int, Survivor] = {}
    left = _claim_whole(page, stripped, ranks, found, pace, probes)
    if left.begun or left.changed or left.headless:
        _claim_altered(page, stripped, left, found, pace, question.strip())
    _add_inner(page, stripped, ranks, found, pace)
    unknown.update(left.blank)
    if page.scanned_chars > _SCAN_LIMIT_CHARS:
        unknown.update(rank for rank in ranks if rank not in found)
    for rank, survivor in found.items():
        if survivor.is_whole:
            survivor.kept_chars = len(texts[rank] or "")
    return sorted(found.values(), key=lambda s: (s.start, s.rank)), unknown


class _Left:
    """Texts that do not stand there whole as they are, by what of them may."""

    __slots__ = ("begun", "blank", "changed", "headless")

    def __init__(self) -> None:
        self.blank: list[int] = []
        """Nothing but white space: there is nothing to look for."""
        self.begun: list[int] = []
        """The very beginning stands there: trimmed, or its white space is changed later on."""
        self.changed: list[int] = []
        """The beginning stands there with other white space or escaped."""
        self.headless: list[int] = []
        """The middle stands there without the beginning."""


def _claim_whole(
    page: Page,
    texts: list[str],
    ranks: Sequence[int],
    found: dict[int, Survivor],
    pace: Pace,
    probes: Probes,
) -> _Left:
    """Claim the texts that stand there whole.

    Whole texts come first, so that none of them is taken for a trimmed neighbour. What is left is
    compared with the words that remain of the prompt; these only ever become fewer.
    """
    left = _Left()
    missed = _claim_in_order(page, texts, ranks, found, pace)
    if missed == len(ranks):
        return left
    tokens = simplified_words(page.rest)
    words = {None, *tokens}
    is_strange, rest = words.isdisjoint, ""
    for start in range(missed, len(ranks), _PROBED_AT_ONCE):
        some = ranks[start : start + _PROBED_AT_ONCE]
        pace.step()
        pairs = zip(some, probes([texts[rank] for rank in some]), strict=True)
        for rank, probe in [pair for pair in pairs if not is_strange(pair[1].keys)]:
            may_begin, has_middle = probe.keys[0] in words, probe.keys[1] in words
            rest = rest or " ".join(tokens)
            if page.scanned_chars > _SCAN_LIMIT_CHARS:
                return left
            pace.step()
            texts[rank] = stripped = texts[rank].strip()
            if not stripped:
                left.blank.append(rank)
                continue
            if may_begin:
                survivor = _find_whole(page, rank, stripped)
                if survivor is not None:
                    found[rank] = survivor
                    page.claim(survivor.start, survivor.end)
                    continue
                _sort_head(page, rank, stripped, probe, rest, left)
            if has_middle and _has_middle(probe, rest):
                left.headless.append(rank)
    return left


def _claim_in_order(
    page: Page, texts: list[str], ranks: Sequence[int], found: dict[int, Survivor], pace: Pace
) -> int:
    """Claim the first texts while each stands right behind the one before; give their number."""
    hint = number = 0
    free: list[tuple[int, int]] = []
    for number, rank in enumerate(ranks):
        if not number & 7:
            pace.step()
        texts[rank] = text = texts[rank].strip()
        survivor = _find_next(page, rank, text, hint)
        if survivor is None:
            break
        found[rank] = survivor
        free.append((hint, survivor.start))
        hint = survivor.end
    else:
        number = len(ranks)
    page.claim_up_to(hint, free)
    return number


def _sort_head(page: Page, rank: int, text: str, probe: Probe, rest: str, left: _Left) -> None:
    if len(text) <= PROBE_CHARS:
        return
    if text[:PROBE_CHARS] in page.rest:
        left.begun.append(rank)
    elif len(probe.head) >= PROBE_CHARS // 2 and probe.head in rest:
        left.changed.append(rank)


def _has_middle(probe: Probe, rest: str) -> bool:
    return len(probe.middle) == PROBE_CHARS and probe.middle in rest


def _find_next(page: Page, rank: int, text: str, hint: int) -> Survivor | None:
    """Look right behind the passage before: prompts mostly keep the order of the list."""
    size = len(text)
    if size < PROBE_CHARS:
        return None
    at = page.text.find(text[:PROBE_CHARS], hint, hint + _HINT_CHARS)
    # All that was claimed so far ends at the hint, so that the place is free.
    if at < 0 or page.text[at : at + size] != text:
        return None
    return Survivor(rank, at, at + size, size, True)


def _claim_parts(
    page: Page,
    texts: Sequence[str],
    begun: list[int],
    found: dict[int, Survivor],
    pace: Pace,
    measure: Measure | None = None,
) -> None:
    """Claim parts of texts, the longest first: the others may have meant the same place."""
    measure = measure or _longest_prefix
    while begun:
        parts = []
        for rank in begun:
            pace.step()
            part = measure(page, rank, texts[rank])
            if part is not None:
                parts.append(part)
        if not parts or page.scanned_chars > _SCAN_LIMIT_CHARS:
            return
        best = max(parts, key=lambda part: part.kept_chars)
        found[best.rank] = best
        page.claim(best.start, best.end)
        begun = [part.rank for part in parts if part is not best]


def _find_whole(page: Page, rank: int, text: str) -> Survivor | None:
    size = len(text)
    rest = page.rest
    page.scanned_chars += len(rest)
    if len(rest) <= WINDOW_CHARS and text[:PROBE_CHARS] not in rest:
        return None
    for at in page.find(text[:PROBE_CHARS]):
        if size < PROBE_CHARS and not stands_alone(page.text, at, at + size):
            continue
        # Not `startswith`: it goes character by character where only one side is all Latin-1.
        if page.text[at : at + size] == text:
            return Survivor(rank, at, at + size, size, True)
    return None


def _longest_prefix(page: Page, rank: int, text: str) -> Survivor | None:
    best: Survivor | None = None
    for at in page.find(text[:PROBE_CHARS]):
        size = common_chars(text, 0, page.text, at, page.part(at)[1])
        if size >= PROBE_CHARS and (best is None or size > best.kept_chars):
            best = Survivor(rank, at, at + size, size, False)
    return best


def _longest_stretch(page: Page, rank: int, text: str) -> Survivor | None:
    """Look for a text that lost its head, by its middle."""
    best: Survivor | None = None
    offset = len(text) // 2
    for at in page.find(text[offset : offset + PROBE_CHARS]):
        size = common_chars(text, offset, page.text, at, page.part(at)[1])
        back = 0
        limit = min(offset, at - page.part(at)[0])
        while back < limit and text[offset - back - 1] == page.text[at - back - 1]:
            back += 1
        if size + back >= 2 * PROBE_CHARS and (best is None or size + back > best.kept_chars):
            best = Survivor(rank, at - back, at + size, size + back, False)
    return best


def _claim_question(page: Page, question: str) -> bool:
    """Explain one place by the question, the last one: a user may quote a passage."""
    if len(question) < PROBE_CHARS:
        return False
    for start, end in reversed(page.free):
        at = page.text.rfind(question, start, end)
        if at >= 0:
            page.claim(at, at + len(question))
            return True
    return False


def _begins_beyond(page: Page, texts: Sequence[str], left: _Left) -> None:
    """Forget the texts whose beginning stood in the question alone."""
    rest = page.rest
    simple = simplify(rest)
    left.begun = [rank for rank in left.begun if texts[rank][:PROBE_CHARS] in rest]
    left.changed = [rank for rank in left.changed if make_probe(texts[rank]).head in simple]


def _claim_altered(
    page: Page,
    texts: Sequence[str],
    left: _Left,
    found: dict[int, Survivor],
    pace: Pace,
    question: str,
) -> None:
    """Claim texts that were trimmed, and those whose white space or escapes differ."""
    if _claim_question(page, question):
        _begins_beyond(page, texts, left)
    changed = left.changed + [r for r in left.begun if _goes_on_altered(page, texts[r])]
    if changed:
        _claim_simplified(page, texts, sorted({*changed, *left.begun}), found, pace, question)
    elif left.begun:
        _claim_parts(page, texts, left.begun, found, pace)
    headless = [rank for rank in left.headless if rank not in found]
    for rank in headless:
        # Its beginning may be explained already, by a passage that it holds.
        at = page.text.find(texts[rank])
        if at >= 0:
            found[rank] = Survivor(rank, at, at + len(texts[rank]), len(texts[rank]), True)
            page.claim(at, at + len(texts[rank]))
    headless = [rank for rank in headless if rank not in found]
    if headless:
        _claim_parts(page, texts, headless, found, pace, _longest_stretch)


def _goes_on_altered(page: Page, text: str) -> bool:
    """Tell a text whose white space was changed from one that was cut: the former goes on."""
    for at in page.find(text[:PROBE_CHARS]):
        size = common_chars(text, 0, page.text, at, page.part(at)[1])
        ahead = simplify(text[size : size + 4 * PROBE_CHARS])[:PROBE_CHARS]
        there = simplify(page.text[at + size : at + size + 8 * PROBE_CHARS])
        # Both sides start where the one has a blank or an escape that the other lacks.
        if ahead and there.lstrip("nt\\ ").startswith(ahead.lstrip("nt\\ ")[:12]):
            return True
    return False


def _claim_simplified(
    page: Page,
    texts: Sequence[str],
    begun: list[int],
    found: dict[int, Survivor],
    pace: Pace,
    question: str,
) -> None:
    """Match the simplified texts with the simplified prompt, where all then have their places."""
    ranks = sorted([*found, *begun])
    column = [""] * len(texts)
    for rank in ranks:
        pace.step()
        column[rank] = simplify(texts[rank])
    simple = Page(simplify(page.text), pace)
    matched: dict[int, Survivor] = {}
    parts = _claim_whole(simple, column, ranks, matched, pace, make_probes)
    _claim_question(simple, simplify(question))
    _claim_parts(simple, column, parts.begun, matched, pace)
    page.scanned_chars += simple.scanned_chars
    for rank, survivor in matched.items():
        if rank in found:
            found[rank].start = survivor.start
        else:
            if not survivor.is_whole:
                survivor.kept_chars = _original_chars(texts[rank], survivor.kept_chars)
            found[rank] = survivor


def _original_chars(text: str, simple_chars: int) -> int:
    """Turn a length within the simplified text into one within the text itself."""
    done = 0
    for word in _WORD.finditer(text):
        size = word.end() - word.start()
        if done + size >= simple_chars:
            return word.start() + simple_chars - done
        done += size + 1
        if done >= simple_chars:
            return word.end()
    return len(text)


def _add_inner(
    page: Page, texts: Sequence[str], ranks: Sequence[int], found: dict[int, Survivor], pace: Pace
) -> None:
    """Find passages that stand whole inside of a much longer one that was sent."""
    limit_chars = 0.8 * max((s.end - s.start for s in found.values()), default=0)
    if min(map(len, texts), default=0) >= limit_chars:
        return
    short = [r for r in ranks if PROBE_CHARS <= len(texts[r]) < limit_chars and r not in found]
    sent = {texts[rank] for rank in found} if short else set()
    for rank in short:
        text = texts[rank].strip()
        if text in sent:
            continue
        pace.step()
        page.scanned_chars += len(page.text)
        if page.scanned_chars > _SCAN_LIMIT_CHARS:
            break
        at = page.text.find(text)
        if at >= 0:
            found[rank] = Survivor(rank, at, at + len(text), len(text), True)
