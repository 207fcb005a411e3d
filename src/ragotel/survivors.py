"""Survivors: which candidates stand in this prompt, whole or in part.

Pipeline: recorder -> encoding (on the worker's thread) -> [survivors] -> span attributes

Texts are looked for by their first characters, and what one candidate explains is no longer
searched for the others: so an overlapping neighbour is not taken for sent, and each further search
reads only what is left, mostly the template.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragotel.pacing import Pace

PROBE_CHARS = 24
"""A text is looked for by its first so many characters; a shorter one must stand alone."""
_MAX_TRIES = 16
_WINDOW_CHARS = 400_000
_SCAN_LIMIT_CHARS = 400_000_000
"""Beyond so much reading of one prompt the search ends; what was not looked for stays unknown."""
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


class Page:
    """A prompt, and which parts of it a candidate already explains."""

    __slots__ = ("_pace", "_rest", "claimed", "scanned_chars", "text")

    def __init__(self, text: str, pace: Pace) -> None:
        self.text = text
        self.claimed: list[tuple[int, int]] = []
        self.scanned_chars = 0
        self._rest: str | None = None
        self._pace = pace

    def claim(self, start: int, end: int) -> None:
        self.claimed.append((start, end))
        self.claimed.sort()
        self._rest = None

    def free(self) -> list[tuple[int, int]]:
        """List the parts that no candidate explains yet."""
        parts = []
        at = 0
        for start, end in self.claimed:
            if start > at:
                parts.append((at, start))
            at = max(at, end)
        if at < len(self.text):
            parts.append((at, len(self.text)))
        return parts

    @property
    def rest(self) -> str:
        """Join what no candidate explains: it tells quickly what is not there at all."""
        if self._rest is None:
            text = self.text
            free = self.free()
            self._rest = "\0".join([text[a:b] for a, b in free]) if self.claimed else text
        return self._rest

    def find(self, probe: str) -> Iterator[int]:
        """Walk the free places where *probe* stands."""
        rest = self.rest
        self.scanned_chars += len(rest)
        if len(rest) <= _WINDOW_CHARS and probe not in rest:
            return
        tries = 0
        for free_start, free_end in self.free():
            for start in range(free_start, free_end, _WINDOW_CHARS):
                self._pace.step()
                end = min(free_end, start + _WINDOW_CHARS + len(probe) - 1)
                at = self.text.find(probe, start, end)
                while at >= 0 and tries < _MAX_TRIES:
                    yield at
                    tries += 1
                    at = self.text.find(probe, at + 1, end)

    def free_end(self, start: int) -> int:
        """Tell where the free part around *start* ends."""
        return next((b for a, b in self.free() if a <= start < b), start)

    def free_start(self, at: int) -> int:
        return next((a for a, b in self.free() if a <= at < b), at)


def find_survivors(
    prompt: str, texts: Sequence[str | None], pace: Pace | None = None
) -> tuple[list[Survivor], set[int]]:
    """Find which of *texts* stand in *prompt*.

    Returns:
        The survivors in prompt order, and the ranks that could not be looked for: those without a
        text, and the last ones if the search would have taken too long.
    """
    pace = pace or Pace()
    stripped = ["" if text is None else text.strip() for text in texts]
    open_ranks = [rank for rank, text in enumerate(stripped) if text]
    unknown = set(range(len(texts))).difference(open_ranks)
    page = Page(prompt, pace)
    found = _match(page, stripped, open_ranks, pace)
    left = [rank for rank in open_ranks if rank not in found]
    if left:
        found |= _match_simplified(page, stripped, found, left, pace)
        found |= _match_inside(page, stripped, found, left, pace)
    if page.scanned_chars > _SCAN_LIMIT_CHARS:
        unknown.update(rank for rank in open_ranks if rank not in found)
    for survivor in found.values():
        if survivor.is_whole:
            survivor.kept_chars = len(texts[survivor.rank] or "")
    return sorted(found.values(), key=lambda s: (s.start, s.rank)), unknown


def _match(
    page: Page, texts: Sequence[str], ranks: Sequence[int], pace: Pace
) -> dict[int, Survivor]:
    """Claim whole texts first, so that none of them is taken for a trimmed neighbour."""
    found: dict[int, Survivor] = {}
    for rank in ranks:
        pace.step()
        if page.scanned_chars > _SCAN_LIMIT_CHARS:
            return found
        survivor = _find_whole(page, rank, texts[rank])
        if survivor is not None:
            found[rank] = survivor
            page.claim(survivor.start, survivor.end)
    left = [rank for rank in ranks if rank not in found and len(texts[rank]) > PROBE_CHARS]
    _claim_longest(page, texts, left, found, pace, _longest_prefix)
    left = [rank for rank in left if rank not in found and len(texts[rank]) > 4 * PROBE_CHARS]
    _claim_longest(page, texts, left, found, pace, _longest_stretch)
    return found


def _find_whole(page: Page, rank: int, text: str) -> Survivor | None:
    size = len(text)
    for at in page.find(text[:PROBE_CHARS]):
        if size < PROBE_CHARS and not _stands_alone(page.text, at, at + size):
            continue
        if page.text.startswith(text, at) and at + size <= page.free_end(at):
            return Survivor(rank, at, at + size, size, True)
    return None


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Refuse "10" inside of "110": a short text must not adjoin a letter or digit."""
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    return not (before.isalnum() and text[start].isalnum()) and not (
        after.isalnum() and text[end - 1].isalnum()
    )


