"""Question: one SELECT with its bound parameters; what every module here hands to the store.

Pipeline: views -> store -> [triage] -> cli | server
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ragotel.store import Store


@dataclass(frozen=True)
class Question:
    """A SELECT whose values are bound by name, so that a person's text is never part of the SQL."""

    sql: str
    parameters: dict[str, Any] = field(default_factory=dict)

    def ask(self, store: Store) -> list[dict[str, Any]]:
        """The rows, as dicts."""
        return store.rows(self.sql, self.parameters)

    def as_script(self) -> str:
        """The same for `clickhouse client`: parameters as `set param_…` lines, then the SELECT."""
        lines = [f"set param_{name} = {_quoted(value)};" for name, value in self.parameters.items()]
        return "\n".join([*lines, self.sql.strip() + ";"])


@dataclass
class Conditions:
    """A `where` that grows one bound condition at a time."""

    clauses: list[str] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)

    def add(self, clause: str, **parameters: Any) -> None:
        self.clauses.append(clause)
        self.parameters.update(parameters)

    def equal(self, column: str, value: str | None) -> None:
        """`column = value`, where a value was given."""
        if value is not None:
            self.add(f"{column} = {{{column}:String}}", **{column: value})

    def __str__(self) -> str:
        return "where " + "\n    and ".join(self.clauses) if self.clauses else ""


def _quoted(value: Any) -> str:
    if isinstance(value, list | tuple):
        inner = ",".join("'" + _escaped(str(entry)) + "'" for entry in value)
        return "'" + _escaped(f"[{inner}]") + "'"
    return "'" + _escaped(str(value)) + "'"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
