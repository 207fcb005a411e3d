"""Catalog: the .sql files that ship with the package, in the order in which they are applied.

Functions and views hold no data and are made again where they differ; tables are numbered and
applied once.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Traversable


@dataclass(frozen=True)
class SqlFile:
    """One statement: *layer* is its folder, *name* the file's name without the ending."""

    layer: str
    name: str
    text: str

    @property
    def head(self) -> dict[str, str]:
        """The three-line head: answers, grain, reads."""
        lines = [line[3:] for line in self.text.splitlines()[:3] if line.startswith("-- ")]
        return {key.strip(): value.strip() for key, _, value in (x.partition(":") for x in lines)}


def functions() -> list[SqlFile]:
    return _folder("functions")


def tables() -> list[SqlFile]:
    """Numbered, forward-only: in the order of their numbers."""
    return _folder("tables")


def views() -> list[SqlFile]:
    """In layer order; within a layer by number, so that a view comes after those it reads."""
    return [file for layer in _subfolders("views") for file in _folder(f"views/{layer}")]


def _root() -> Traversable:
    return files("ragotel") / "sql"


def _subfolders(name: str) -> list[str]:
    return sorted(entry.name for entry in (_root() / name).iterdir() if entry.is_dir())


def _folder(name: str) -> list[SqlFile]:
    folder = _root()
    for part in name.split("/"):
        folder = folder / part
    found = [entry for entry in folder.iterdir() if entry.name.endswith(".sql")]
    return [
        SqlFile(layer=name, name=entry.name[: -len(".sql")], text=entry.read_text("utf-8"))
        for entry in sorted(found, key=lambda entry: entry.name)
    ]
