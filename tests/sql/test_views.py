"""Every view over small worlds: whole rows, as CSV.

A case is a folder <view>/<world>/ with expected.csv; its input is worlds/<world>/, or the files
beside expected.csv where it has its own. Rows were written from the rules of docs/triage.md.
RAGOTEL_RECORD=1 rewrites expected.csv with what the views say: read the diff before you keep it.

The world 'miss' is delivered twice, as after a timeout, and recorded from one delivery.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_worlds import deliver, deliver_junk, tell

from own_database import own_database, step_into
from ragotel.store import Store, catalog

HERE = Path(__file__).resolve().parent
VIEWS = [file.name for file in catalog.views()]
WORLDS = ("hit", "miss", "malformed")
DELIVERED_TWICE = "miss"
RECORD = bool(os.environ.get("RAGOTEL_RECORD"))

OF_THE_CLOCK = {"ablated_at", "probed_at", "standing", "ingested_at", "loaded_at", "written_at"}
"""Columns that tell when the test ran."""
IN_NO_ORDER = {
    *("known_keys", "stating_keys", "claim_offsets", "known_chunk_ids", "known_doc_ids"),
    *("changes", "doc_ids", "by_id", "stated_in", "unread_in", "searched", "gold_ids_here"),
}
"""Columns that hold a set."""
STATED = {"triage_fixes", "rag_limits_in_force"}
"""Views that say what is built in; they have rows without any record."""
HEALTHY = {"service_name": "bot", "index_name": "docs"}
"""What junk does not share with the others' rows; a trace of junk is called so."""


class World:
    """One world in one database, kept for all tests of it."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store = store
        self.folder = folder
        self.database = store.database
        self.is_junked = folder.name == "malformed"
        deliver(store, folder)
        if folder.name == DELIVERED_TWICE and not RECORD:
            deliver(store, folder)
        self.junk_count = deliver_junk(store) if self.is_junked else 0
        tell(store, folder)

    def read(self, view: str) -> str:
        """All rows of *view* as sorted CSV; beside junk only those of the others."""
        return read(self.store, view, self.is_junked)


def read(store: Store, view: str, is_junked: bool = False) -> str:
    kinds = {row[0]: row[1] for row in store.query(f"describe table {view}").result_rows}
    columns = [column(name, kind) for name, kind in kinds.items() if name not in OF_THE_CLOCK]
    where = [f"{view}.{name} = '{value}'" for name, value in HEALTHY.items() if name in kinds]
    if "trace_id" in kinds:
        where = [f"not startsWith({view}.trace_id, 'junk')"]
    condition = f" where {' and '.join(where)}" if is_junked and where else ""
    found: bytes = store.client.raw_query(
        f"select {', '.join(columns)} from {view}{condition}", fmt="CSVWithNames"
    )
    header, *rows = csv.reader(io.StringIO(found.decode()))
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *sorted(rows)])
    return out.getvalue()


def column(name: str, kind: str) -> str:
    """The column as it can be compared: sets sorted, the noise of floating point cut off."""
    if name in IN_NO_ORDER:
        return f"arraySort({name}) as {name}"
    if kind in ("Float64", "Nullable(Float64)"):
        return f"round({name}, 9) as {name}"
    if kind in ("Array(Float64)", "Array(Nullable(Float64))"):
        return f"arrayMap(value -> round(value, 9), {name}) as {name}"
    return name


@pytest.fixture(scope="module", params=WORLDS)
def built(request: pytest.FixtureRequest, engine: Store) -> Iterator[World]:
    with own_database(engine):
        yield World(engine, HERE / "worlds" / request.param)


@pytest.fixture
def world(built: World) -> World:
    """The world, stepped into: tests in between may have stepped elsewhere."""
    step_into(built.store, built.database)
    return built


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_over_a_world_gives_exactly_these_rows(world: World, view: str) -> None:
    """What is recorded stands in the view as its rule says, and nothing else does."""
    path = HERE / view / world.folder.name / "expected.csv"
    found = world.read(view)
    if RECORD:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found, "utf-8")
    assert found == path.read_text("utf-8")


def test_junk_is_counted_and_never_lost(world: World) -> None:
    """A span with junk in every attribute is stored, and so is its stage, its lists marked."""
    if not world.is_junked:
        pytest.skip("there is no junk in this world")
    count = world.store.scalar
    kinds = count("select uniqExact(TraceId) from otel_traces where ServiceName = 'junk'")
    assert count("select count() from otel_traces where ServiceName = 'junk'") == world.junk_count
    assert count("select count() from rag_requests where service_name = 'junk'") == kinds
    stages = count("select count() from rag_stages where service_name = 'junk'")
    assert stages == world.junk_count - kinds
    marks = world.store.query(
        "select evidence, count() from rag_stages "
        "where service_name = 'junk' and stage = 'rerank' group by evidence"
    ).result_rows
    # Of the fifteen kinds two are lists: an empty one and one of odd elements.
    assert dict(marks) == {"malformed": kinds - 2, "empty": 1, "whole": 1}


def test_a_batch_delivered_twice_is_stored_twice(world: World) -> None:
    """After a timeout the service sends all spans again: no view says a thing twice."""
    if world.folder.name != DELIVERED_TWICE:
        pytest.skip("one world is enough")
    counts = "select count(), uniqExact(TraceId, SpanId) from otel_traces"
    ((stored, spans),) = world.store.query(counts).result_rows
    assert stored == 2 * spans


@pytest.mark.parametrize("view", [view for view in VIEWS if view not in STATED])
def test_a_view_of_an_empty_store_has_no_rows(store: Store, view: str) -> None:
    """Nothing recorded, nothing loaded: the view answers with its columns and no row."""
    assert read(store, view).count("\n") == 1


def test_every_view_has_its_cases() -> None:
    """No view without cases, no cases without a view."""
    found = {path.parent.parent.name for path in HERE.glob("*/*/expected.csv")}
    assert found == set(VIEWS)
