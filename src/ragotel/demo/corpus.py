"""First step of the demo's pipeline: the pages of the language reference, cut into passages.

Every CPython ships the reference as text in ``pydoc_data.topics``. Several topics repeat whole
parts of others (``compound`` holds ``if``, ``while``, ``with`` ...), so a paragraph is kept once:
on the smallest page that has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pydoc_data.topics import topics

PASSAGE_CHARS = 400
"""int, characters. Paragraphs are packed up to this length; a longer one is cut at sentences."""

SHORT_PARAGRAPH_CHARS = 60
"""int, characters. Shorter paragraphs (headings, one-line examples) may stand on several pages."""

_PAGE = re.compile(r"(?P<title>[^\n]+)\n\*+\n+(?P<text>.*)", re.DOTALL)
_RULER = re.compile(r"^[*=\-~^]{3,}$", re.MULTILINE)
_BLANKS = re.compile(r"\s+")
_WRAPPED_HYPHEN = re.compile(r"(?<=\w)-\n\s*(?=\w)")
_SENTENCE_END = re.compile(
    r"(?<=[.:;!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)\s+(?=[A-Z\"*(\u2018\u201c\[>])"
)


@dataclass(frozen=True)
class Document:
    """One page as the crawl fetched it: title, a ruler of asterisks, paragraphs."""

    doc_id: str
    source: str
    version: str = "current"
    superseded: bool = False


@dataclass(frozen=True)
class Page:
    """One document as the parser read it; *text* is empty where the parser made nothing of it."""

    doc_id: str
    title: str
    text: str
    version: str = "current"
    superseded: bool = False


@dataclass(frozen=True)
class Chunk:
    """One passage: what is indexed, retrieved, ranked and sent."""

    chunk_id: str
    doc_id: str
    title: str
    text: str
    doc_version: str = "current"
    superseded: bool = False


def sentences(text: str) -> list[str]:
    """Split *text* where a sentence ends and the next begins, and at each line's end."""
    return [part for line in text.splitlines() for part in _SENTENCE_END.split(line) if part]


def reference_site() -> list[Document]:
    """Return the language reference of the running Python as a site would serve it, by document id.

    Each paragraph stands once: on the smallest page that has it.
    """
    seen: set[str] = set()
    site = []
    for doc_id in sorted(topics, key=lambda name: (len(topics[name]), name)):
        title, *rest = _paragraphs(topics[doc_id])
        kept = [text for text in rest if len(text) < SHORT_PARAGRAPH_CHARS or text not in seen]
        seen.update(kept)
        site.append(Document(doc_id, "\n\n".join([f"{title}\n{'*' * len(title)}", *kept])))
    return sorted(site, key=lambda document: document.doc_id)


def parse(document: Document) -> Page:
    """Read the title above the ruler and the paragraphs below it; nothing where no ruler stands."""
    found = _PAGE.match(document.source)
    title, text = found.groups() if found else ("", "")
    return Page(document.doc_id, title, text, document.version, document.superseded)


def chunk_pages(pages: Iterable[Page]) -> list[Chunk]:
    """Cut each page into passages named ``doc_id#position``; an empty page gives none."""
    return [chunk for page in pages for chunk in _chunk(page)]


def _paragraphs(text: str) -> list[str]:
    plain = _WRAPPED_HYPHEN.sub("-", _RULER.sub("", text))
    lines = (_BLANKS.sub(" ", part).strip() for part in re.split(r"\n\s*\n", plain))
    return [line for line in lines if line]


def _chunk(page: Page) -> list[Chunk]:
    packed: list[str] = []
    for piece in _pieces(page.text):
        if packed and len(packed[-1]) + len(piece) < PASSAGE_CHARS:
            packed[-1] = f"{packed[-1]}\n{piece}"
        else:
            packed.append(piece)
    return [
        Chunk(
            chunk_id=f"{page.doc_id}#{position}",
            doc_id=page.doc_id,
            title=page.title,
            text=text,
            doc_version=page.version,
            superseded=page.superseded,
        )
        for position, text in enumerate(packed)
    ]


def _pieces(text: str) -> Iterable[str]:
    for paragraph in filter(None, text.split("\n\n")):
        if len(paragraph) <= PASSAGE_CHARS:
            yield paragraph
            continue
        piece = ""
        for sentence in sentences(paragraph):
            if piece and len(piece) + len(sentence) >= PASSAGE_CHARS:
                yield piece
                piece = ""
            piece = f"{piece} {sentence}".strip()
        yield piece
