"""Load: OTLP files into the store, with a full account of what was stored and what was not.

Pipeline: files -> messages -> [load] -> otel_traces -> typed tables
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ragotel.errors import InputError, StoreError
from ragotel.store.backfill import foreign_traces, settle
from ragotel.store.load_messages import messages
from ragotel.store.open import Store
from ragotel.store.otlp_rows import COLUMNS, FORMAT, TABLE, encode_rows

GROUP_BYTES = 16 << 20
"""Rows are inserted in groups of about this size: few parts, little memory."""
_SETTINGS = {"async_insert": "0", "max_partitions_per_insert_block": "0"}
_MAX_REFUSALS = 100


@dataclass
class FileReport:
    """What became of one file; *faults* name the messages that could not be read."""

    name: str
    span_count: int = 0
    faults: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def rejected_count(self) -> int:
        """Spans that were refused, and messages that could not be read."""
        return sum(self.reasons.values()) + len(self.faults)

    def lines(self) -> Iterator[str]:
        """One line per fault and per reason, or that there was nothing."""
        yield from (f"{self.name}: {fault}" for fault in self.faults)
        for reason, count in self.reasons.most_common():
            yield f"{self.name}: {count} spans rejected: {reason}"
        if not self.span_count and not self.rejected_count:
            yield f"{self.name} holds no spans: nothing was loaded from it"


@dataclass
class LoadReport:
    """What became of all files."""

    files: list[FileReport] = field(default_factory=list)

    @property
    def span_count(self) -> int:
        return sum(file.span_count for file in self.files)

    @property
    def rejected_count(self) -> int:
        return sum(file.rejected_count for file in self.files)

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON shows it."""
        return {
            "spans": self.span_count,
            "rejected": self.rejected_count,
            "files": [
                {
                    "file": file.name,
                    "spans": file.span_count,
                    "rejected": file.rejected_count,
                    "faults": file.faults,
                    "reasons": dict(file.reasons),
                }
                for file in self.files
            ],
        }


def load_files(
    store: Store, paths: Sequence[str], progress: Callable[[int], None] = lambda _: None
) -> LoadReport:
    """Load every file in *paths* ('-' is standard input) into `otel_traces`.

    Args:
        progress: Called with the number of spans stored so far.

    Raises:
        InputError: A file cannot be opened; nothing has been loaded then.
        StoreError: The store takes no rows any more.
    """
    for path in paths:
        if path != "-" and (not os.access(path, os.R_OK) or os.path.isdir(path)):
            raise InputError(f"There is no file {path!r} that can be read.")
    report, loaded = LoadReport(), _Group(store)
    foreign: set[str] = set()
    for path in paths:
        file = FileReport("standard input" if path == "-" else path)
        report.files.append(file)
        with _opened(path) as source:
            for message in messages(source):
                if message.fault:
                    file.faults.append(f"{message.place}: {message.fault}")
                file.reasons.update(message.decoded.reasons)
                loaded.add(encode_rows(message.decoded.rows), file)
                foreign |= foreign_traces(message.decoded.rows)
                progress(report.span_count)
        loaded.flush()
        progress(report.span_count)
    settle(store, foreign)
    return report


@contextlib.contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    if path == "-":
        yield sys.stdin.buffer
        return
    with Path(path).open("rb") as file:
        yield file


class _Group:
    """Rows of one file that wait to be inserted together."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: list[bytes] = []
        self._size_bytes = 0
        self._file: FileReport | None = None
        self._refusals = 0

    def add(self, rows: list[bytes], file: FileReport) -> None:
        self._file = file
        self._rows += rows
        self._size_bytes += sum(map(len, rows))
        if self._size_bytes >= GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        rows, self._rows, self._size_bytes = self._rows, [], 0
        if rows and self._file is not None:
            self._insert(rows, self._file)

    def _insert(self, rows: list[bytes], file: FileReport) -> None:
        """Insert *rows*, by halves where they fail, so that a bad row costs only itself."""
        try:
            self._store.client.raw_insert(
                TABLE,
                column_names=list(COLUMNS),
                insert_block=b"".join(rows),
                fmt=FORMAT,
                settings=_SETTINGS,
            )
        except Exception as error:
            reason = (str(error).strip().splitlines() or ["no reason given"])[0][:200]
            if len(rows) > 1:
                middle = len(rows) // 2
                self._insert(rows[:middle], file)
                self._insert(rows[middle:], file)
                return
            self._refusals += 1
            if self._refusals > _MAX_REFUSALS:
                raise StoreError(f"The store takes no rows: {reason}") from error
            file.reasons[f"the store refused it: {reason}"] += 1
        else:
            file.span_count += len(rows)
