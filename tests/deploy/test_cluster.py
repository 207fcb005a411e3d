"""The schema of a cluster: every statement parses, and two shards say what one engine says.

Not run here, as it takes servers: the DDL queue of `on cluster`, Keeper, and the copying of parts
between replicas.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ragotel.cli.init import init
from ragotel.errors import MigrationError
from ragotel.store import Store, catalog, cluster
from ragotel.store.catalog import SqlFile

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parent / "sql"
NAME = "prod-1"
FILES = cluster.cluster_statements(NAME, "rag")
TEXTS = {file.name: file.text for file in FILES}

ALL_VIEWS = [file.name for file in catalog.views()]
VIEWS = [
    *("triage_requests", "triage_losses", "triage_gap_causes", "triage_budgets"),
    *("dist_buckets", "dist_coverage", "dist_recall", "dist_ingest_runs"),
    *("alert_capture_losses", "alert_corpus_gap", "rag_label_grades", "rag_candidate_journeys"),
]
"""Every table, and every way in which the views join them; RAGOTEL_ALL_VIEWS=1 asks all views."""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_engine_parses_every_statement(engine: Store, file: SqlFile) -> None:
    """As one statement; what is made bears the cluster's name."""
    parsed = engine.client.query(
        "select formatQuerySingleLine({sql:String})", parameters={"sql": file.text}
    ).result_rows[0][0]
    if file.name not in ("use", "taken"):
        assert "ON CLUSTER `prod-1`" in parsed or "ON CLUSTER 'prod-1'" in parsed


def test_a_table_of_spans_is_sharded_by_the_trace() -> None:
    """Each shard has its own, replicated; the plain name writes and reads all by one hash."""
    own, all_shards = TEXTS["0020_rag_requests"], TEXTS["0020_rag_requests (distributed)"]
    assert "create table if not exists rag_requests_local on cluster 'prod-1'" in own
    assert (
        "engine = ReplicatedReplacingMergeTree("
        "'/clickhouse/tables/{shard}/{database}/rag_requests', '{replica}', ingested_at)"
    ) in own
    assert all_shards == (
        "create table if not exists rag_requests on cluster 'prod-1' as rag_requests_local\n"
        "engine = Distributed('prod-1', 'rag', 'rag_requests_local', cityHash64(trace_id))\n"
    )
    assert "cityHash64(TraceId)" in TEXTS["0010_otel_traces (distributed)"]


def test_what_people_write_is_copied_to_every_node() -> None:
    """One replication path for all shards; no two nodes have the same name on it."""
    assert (
        "engine = ReplicatedReplacingMergeTree("
        "'/clickhouse/tables/all/{database}/rag_labels', '{shard}-{replica}', loaded_at)"
    ) in TEXTS["0070_rag_labels"]
    assert "engine = Null" in TEXTS["0076_rag_labels_in"]


def test_every_table_is_sharded_or_copied() -> None:
    """No table that keeps rows stays on one node, and none has two engines on one path."""
    paths = []
    for file in catalog.tables():
        if not re.search(r"(?m)^create table", file.text):
            continue
        text = TEXTS[file.name]
        engine = re.search(r"(?m)^engine = (\w+)(?:\('([^']*)')?", text)
        assert engine is not None
        assert engine[1] == "Null" or engine[1].startswith("Replicated")
        paths.append(engine[2])
    kept = [path for path in paths if path]
    assert len(kept) == len(set(kept))


def test_materialized_views_go_from_a_node_to_the_same_node() -> None:
    """None reads or writes a distributed table: each span would be written once per shard."""
    for file in FILES:
        if not re.search(r"(?m)^create materialized view", file.text):
            continue
        code = re.sub(r"(?m)^--.*$", "", file.text)
        for table in cluster.SHARDED:
            assert not re.search(rf"\b(?:from|to|join)\s+{table}\b", code), file.name


def test_every_view_says_how_it_asks_other_shards() -> None:
    """In its own text, so that no profile of a reader changes it."""
    for view in catalog.views():
        assert "distributed_product_mode = 'global'" in TEXTS[view.name].splitlines()[-1]
        assert "skip_unavailable_shards = 0" in TEXTS[view.name].splitlines()[-1]


def test_a_form_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that changes a table must say what that means on a cluster."""
    altered = SqlFile("tables", "9999_altered", "alter table rag_requests add column x String")
    monkeypatch.setattr(cluster, "statements", lambda: [altered])
    with pytest.raises(MigrationError, match="9999_altered"):
        cluster.cluster_statements(NAME, "rag")


def test_the_command_prints_all_of_it_in_order() -> None:
    """The database is that of --store; nothing is opened."""
    done = CliRunner().invoke(
        init, ["--print", "--cluster", NAME, "--store", "http://nowhere:8123/rag"]
    )
    assert done.exit_code == 0
    places = [done.output.index(file.text.rstrip() + ";") for file in FILES]
    assert places == sorted(places)
    alone = CliRunner().invoke(init, ["--cluster", NAME])
    assert (alone.exit_code, "--cluster needs --print" in alone.output) == (2, True)


def on_two_shards(folder: Path, world: str, views: list[str]) -> dict[str, Any]:
    ran = subprocess.run(
        [
            *(sys.executable, str(HERE / "two_shards.py"), str(folder)),
            *(str(GOLDEN / "worlds" / world), *views),
        ],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    views = ALL_VIEWS if os.environ.get("RAGOTEL_ALL_VIEWS") else VIEWS
    return on_two_shards(tmp_path_factory.mktemp("cluster"), "hit", views)


@pytest.mark.slow
@pytest.mark.timeout(1300)
def test_views_over_two_shards_give_what_they_give_over_one_engine(
    sharded: dict[str, Any],
) -> None:
    """The requests lie on both shards, labels and manifests on each; every row is the same."""
    golden = {
        view: (GOLDEN / view / "hit" / "expected.csv").read_text("utf-8")
        for view in sharded["answers"]
    }
    assert sharded["answers"] == golden


@pytest.mark.slow
@pytest.mark.timeout(1300)
def test_a_request_is_on_one_shard(sharded: dict[str, Any]) -> None:
    """Five requests, three and two; a look-up by trace asks one shard; init keeps its hands off."""
    assert sharded["facts"] == {
        "requests_by_shard": {"1": 3, "2": 2},
        "traces_on_two_shards": 0,
        "shards_asked_for_a_trace": 1,
        "shards_asked_for_all": 2,
        "is_cluster": True,
    }
