"""What deploy/clickhouse/retention.sql deletes, and what it keeps."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from test_grants import CLICKHOUSE, statements

HERE = Path(__file__).resolve().parent
WORLD = HERE.parent / "sql" / "worlds" / "hit"

_ASK = """
import json, sys
from ragotel.store import open_store
with open_store(sys.argv[1], follow_server=False) as store:
    for sql in json.load(sys.stdin):
        found = store.client.raw_query(sql, fmt="TSV").decode()
    print(found, end="")
"""
BUILD_WORLD = f"""
import sys
sys.path[:0] = [{str(HERE.parent)!r}, {str(HERE.parent / "sql")!r}]
from pathlib import Path
from small_worlds import deliver, tell
from ragotel.store import migrate, open_store
with open_store(sys.argv[1], follow_server=False) as store:
    migrate(store)
    deliver(store, Path({str(WORLD)!r}))
    tell(store, Path({str(WORLD)!r}))
"""

TABLES = ("otel_traces", "rag_prompts", "rag_requests", "rag_stages")
KINDS = ("plain", "complained", "graded", "labelled", "fresh")


def run(program: str, folder: Path, *sql: str) -> str:
    """Run *program* in a process of its own, as each start of a server reads tables anew."""
    ran = subprocess.run(
        [sys.executable, "-c", program, f"chdb://{folder}/store"],
        input=json.dumps(sql),
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout


def spans(kind: str, age_days: int) -> str:
    label = "L-sla" if kind == "labelled" else ""
    return (
        "insert into otel_traces (Timestamp, TraceId, SpanId, ServiceName, SpanAttributes) select "
        f"now64(9) - interval {age_days} day, '{kind}', stage, 'bot', map('rag.stage', stage, "
        f"'rag.request.id', '{kind}', 'rag.label.id', '{label}', 'rag.prompt.text', 'p') "
        "from (select arrayJoin(['request', 'retrieve', 'assemble']) as stage)"
    )


def test_what_people_spoke_about_outlives_what_they_did_not(tmp_path: Path) -> None:
    """Of requests that are two years old those with a label, a grade or a complaint stay."""
    run(BUILD_WORLD, tmp_path)
    run(
        _ASK,
        tmp_path,
        *(spans(kind, 1 if kind == "fresh" else 730) for kind in KINDS),
        "insert into rag_complaints (complaint_id, request_id, text)"
        " select 'c', 'complained', 'wrong'",
        "insert into rag_grades (trace_id, request_id, label_id, grade, source)"
        " select 'graded', 'graded', 'L-sla', 'wrong', 'human'",
        *(each.rstrip(";") for each in statements(CLICKHOUSE / "retention.sql")),
        "select 1",
    )
    # A new process reads the tables with their retention, as a server does that starts again.
    kept = ", ".join(
        f"(select arraySort(groupUniqArray({column})) from {table} where {column} in {KINDS})"
        for table in TABLES
        for column in ["TraceId" if table == "otel_traces" else "trace_id"]
    )
    found = run(
        _ASK,
        tmp_path,
        *(f"alter table {table} materialize ttl settings mutations_sync = 2" for table in TABLES),
        *(f"optimize table {table} final" for table in TABLES),
        f"select {kept}",
    )
    spoken = "['complained','fresh','graded','labelled']"
    assert found.rstrip("\n").split("\t") == ["['fresh']", spoken, spoken, spoken]
