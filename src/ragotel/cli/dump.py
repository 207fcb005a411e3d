"""Dump: what was found and what was sent, each with its text, and the prompt as it was rendered.

Pipeline: triage.show -> [cli]. Pure: a picture in, lines out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragotel.cli.output import paint, visible
from ragotel.cli.whiteboard import chunk_name

if TYPE_CHECKING:
    from ragotel.triage.show import Picture

_INDENT = " " * 6
_WITHHELD = (
    "The request sent no texts; those below are what a manifest, or another request, has of the "
    "same ids and hashes."
)


def dump_lines(picture: Picture) -> list[str]:
    """Every list with its texts, the sent ones in prompt order, and the prompt itself."""
    lines = []
    if picture.are_texts_withheld:
        lines += ["", _WITHHELD]
    by_id = frozenset(picture.texts_by_id)
    for entry in picture.lists:
        stage = entry["stage_name"] or entry["stage"]
        lines += ["", paint(f"found: {stage}", bold=True)]
        lines += _passages(entry["candidates"], picture.texts, by_id, "rank")
    lines += ["", paint("sent, in prompt order", bold=True)]
    lines += _passages(picture.sent, picture.texts, by_id, "position") or [
        f"{_INDENT}(nothing, or it was not recorded)"
    ]
    return [*lines, "", *_prompt(picture.prompt)]


def _passages(
    rows: Sequence[Mapping[str, Any]],
    texts: Mapping[str, str],
    by_id: frozenset[str],
    number: str,
) -> list[str]:
    lines = []
    for row in rows:
        mark = "*" if row["states_claim"] or row["is_gold_id"] else " "
        mark = "~" if row.get("is_other_source") else mark
        score = "" if row["score"] is None else f"  {row['score']:.6g}"
        fate = "  SENT" if number == "rank" and row["sent"] else ""
        kept, chars = row.get("kept_chars"), row.get("chars")
        trimmed = kept is not None and (chars is None or kept < chars)
        part = f"  (only {kept} of its characters were sent)" if trimmed else ""
        text = texts.get(row["chunk_sha"])
        is_by_id = text is not None and row["chunk_id"] in by_id
        source = "  (text of the manifest, by its id)" if is_by_id else ""
        lines.append(f"{mark} {row[number]:>3}{score}{fate}  {chunk_name(row)}{part}{source}")
        told = "(its text is not known)" if text is None else text
        lines += [_INDENT + visible(line) for line in told.splitlines() or [""]]
    return lines


def _prompt(prompt: Mapping[str, Any] | None) -> list[str]:
    if prompt is None:
        return [paint("prompt: not recorded", bold=True)]
    whole = "" if prompt["is_whole"] else f", not whole (content {prompt['content_mode'] or '?'})"
    tokens = "" if prompt["tokens"] is None else f", {prompt['tokens']:,} tokens"
    source = f" ({prompt['tokens_source']})" if tokens and prompt["tokens_source"] else ""
    size = "?" if prompt["chars"] is None else f"{prompt['chars']:,}"
    head = paint(f"prompt: {size} characters{tokens}{source}{whole}", bold=True)
    return [head, *(visible(line) for line in prompt["prompt"].splitlines())]
