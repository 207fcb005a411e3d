"""Lines: reads JSON lines files; a bad line is named by its number and the others are read.

Pipeline: file -> [triage] -> store
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any, NoReturn

from ragotel.errors import InputError
from ragotel.text import repair

_OPENERS: dict[str, Callable[[str], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@dataclass(frozen=True)
class Line:
    """One line that holds a JSON object; *number* counts from 1."""

    source: str
    number: int
    value: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.source}, line {self.number}"


@dataclass(frozen=True)
class Refusal:
    """One line that was not loaded, and why."""

    source: str
    number: int
    reason: str

    def __str__(self) -> str:
        return f"{self.source}, line {self.number}: {self.reason}"


@dataclass
class Report:
    """What a load did; *loaded* counts things (labels, chunks, grades), not rows."""

    loaded: int = 0
    refused: list[Refusal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def refuse(self, line: Line, reason: str) -> None:
        self.refused.append(Refusal(line.source, line.number, reason))

    def as_dict(self) -> dict[str, Any]:
        return {
            "loaded": self.loaded,
            "refused": [
                {"file": entry.source, "line": entry.number, "reason": entry.reason}
                for entry in self.refused
            ],
            "notes": self.notes,
        }


Progress = Callable[[int], None]
"""Called with the number of lines read so far."""


def no_progress(_: int) -> None:
    """Show nothing."""


def read_lines(
    paths: Iterable[str], report: Report, progress: Progress = no_progress
) -> Iterator[Line]:
    """The objects of JSON lines files (plain, .gz, .bz2, .xz; `-` is standard input).

    Blank lines are skipped; a line that is no JSON object goes into *report*, and so does a note
    on each file that holds none at all. Lone surrogates are replaced by U+FFFD; NaN and infinities
    are refused, as JSON has none.

    Raises:
        InputError: A file cannot be opened or unpacked.
    """
    count = 0
    for path in paths:
        is_empty = True
        try:
            with _open(path) as stream:
                for number, raw in enumerate(stream, 1):
                    count += 1
                    if count % 500 == 0:
                        progress(count)
                    line = _read(path, number, raw)
                    if number == 1 and isinstance(line, Refusal):
                        report.notes += _one_document(path, raw)
                    is_empty = is_empty and line is None
                    if isinstance(line, Refusal):
                        report.refused.append(line)
                    elif line is not None:
                        yield line
        except (OSError, EOFError, lzma.LZMAError) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise InputError(f"The file {path} cannot be read: {reason}.") from error
        if is_empty:
            name = "standard input" if path == "-" else path
            report.notes.append(f"{name} holds no lines: nothing was loaded from it")
    progress(count)


def _open(path: str) -> IO[bytes]:
    if path == "-":
        return open(sys.stdin.fileno(), "rb", closefd=False)
    opener = next((entry for end, entry in _OPENERS.items() if path.endswith(end)), open)
    stream: IO[bytes] = opener(path, "rb")  # type: ignore[call-arg]
    return stream


def _read(source: str, number: int, raw: bytes) -> Line | Refusal | None:
    try:
        text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        if not text.strip():
            return None
        value = json.loads(text, parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        return Refusal(source, number, "not UTF-8")
    except RecursionError:
        return Refusal(source, number, "nested too deeply")
    except json.JSONDecodeError as error:
        return Refusal(source, number, f"not JSON: {error}")
    except ValueError as error:
        # The interpreter's own limit on whole numbers, told with its own advice.
        is_long = "integer string conversion" in str(error)
        reason = "a number of thousands of digits" if is_long else f"not JSON: {error}"
        return Refusal(source, number, reason)
    if not isinstance(value, dict):
        return Refusal(source, number, f"a JSON object is wanted, found {kind(value)}")
    return Line(source, number, value if text.isascii() and "\\u" not in text else _repaired(value))


def _one_document(path: str, raw: bytes) -> list[str]:
    """What to do with a file that seems to be one JSON document over several lines, or a list."""
    if raw.strip() not in (b"[", b"{") and not raw.lstrip().startswith(b"["):
        return []
    way = "jq -c '.[]'" if raw.lstrip().startswith(b"[") else "jq -c ."
    return [f"{path} looks like one JSON document; one object a line is wanted: {way} {path}"]


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _repaired(value: Any) -> Any:
    if isinstance(value, str):
        return repair(value)
    if isinstance(value, list):
        return [_repaired(entry) for entry in value]
    if isinstance(value, dict):
        return {repair(key): _repaired(entry) for key, entry in value.items()}
    return value


def kind(value: Any) -> str:
    """The JSON word for *value*'s type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, list) else "an object"
