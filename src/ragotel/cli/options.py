"""Options: what every command takes, and the store that it opens with them.

Pipeline: views -> triage -> [cli]
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import click

from ragotel.errors import StoreError
from ragotel.store import Store

F = TypeVar("F", bound=Callable[..., Any])


class Whole(click.IntRange):
    """A whole number within bounds, told in words where it is none."""

    def __init__(self, least: int, most: int) -> None:
        super().__init__(least, most)
        self._bounds = (least, most)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = _as_number(int, value)
        least, most = self._bounds
        if number is None or not least <= number <= most:
            self.fail(f"{value!r:.80} is no whole number from {least:,} to {most:,}.", param, ctx)
        return number


class Amount(click.FloatRange):
    """A finite number from 0 to *most*; click's own range lets NaN pass."""

    def __init__(self, most: float) -> None:
        super().__init__(0, most)
        self._most = most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = _as_number(float, value)
        if number is None or not 0 <= number <= self._most:
            self.fail(f"{value!r:.80} is no number from 0 to {self._most:,.10g}.", param, ctx)
        return number


class OneOf(Whole):
    """One of a few whole numbers: those that the views count by."""

    def __init__(self, known: Sequence[int], what: str) -> None:
        super().__init__(min(known), max(known))
        self._known = known
        self._what = what

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = _as_number(int, value)
        if number is None or number not in self._known:
            known = ", ".join(map(str, self._known))
            self.fail(f"{value!r:.80} is no {self._what}; there are {known}.", param, ctx)
        return number

    def _describe_range(self) -> str:
        return ""


N = TypeVar("N", int, float)


def _as_number(kind: type[N], value: Any) -> N | None:
    try:
        return kind(value)
    except (ValueError, OverflowError):
        return None


store_option = click.option(
    "--store",
    "dsn",
    metavar="DSN",
    help="chdb:///path or http(s)://user:password@host:8123/db. Default: RAGOTEL_STORE, "
    "else chdb in ~/.ragotel/store.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
debug_option = click.option(
    "--debug", is_flag=True, expose_value=False, help="Show the traceback of a fault."
)
sql_option = click.option("--sql", "show_sql", is_flag=True, help="Print the SQL; run nothing.")


def common_options(function: F) -> F:
    """Give a command --store (as *dsn*), --json (as *as_json*) and --debug."""
    for option in (debug_option, json_option, store_option):
        function = option(function)
    return function


@contextlib.contextmanager
def ready_store(dsn: str | None) -> Iterator[Store]:
    """Open the store and see that it has the schema; it is closed at the end.

    Raises:
        StoreError: There is no store, or its schema is missing or older than this package.
    """
    from ragotel.store import open_store, pending

    store = open_store(dsn, create=False)
    try:
        missing = pending(store)
        if missing:
            raise StoreError(_what_is_missing(store, missing))
        yield store
    finally:
        store.close()


def _what_is_missing(store: Store, missing: list[str]) -> str:
    from ragotel.store import catalog

    advice = "run `ragotel init` with the same --store"
    if len(missing) == len(catalog.tables()):
        return f"The database {store.database!r} of this store has no ragotel schema: {advice}."
    return f"The store's schema lacks {len(missing)} steps ({missing[0]} ...): {advice}."
