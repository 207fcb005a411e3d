"""Assembly: what the prompt's span says: the exact string, what was sent, what was dropped.

Pipeline: recorder -> encoding (on the worker's thread) -> [assembly] -> span attributes
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from operator import eq

from ragotel import attributes as at
from ragotel import faults
from ragotel.chunks import ChunkBook
from ragotel.columns import Candidates
from ragotel.fields import to_count
from ragotel.lists import (
    Dropped,
    distinct,
    extra_json,
    head_json,
    is_plain,
    is_single,
    scores_of,
    settle,
    shas_of,
)
from ragotel.model import AttributeValue
from ragotel.pacing import Pace
from ragotel.record import Stage
from ragotel.survivors import Survivor, find_survivors
from ragotel.text import content_hash, utf8

CHARS_PER_TOKEN = 4
_NUMBERS = re.compile(r"\d+")

Attributes = dict[str, AttributeValue]


class Assembled:
    """The passages of one prompt: sent in prompt order, dropped with reasons."""

    __slots__ = ("dropped", "in_count", "rows", "survivors", "texts")

    def __init__(self, in_count: int) -> None:
        self.in_count = in_count
        self.rows: list[str] | None = None
        """JSON objects without the closing brace; None: it could not be told what was sent."""
        self.dropped: list[Dropped] = []
        self.survivors: list[Survivor] = []
        self.texts: list[str | None] = []


def assemble(stage: Stage, book: ChunkBook, pace: Pace, query: str | None = None) -> Assembled:
    """Find what was sent: as the service said, else by the texts in the prompt."""
    inputs = stage.inputs or []
    for found in inputs:
        settle(found, book)
    entries = distinct(inputs)
    assembled = Assembled(len(entries))
    if len(inputs) == 1 and len(entries) == len(inputs[0]):
        assembled.texts = inputs[0].texts
    else:
        assembled.texts = [found.texts[rank] for found, rank in entries]
    if stage.sent is not None:
        _as_told(stage, assembled, entries, book, pace, query or "")
    elif stage.prompt is not None and any(assembled.texts):
        _as_found(stage, assembled, entries, book, pace, query or "")
    elif stage.prompt is not None and not entries and inputs:
        assembled.rows = []
    return assembled


def _as_found(
    stage: Stage,
    assembled: Assembled,
    entries: list[tuple[Candidates, int]],
    book: ChunkBook,
    pace: Pace,
    query: str,
) -> None:
    survivors, unknown = find_survivors(
        stage.prompt or "", assembled.texts, pace, book.probes, query
    )
    assembled.survivors = survivors
    assembled.rows = _usual_rows(stage, survivors, book) or [
        _row(stage, *entries[s.rank], s.kept_chars, book) for s in survivors
    ]
    sent = {s.rank for s in survivors}
    sent_texts = {assembled.texts[rank] for rank in sent}
    settled = sent | unknown
    reason = reason_for(stage)
    if reason == "budget" and not sent and _first_fits(stage, entries, assembled.texts):
        reason = "other"
    _drop(
        assembled,
        [entry for rank, entry in enumerate(entries) if rank not in settled],
        reason,
        sent_texts,
    )


def _as_told(
    stage: Stage,
    assembled: Assembled,
    entries: list[tuple[Candidates, int]],
    book: ChunkBook,
    pace: Pace,
    query: str,
) -> None:
    """Take the service's own list of what it used; the prompt still tells how much of each."""
    told = stage.sent
    if told is None:
        return
    settle(told, book, stage.inputs or ())
    kept: dict[int, int] = {}
    if stage.prompt is not None and any(told.texts):
        survivors, _ = find_survivors(stage.prompt, told.texts, pace, book.probes, query)
        kept = {s.rank: s.kept_chars for s in survivors}
        assembled.survivors, assembled.texts = survivors, list(told.texts)
    keys = told.keys or []
    by_key = {(f.keys or [])[r]: (f, r) for f, r in entries}
    assembled.rows = [
        _row(stage, *by_key.get(key, (told, rank)), kept.get(rank), book)
        for rank, key in enumerate(keys)
    ]
    used = set(keys)
    left = [(found, place) for found, place in entries if (found.keys or [])[place] not in used]
    _drop(assembled, left, reason_for(stage), set())


def _first_fits(
    stage: Stage, entries: list[tuple[Candidates, int]], texts: Sequence[str | None]
) -> bool:
    """Whether the budget alone cannot explain a prompt without any passage."""
    budget = (stage.values or {}).get(at.BUDGET_TOKENS, stage.spec.static.get(at.BUDGET_TOKENS))
    if not entries or not texts or texts[0] is None or not isinstance(budget, (int, float)):
        return False
    found, rank = entries[0]
    stated = found.extras.get("tokens")
    tokens = stated[rank] if stated else None
    # An estimate decides only where it is far from the budget.
    needed = tokens if isinstance(tokens, (int, float)) else len(texts[0]) / CHARS_PER_TOKEN * 2
    return needed <= budget


def reason_for(stage: Stage) -> str:
    """Name why a passage was not sent: the budget if there is one, else we do not know."""
    has_budget = at.BUDGET_TOKENS in stage.spec.static or (
        stage.values is not None and at.BUDGET_TOKENS in stage.values
    )
    return "budget" if has_budget else "other"


def _drop(
    assembled: Assembled,
    entries: list[tuple[Candidates, int]],
    reason: str,
    sent_texts: set[str | None],
) -> None:
    """Name what was not sent; the twin of a passage that was sent is a duplicate."""
    assembled.dropped = [
        ((found.keys or [])[rank], "dedupe" if found.texts[rank] in sent_texts else reason, True)
        for found, rank in entries
    ]


