"""The SQL port lets nothing out: all that the engine offers was judged, by name."""

from __future__ import annotations

import pytest

from ragotel.server.statement import OUTSIDE
from ragotel.store import Store

INSIDE = {
    "system.table_functions": """
        cluster clusterallreplicas dictionary format fuzzjson generaterandom generateseries
        generate_series input loop merge mergetreeanalyzeindexes mergetreeanalyzeindexesuuid
        mergetreecodecblockcounts mergetreeindex mergetreeprojection mergetreetextindex null
        numbers numbers_mt primes prometheusquery prometheusqueryrange sqlstandardvalues
        timeseriesdata timeseriesmetricfamilies timeseriesmetrics timeseriessamples
        timeseriesselector timeseriestags values view viewexplain viewifpermitted zeros zeros_mt
    """,
    "system.table_engines": """
        aggregatingmergetree alias buffer coalescingmergetree collapsingmergetree dictionary
        distributed fuzzjson generaterandom graphitemergetree join log loop materializedview memory
        merge mergetree null replacingmergetree replicatedaggregatingmergetree
        replicatedcoalescingmergetree replicatedcollapsingmergetree replicatedgraphitemergetree
        replicatedmergetree replicatedreplacingmergetree replicatedsummingmergetree
        replicatedversionedcollapsingmergetree set stripelog summingmergetree timeseries tinylog
        versionedcollapsingmergetree view
    """,
    "system.database_engines": "atomic dictionary memory ordinary replicated",
}
"""What stays inside of the engine, judged by what each does; one that is in no list is new."""


@pytest.mark.parametrize("source", INSIDE)
def test_everything_the_engine_offers_was_judged(engine: Store, source: str) -> None:
    """A function or engine that a new release brings stops here until somebody has judged it."""
    outside = {name.decode() for name in OUTSIDE}
    offered = {row[0].lower() for row in engine.query(f"select name from {source}").result_rows}
    assert offered - outside - set(INSIDE[source].split()) == set()


def test_functions_that_ask_a_model_are_outside(engine: Store) -> None:
    """The engine's functions that call a language model are refused with those that read files."""
    rows = engine.query("select name from system.functions where match(name, '^(ai|AI)[A-Z]')")
    named = {row[0].lower().encode() for row in rows.result_rows}
    assert named - OUTSIDE == set()
