"""Options: what every command takes, and the store that it opens with them.

Pipeline: views -> triage -> [cli]
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

from ragotel.errors import StoreError
from ragotel.store import Store

F = TypeVar("F", bound=Callable[..., Any])


class Amount(click.FloatRange):
    """A number from 0 on; click's own range lets NaN and infinity pass."""

    def __init__(self) -> None:
        super().__init__(0)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


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
