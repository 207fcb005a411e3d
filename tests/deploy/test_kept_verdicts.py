"""What deploy/clickhouse/kept-verdicts.sql keeps, and that it takes it anew."""

from __future__ import annotations

from pathlib import Path

from test_grants import CLICKHOUSE, statements
from test_retention import BUILD_WORLD, run

_DO = """
import json, sys
from ragotel.store import open_store
with open_store(sys.argv[1], follow_server=False) as store:
    for sql in json.load(sys.stdin):
        if sql.startswith("select "):
            print(*store.query(sql).result_rows[0])
        else:
            store.client.command(sql)
"""
REFRESH = ("system refresh view kept_triage_requests", "system wait view kept_triage_requests")
ROWS = "trace_id, request_id, label_id, bucket, loss_stage, arm"


def test_kept_verdicts_are_those_of_the_view_until_they_are_taken_anew(tmp_path: Path) -> None:
    """A grade that comes later is in the view at once, in the kept rows after the next refresh."""
    run(BUILD_WORLD, tmp_path)
    make = [
        each.rstrip(";")
        for each in statements(CLICKHOUSE / "kept-verdicts.sql")
        if not each.startswith("grant ")
    ]
    differ = (
        f"(select count() from (select {ROWS} from triage_requests except all"
        f" select {ROWS} from kept_triage_requests))"
    )
    ask = f"select {differ}, (select count() > 0 from kept_triage_requests)"
    graded = (
        "insert into rag_grades (trace_id, request_id, label_id, grade, source)"
        " select trace_id, request_id, label_id, 'correct', 'human'"
        " from triage_requests where bucket = 'generation_error'"
    )
    # In one process: an engine that starts takes such a view anew at once.
    found = run(_DO, tmp_path, *make, *REFRESH, ask, graded, ask, *REFRESH, ask)
    assert found.splitlines() == ["0 1", "1 1", "0 1"]
