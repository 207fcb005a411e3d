"""A database that the tests of one module share, apart from those that each test takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ragotel.store import Store, migrate


def step_into(store: Store, name: str) -> None:
    store.client.database = store.database = name


@contextmanager
def own_database(store: Store, name: str) -> Iterator[str]:
    """Make, migrate and step into *name*; other tests may step elsewhere, it is dropped at last."""
    # The database that the engine stands in may be one that was dropped since.
    step_into(store, "default")
    store.command(f"create database `{name}`")
    step_into(store, name)
    try:
        migrate(store)
        yield name
    finally:
        step_into(store, "default")
        store.command(f"drop database `{name}`")
