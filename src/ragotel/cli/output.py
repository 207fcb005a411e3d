"""Output: rows as a table that never wraps, or as JSON; plain and complete when piped.

Pipeline: views -> triage -> [cli]
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from typing import Any

import click

_OBEYED = (
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"  # what terminals obey, but for blanks
    "\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what turns the direction of writing
)
_CONTROL = re.compile(f"[{_OBEYED}\t-\r\x85\u2028\u2029]")
_CONTROL_IN_LINES = re.compile(f"(\x1b\\[(?:[01]|3[1-3])m)|([{_OBEYED}\x0b-\r\x85\u2028\u2029])")
_NOT_ESCAPED_BY_JSON = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_BLANKS = re.compile("[\t\n\r\x0b\x0c \x85\u2028\u2029]+")
_SHORTEST = 12


@dataclass(frozen=True)
class Column:
    """A column of a table: *key* of the row, *title* above it.

    *is_text* cells are cut to fit a terminal; all others (ids, numbers) never are. *colour* is an
    aid on a terminal.
    """

    key: str
    title: str = ""
    is_text: bool = False
    is_number: bool = False
    colour: str = ""

    @property
    def head(self) -> str:
        return self.title or self.key


def is_terminal() -> bool:
    return sys.stdout.isatty()


def has_colour() -> bool:
    """Colour is an aid on a terminal only; NO_COLOR (any value) turns it off."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, **style: Any) -> str:
    return click.style(text, **style) if has_colour() else text


def say(line: str, *, err: bool = False) -> None:
    """Print one line for a person: the one way to print what is no JSON.

    Values that were recorded may stand in it as they came: their line breaks become blanks, and
    whatever else a terminal would obey, but for the colours of `paint`, becomes visible.
    """
    say_block(flat(line), err=err)


def say_block(text: str, *, err: bool = False) -> None:
    """Print a text of several lines as `say` does; no value in it may have a line break."""
    click.echo(_CONTROL_IN_LINES.sub(_colour_or_escape, text), err=err)


def _colour_or_escape(found: re.Match[str]) -> str:
    is_colour = found[1] is not None
    return found[0] if is_colour and has_colour() else "".join(map(_escape, found[0]))


def _escape(character: str) -> str:
    if not _CONTROL.match(character):
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def print_json(value: Any) -> None:
    """Print one JSON document; times as ISO 8601 in UTC, NaN and infinities as null."""
    text = json.dumps(jsonable(value), ensure_ascii=False, indent=2, allow_nan=False)
    # A terminal obeys more than JSON must escape.
    click.echo(_NOT_ESCAPED_BY_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def jsonable(value: Any) -> Any:
    """*value* in types that JSON has."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(entry) for key, entry in value.items()}
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if value is None or isinstance(value, str | int | bool):
        return value
    if isinstance(value, Iterable):
        return [jsonable(entry) for entry in value]
    return str(value)


def iso(moment: datetime) -> str:
    """A time of the store (UTC, with or without its zone) as `2026-11-19T10:23:45.123456Z`."""
    return _utc(moment).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def clock(moment: datetime | None) -> str:
    """A time of the store as a person reads it: `2026-11-19 10:23:45` (UTC)."""
    return "" if moment is None else _utc(moment).strftime("%Y-%m-%d %H:%M:%S")


def _utc(moment: datetime) -> datetime:
    zone = timezone.utc
    return moment.replace(tzinfo=zone) if moment.tzinfo is None else moment.astimezone(zone)


def counted(count: int, thing: str, ending: str = "s") -> str:
    """`1 search`, `1,200 searches`: a number with its thing."""
    return f"{count:,} {thing}{'' if count == 1 else ending}"


def one_line(text: str) -> str:
    """*text* on one line; a control character (a terminal would obey it) becomes visible."""
    return visible(_BLANKS.sub(" ", text).strip())


def flat(line: str) -> str:
    """*line*, painted or not, without the line breaks of the values in it."""
    return re.sub("[\n\r\x0b\x0c\x85\u2028\u2029]+", " ", line)


def visible(line: str) -> str:
    """*line* with its blanks as they stand; a control character becomes visible."""
    return _CONTROL.sub(lambda found: _escape(found[0]), line.expandtabs(4))


def cell(value: Any) -> str:
    """One value as a table prints it: null is blank, a list is comma-separated."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return clock(value)
    if isinstance(value, float):
        return "" if not math.isfinite(value) else f"{value:.6g}"
    if isinstance(value, list | tuple | set):
        return ", ".join(cell(entry) for entry in value)
    return one_line(str(value))


def print_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> None:
    """Print a table: a head, one line per row; blank-separated, aligned, never wrapped.

    On a terminal text columns are cut (with …) to its width; piped, every cell stands in full.
    """
    for line in table_lines(rows, columns, width=terminal_width()):
        say(line)


def terminal_width() -> int | None:
    """Columns of the terminal; None where stdout is none, so that nothing is cut."""
    return shutil.get_terminal_size((100, 24)).columns if is_terminal() else None


def table_lines(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], *, width: int | None
) -> list[str]:
    """The lines of `print_rows`."""
    heads = [visible(flat(column.head)) for column in columns]
    cells = [[cell(row.get(column.key)) for column in columns] for row in rows]
    widths = [
        max([text_width(head), *(text_width(row[at]) for row in cells)])
        for at, head in enumerate(heads)
    ]
    if width is not None:
        _narrow(widths, columns, width)
    plain = [replace(column, colour="") for column in columns]
    head = paint(_line(heads, plain, widths), bold=True)
    return [head, *(_line(row, columns, widths) for row in cells)]


def _narrow(widths: list[int], columns: Sequence[Column], room: int) -> None:
    """Take from the widest text column until the line fits, or all text columns are short."""
    excess = sum(widths) + 2 * (len(widths) - 1) - room
    texts = [at for at, column in enumerate(columns) if column.is_text]
    while excess > 0:
        widest = max(texts, key=lambda at: widths[at], default=None)
        if widest is None or widths[widest] <= _SHORTEST:
            return
        widths[widest] -= 1
        excess -= 1


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    parts = []
    for text, column, width in zip(cells, columns, widths, strict=True):
        fitting = cut(text, width)
        blanks = " " * (width - text_width(fitting))
        painted = paint(fitting, fg=column.colour, bold=True) if column.colour and text else fitting
        parts.append(blanks + painted if column.is_number else painted + blanks)
    return "  ".join(parts).rstrip()


def text_width(text: str) -> int:
    """Columns that *text* takes on a terminal (an ideograph takes two)."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int) -> str:
    """*text* in at most *width* terminal columns, with … where it was cut."""
    if text_width(text) <= width:
        return text
    while text and text_width(text) > width - 1:
        text = text[: min(len(text) - 1, width - 1)]
    return text + "…"


def prose(text: str, indent: int) -> str:
    """*text*, on a terminal broken at blanks to its width (never inside an id), else one line."""
    width = terminal_width()
    if width is None or width - indent < 2 * _SHORTEST:
        return text
    lines = textwrap.wrap(text, width - indent, break_long_words=False, break_on_hyphens=False)
    return ("\n" + " " * indent).join(lines)
