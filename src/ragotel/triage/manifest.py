"""Manifest: what an index version holds, from a file; the row that says "whole" comes last.

Pipeline: file -> [triage] -> rag_index_chunks, rag_chunks, rag_index_versions -> triage views
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ragotel.errors import InputError
from ragotel.store import Store
from ragotel.text import chunk_sha
from ragotel.triage.fields import FieldError, count_of, flag_of, id_of, require, text_of
from ragotel.triage.lines import Line, Progress, Report, no_progress, read_lines

COLUMNS = (
    *("index_name", "chunk_id", "version", "load_id", "doc_id", "doc_version", "chunk_sha"),
    *("chars", "superseded", "deleted", "position"),
)
_BATCH_ROWS = 50_000
_BATCH_CHARS = 32 << 20


@dataclass(frozen=True)
class Version:
    """The index version that a manifest describes; with *parent* the file is a list of changes."""

    index_name: str
    version: str
    parent: str = ""


def load_manifest(
    store: Store, paths: Iterable[str], version: Version, progress: Progress = no_progress
) -> Report:
    """Load a manifest; a chunk that stands twice counts as its last line says.

    The version is marked whole only when every line was read; else existence in it stays unknown.

    Raises:
        InputError: The version would be its own parent, a manifest without a parent holds no
            chunk, or a file cannot be read.
    """
    if version.parent == version.version:
        raise InputError(f"The version {version.version!r} cannot be its own parent.")
    report, load_id = Report(), uuid.uuid4().hex
    rows: dict[str, tuple[Any, ...]] = {}
    texts = _Texts(store)
    for line in read_lines(paths, report, progress):
        try:
            row = _row(line, version, load_id, texts)
        except FieldError as error:
            report.refuse(line, str(error))
            continue
        if row[1] in rows:
            report.notes.append(f"{line} replaces an earlier line of the chunk {row[1]!r}")
        rows[row[1]] = row
    if not rows and not report.refused and not version.parent:
        raise InputError(
            f"The manifest of {version.index_name} {version.version} holds no chunk, so that every "
            "gold passage would be missing from it; give the file that lists them."
        )
    texts.flush()
    listed = list(rows.values())
    for start in range(0, len(listed), _BATCH_ROWS):
        store.insert("rag_index_chunks", listed[start : start + _BATCH_ROWS], COLUMNS)
    report.loaded = len(rows)
    _mark_whole(store, version, load_id, report)
    return report


def _row(line: Line, version: Version, load_id: str, texts: _Texts) -> tuple[Any, ...]:
    record: Mapping[str, Any] = line.value
    chunk_id = require(id_of(record, "chunk_id"), "chunk_id")
    deleted = flag_of(record, "deleted", False)
    if deleted and not version.parent:
        raise FieldError("deleted is for a list of changes: give its --parent")
    text = None if record.get("text") is None else text_of(record, "text")
    chars = count_of(record, "chars")
    if chars is None and text is not None:
        chars = len(text)
    return (
        *(version.index_name, chunk_id, version.version, load_id, id_of(record, "doc_id")),
        *(id_of(record, "doc_version"), "" if text is None or deleted else texts.add(text)),
        *(chars, int(flag_of(record, "superseded", False)), int(deleted), line.number),
    )


class _Texts:
    """Chunk texts on their way into the store, a few megabytes at a time, each text once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: set[str] = set()
        self._rows: list[tuple[str, str]] = []
        self._chars = 0

    def add(self, text: str) -> str:
        """Take *text*; its name."""
        sha = chunk_sha(text)
        if sha not in self._seen:
            self._seen.add(sha)
            self._rows.append((sha, text))
            self._chars += len(text)
            if len(self._rows) >= _BATCH_ROWS or self._chars >= _BATCH_CHARS:
                self.flush()
        return sha

    def flush(self) -> None:
        self._store.insert("rag_chunks_in", self._rows, ("chunk_sha", "text"))
        self._rows, self._chars = [], 0


def _mark_whole(store: Store, version: Version, load_id: str, report: Report) -> None:
    name = f"{version.index_name} {version.version}"
    if report.refused:
        report.notes.append(
            f"{name} is NOT marked whole, as lines were refused: "
            "whether a chunk was in it stays unknown until its manifest is loaded without a fault"
        )
        return
    row = (version.index_name, version.version, version.parent, load_id, report.loaded)
    columns = ("index_name", "version", "parent_version", "load_id", "chunk_rows")
    store.insert("rag_index_versions", [row], columns)
    if version.parent and not _is_whole(store, version.index_name, version.parent):
        report.notes.append(
            f"The parent {version.index_name} {version.parent} has no whole manifest yet: "
            f"whether a chunk was in {name} stays unknown until it is loaded"
        )


def _is_whole(store: Store, index_name: str, version: str) -> bool:
    found = store.scalar(
        "select count() from rag_index_chains "
        "where index_name = {index_name:String} and version = {version:String} and is_whole",
        {"index_name": index_name, "version": version},
    )
    return bool(found)
