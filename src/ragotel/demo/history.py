"""Beside the demo's pipeline: what was deployed on which of the fourteen days, mistakes included.

Nothing here touches a record. A step changes what the crawl fetches or what is deployed; what that
does to the answers is for the pipeline to do and for the verdicts to find.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ragotel.demo.corpus import Document
from ragotel.demo.service import TEMPLATE, Template

DAYS = 14
"""int. Days of traffic; the last one is yesterday."""

COMPLAINT_DAY = 4
"""int. The day of the complaint: eleven days ago."""

BUDGET_TOKENS = 6000
SMALL_BUDGET_TOKENS = 110
"""int, tokens. What a cost cut left of the prompt's budget: one or two passages."""

CRAWL_LIMIT_CHARS = 9000
"""int, characters. Where the crawler closed the connection on the day of the truncated crawl."""

RETHEMED = ("class", "dict", "identifiers", "integers", "raise", "with")
"""Pages that the site's new theme set without the ruler that the parser looks for."""

CLIPPED_TEMPLATE = replace(TEMPLATE, passage="[{id}] {title}\n{text:.120}")
"""A template edited to save tokens: each passage ends after 120 characters."""

VAGUE_TEMPLATE = replace(
    TEMPLATE,
    prompt=TEMPLATE.prompt.replace(
        "{question}", "{question} Please explain the general background of this topic in Python."
    ),
)
"""A template edited to get friendlier answers: it asks for more than the user did."""

_OLD_STATEMENTS = {
    "comparisons": ('"y" is evaluated only once', '"y" is evaluated 2 times'),
    "floating": ("interpreted using radix 10", "interpreted using radix 8"),
    "imaginary": ("real part of 0.0", "real part of 1.0"),
    "shifting": ('"pow(2,n)"', '"pow(8,n)"'),
    "string-methods": ("default is 8", "default is 4"),
    "unary": ('"-(x+1)"', '"-x"'),
}

_RULER = re.compile(r"^\*+$", re.MULTILINE)

Crawl = Callable[[Sequence[Document]], list[Document]]


@dataclass(frozen=True)
class Step:
    """What changed in the early morning of a day; None: stays as it was."""

    day: int
    note: str
    is_fault: bool = False
    crawl: Crawl | None = None
    """Fetches the site for a new index version."""
    manifest: str = "changes"
    """How the new version's manifest was loaded: whole · changes · never."""
    template: Template | None = None
    budget: int | None = None


def whole(site: Sequence[Document]) -> list[Document]:
    """Fetch every page as it is."""
    return list(site)


def rethemed(site: Sequence[Document]) -> list[Document]:
    """Fetch the site after its new theme: some pages have another ruler below the title."""
    return [
        replace(page, source=_RULER.sub("====", page.source, count=1))
        if page.doc_id in RETHEMED
        else page
        for page in site
    ]


def truncated(site: Sequence[Document]) -> list[Document]:
    """Fetch the site over connections that close too early."""
    return [replace(page, source=page.source[:CRAWL_LIMIT_CHARS]) for page in site]


def with_archive(site: Sequence[Document]) -> list[Document]:
    """Fetch the site and its archive: old copies of pages, each with a statement that held once."""
    pages = {page.doc_id: page for page in site}
    old = [
        Document(
            doc_id=f"archive/{doc_id}",
            source=pages[doc_id].source.replace(now, then),
            version="superseded",
            superseded=True,
        )
        for doc_id, (now, then) in _OLD_STATEMENTS.items()
        if doc_id in pages
    ]
    return [*site, *old]


STEPS = (
    Step(1, "first index of the whole reference", crawl=whole, manifest="whole"),
    Step(3, "the site's new theme: six pages parse to nothing", is_fault=True, crawl=rethemed),
    Step(5, "parser mended, pages indexed again", crawl=whole),
    Step(6, "template edit: passages clipped", is_fault=True, template=CLIPPED_TEMPLATE),
    Step(7, "template edit taken back", template=TEMPLATE),
    Step(8, "truncated crawl: chunks deleted", is_fault=True, crawl=truncated),
    Step(9, "whole crawl again", crawl=whole),
    Step(10, "token budget cut", is_fault=True, budget=SMALL_BUDGET_TOKENS),
    Step(
        11,
        "budget restored; superseded copies of pages indexed",
        True,
        with_archive,
        budget=BUDGET_TOKENS,
    ),
    Step(
        13,
        "copies removed, manifest never loaded; template edit: asks vaguely",
        True,
        whole,
        "never",
        VAGUE_TEMPLATE,
    ),
    Step(
        14,
        "nightly index, manifest loaded; template edit taken back",
        False,
        whole,
        "whole",
        TEMPLATE,
    ),
)
"""Everything that was deployed, in order of days."""