def _claim_longest(page, texts, ranks, found, pace, measure) -> None:  # type: ignore[no-untyped-def]
    """Claim parts of texts, the longest first, until nothing more is found."""
    waiting = list(ranks)
    while waiting:
        parts = []
        for rank in waiting:
            pace.step()
            if page.scanned_chars > _SCAN_LIMIT_CHARS:
                return
            part = measure(page, rank, texts[rank])
            if part is not None:
                parts.append(part)
        if not parts:
            return
        best = max(parts, key=lambda part: part.kept_chars)
        found[best.rank] = best
        page.claim(best.start, best.end)
        # The others may have meant the same place: they are looked for again.
        waiting = [part.rank for part in parts if part is not best]


def _longest_prefix(page: Page, rank: int, text: str) -> Survivor | None:
    best: Survivor | None = None
    for at in page.find(text[:PROBE_CHARS]):
        size = _common_chars(text, 0, page.text, at, page.free_end(at))
        if size >= PROBE_CHARS and (best is None or size > best.kept_chars):
            best = Survivor(rank, at, at + size, size, False)
    return best


def _longest_stretch(page: Page, rank: int, text: str) -> Survivor | None:
    """Look for a text that lost its head, by its middle and by its end."""
    best: Survivor | None = None
    for offset in (len(text) // 2, len(text) - PROBE_CHARS):
        for at in page.find(text[offset : offset + PROBE_CHARS]):
            size = _common_chars(text, offset, page.text, at, page.free_end(at))
            back = 0
            limit = min(offset, at - page.free_start(at))
            while back < limit and text[offset - back - 1] == page.text[at - back - 1]:
                back += 1
            if size + back >= 2 * PROBE_CHARS and (best is None or size + back > best.kept_chars):
                best = Survivor(rank, at - back, at + size, size + back, False)
    return best


def _common_chars(text: str, offset: int, page: str, at: int, end: int) -> int:
    """Count how far *text* from *offset* runs along *page* from *at*, by halving."""
    low, high = 0, min(len(text) - offset, end - at)
    while low < high:
        middle = (low + high + 1) // 2
        if text[offset + low : offset + middle] == page[at + low : at + middle]:
            low = middle
        else:
            high = middle - 1
    return low


def simplify(text: str) -> str:
    """Undo what templates do to a text: escapes of JSON and HTML, other white space."""
    if "\\" in text:
        text = text.replace("\\n", " ").replace("\\t", " ").replace("\\r", " ").replace('\\"', '"')
    if "&" in text and ";" in text:
        text = html.unescape(text)
    return " ".join(text.split())


def _match_simplified(
    page: Page, texts: Sequence[str], found: dict[int, Survivor], left: list[int], pace: Pace
) -> dict[int, Survivor]:
    """Look again without regard to white space and escapes, if a beginning turns up that way."""
    rest = simplify(page.rest)
    hits = []
    for rank in left:
        pace.step()
        probe = simplify(texts[rank][: 3 * PROBE_CHARS])[:PROBE_CHARS]
        if len(probe) >= PROBE_CHARS // 2 and probe in rest:
            hits.append(rank)
    if not hits:
        return {}
    ranks = sorted([*found, *hits])
    simple_texts = dict(zip(ranks, (simplify(texts[rank]) for rank in ranks), strict=True))
    simple = Page(simplify(page.text), pace)
    column = [simple_texts.get(rank, "") for rank in range(len(texts))]
    matched = _match(simple, column, ranks, pace)
    page.scanned_chars += simple.scanned_chars
    for rank, survivor in matched.items():
        if rank in found:
            # Its place in the simplified prompt, so that all stand in one order.
            found[rank].start = survivor.start
        elif not survivor.is_whole:
            survivor.kept_chars = _original_chars(texts[rank], survivor.kept_chars)
    return {rank: survivor for rank, survivor in matched.items() if rank in hits}


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


def _match_inside(
    page: Page, texts: Sequence[str], found: dict[int, Survivor], left: list[int], pace: Pace
) -> dict[int, Survivor]:
    """Find passages that stand whole inside of a longer one that was sent."""
    longest = max((s.end - s.start for s in found.values()), default=0)
    sent = {texts[rank] for rank in found}
    inside: dict[int, Survivor] = {}
    for rank in left:
        text = texts[rank]
        if rank in found or not PROBE_CHARS <= len(text) < longest or text in sent:
            continue
        pace.step()
        page.scanned_chars += len(page.text)
        if page.scanned_chars > _SCAN_LIMIT_CHARS:
            break
        at = page.text.find(text)
        if at >= 0:
            inside[rank] = Survivor(rank, at, at + len(text), len(text), True)
    return inside