def _usual_rows(stage: Stage, survivors: list[Survivor], book: ChunkBook) -> list[str] | None:
    """Describe passages that all came whole from one list without anything special, at once."""
    inputs = stage.inputs or []
    found = inputs[0]
    if len(inputs) != 1 or found.extras or "count_tokens" in stage.spec.options:
        return None
    all_keys, all_shas, all_scores = found.keys or [], shas_of(found, book), scores_of(found)
    ranks = [s.rank for s in survivors]
    keys, scores = [all_keys[n] for n in ranks], [all_scores[n] for n in ranks]
    shas, sizes = [all_shas[n] for n in ranks], [len(found.texts[n]) for n in ranks]
    is_usual = is_plain(keys) and is_single(scores) and sizes == [s.kept_chars for s in survivors]
    if not is_usual or found.states or any(map(eq, keys, shas)):
        return None
    return [
        f'{{"id":"{key}","score":{score:.9g},"sha":"{sha}","chars":{size}'
        f',"tokens":{-(-size // CHARS_PER_TOKEN)}'
        for key, score, sha, size in zip(keys, scores, shas, sizes, strict=True)
    ]


def _row(
    stage: Stage, found: Candidates, rank: int, kept_chars: int | None, book: ChunkBook
) -> str:
    """Describe one passage that was sent; *kept_chars* stands only where it was trimmed."""
    text = found.texts[rank]
    row = head_json(found, rank)
    if text:
        sha = shas_of(found, book)[rank]
        if sha != (found.keys or [])[rank]:
            row += f',"sha":"{sha}"'
        row += f',"chars":{len(text)}'
        if kept_chars is not None and kept_chars < len(text):
            row += f',"kept_chars":{kept_chars}'
    tokens = _tokens_of(stage, found, rank, text, kept_chars)
    if tokens is not None:
        row += f',"tokens":{tokens}'
    for field, column in found.extras.items():
        if field != "tokens":
            row += extra_json(field, column[rank])
    return row


def _tokens_of(
    stage: Stage, found: Candidates, rank: int, text: str | None, kept_chars: int | None
) -> int | None:
    column = found.extras.get("tokens")
    reported = to_count(column[rank]) if column else None
    if reported is not None:
        return reported
    if not text:
        return None
    count = stage.spec.options.get("count_tokens")
    if callable(count):
        try:
            return to_count(count(text if kept_chars is None else text[:kept_chars]))
        except Exception:
            stage.faults += 1
            faults.note("count tokens")
    kept = len(text) if kept_chars is None else min(kept_chars, len(text))
    return -(-kept // CHARS_PER_TOKEN)


def describe_prompt(stage: Stage, assembled: Assembled, query: str | None) -> Attributes:
    """Measure the prompt: hash, length, tokens, and the template's version."""
    prompt = stage.prompt
    made: Attributes = {}
    if prompt is None:
        return made
    made[at.PROMPT_SHA256] = hashlib.sha256(utf8(prompt)).hexdigest()
    made[at.PROMPT_CHARS] = len(prompt)
    _count_prompt(stage, prompt, made)
    _version(stage, prompt, assembled, query, made)
    return made


def _count_prompt(stage: Stage, prompt: str, made: Attributes) -> None:
    values = stage.values or {}
    reported = to_count(values.get(at.PROMPT_TOKENS))
    count = stage.spec.options.get("count_tokens")
    if reported is not None:
        made[at.PROMPT_TOKENS], made[at.PROMPT_TOKENS_SOURCE] = reported, "reported"
        return
    if callable(count):
        try:
            made[at.PROMPT_TOKENS], made[at.PROMPT_TOKENS_SOURCE] = int(count(prompt)), "counted"
            return
        except Exception:
            stage.faults += 1
            faults.note("count tokens")
    made[at.PROMPT_TOKENS] = -(-len(prompt) // CHARS_PER_TOKEN)
    made[at.PROMPT_TOKENS_SOURCE] = "estimated"


def _version(
    stage: Stage, prompt: str, assembled: Assembled, query: str | None, made: Attributes
) -> None:
    values = stage.values or {}
    if at.PROMPT_VERSION in values or at.PROMPT_VERSION in stage.spec.static:
        asked = callable(stage.spec.options.get("template_text"))
        made[at.PROMPT_VERSION_SOURCE] = "template" if asked else "given"
        return
    template = values.get("template_text", stage.spec.options.get("template_text"))
    if isinstance(template, str):
        made[at.PROMPT_VERSION] = content_hash(template)
        made[at.PROMPT_VERSION_SOURCE] = "template"
        return
    skeleton = skeleton_of(prompt, assembled.survivors, assembled.rows, query)
    if skeleton is not None:
        made[at.PROMPT_VERSION] = content_hash(skeleton)
        made[at.PROMPT_VERSION_SOURCE] = "skeleton"


def skeleton_of(
    prompt: str,
    survivors: Sequence[Survivor],
    sent: Sequence[str] | None,
    query: str | None,
) -> str | None:
    """Keep what is the template's own: the prompt before and after its passages.

    Without the question, and with numbers made equal, so that a date does not make a version. None
    where the passages cannot be cut out.
    """
    if sent is None or (sent and not survivors):
        return None
    if survivors:
        start = min(s.start for s in survivors)
        end = max(s.end for s in survivors)
        head, tail = _without_heading(prompt[:start]), prompt[end:]
    else:
        head, tail = prompt, ""
    skeleton = f"{head}\0{tail}"
    if query and len(query) > 1:
        skeleton = skeleton.replace(query, "\1")
    return _NUMBERS.sub("0", " ".join(skeleton.split()))


def _without_heading(head: str) -> str:
    """Drop the line that introduces the first passage: it names a source, not the template."""
    lines = head.rstrip().split("\n")
    return "\n".join(lines[:-1]) if len(lines) > 1 else head
