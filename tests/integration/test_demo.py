"""`ragotel demo`, run once as a user runs it, its store kept and asked afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from ragotel.demo.figures import BUCKETS
from ragotel.demo.traffic import COMPLAINANT, COMPLAINT_LABEL

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Shown:
    """One run of the demo: what it printed, and where it kept its store."""

    code: int
    output: str
    errors: str
    folder: Path

    def sql(self, query: str) -> list[dict[str, Any]]:
        store = f"chdb://{self.folder / 'store'}"
        rows: list[dict[str, Any]] = json.loads(ragotel("sql", "--store", store, "--json", query))
        return rows

    def table(self, heading: str) -> list[list[str]]:
        """The words of the lines below *heading*, without the head of the table."""
        block = self.output.split(heading)[1].strip("\n").split("\n\n")[0]
        return [line.split() for line in block.splitlines()[1:]]


def ragotel(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ragotel", *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    folder = tmp_path_factory.mktemp("demo") / "kept"
    done = subprocess.run(
        [sys.executable, "-m", "ragotel", "demo", "--keep", str(folder)],
        capture_output=True,
        text=True,
        timeout=540,
    )
    return Shown(done.returncode, done.stdout, done.stderr, folder)


def counts(rows: list[dict[str, Any]], key: str) -> dict[str, list[int]]:
    found: dict[str, dict[str, int]] = {}
    for row in rows:
        found.setdefault(row[key], {})[row["bucket"]] = int(row["requests"])
    return {name: [of.get(bucket, 0) for bucket in BUCKETS] for name, of in found.items()}


def test_it_ends_well(shown: Shown) -> None:
    """Every kind of verdict came up and the complaint was explained: exit code 0."""
    assert (shown.code, shown.errors if shown.code else "") == (0, "")


def test_the_printed_distribution_is_the_sql_s(shown: Shown) -> None:
    """Each printed number per day and per index version is what the view says."""
    by_day = {line[0]: [int(word) for word in line[2:11]] for line in shown.table("by day")}
    by_version = {
        line[0]: [int(word) for word in line[1:10]] for line in shown.table("by index version")
    }
    query = (
        "select {0} as grain, bucket, count() as requests from triage_requests "
        "where label_id in (select label_id from rag_labels where label_set = 'python-reference') "
        "and matched_by != 'attached' group by grain, bucket"
    )
    for grain, printed in (("toString(toDate(started_at))", by_day), ("index_version", by_version)):
        asked = counts(shown.sql(query.format(grain)), "grain")
        assert printed == {name: [*row, sum(row)] for name, row in asked.items()}
    assert len(by_day) == 14
    assert len(by_version) == 8


def test_each_bucket_occurs_with_its_reason(shown: Shown) -> None:
    """One verdict of each kind is shown with the sentence that the view gives."""
    part = shown.output.split("One verdict of each kind")[1].split(f"\n{COMPLAINANT} calls")[0]
    blocks = [block.splitlines() for block in part.strip().split("\n\n")]
    assert [block[0].split()[0] for block in blocks] == list(BUCKETS)
    requests = ", ".join(f"'{block[0].split()[2]}'" for block in blocks)
    asked = shown.sql(
        f"select request_id, bucket, why from triage_requests where request_id in ({requests})"
    )
    assert {(row["request_id"], row["bucket"], row["why"]) for row in asked} == {
        (block[0].split()[2], block[0].split()[0], block[3].removeprefix("  why       "))
        for block in blocks
    }


def test_requests_lie_in_the_past(shown: Shown) -> None:
    """Fourteen whole days up to yesterday, arrived today, each request with its stages."""
    (row,) = shown.sql(
        "select toString(toDate(min(started_at))) as first, "
        "toString(toDate(max(started_at))) as last, "
        "uniqExact(toDate(started_at)) as days, count() as requests from rag_requests"
    )
    ended = datetime.fromisoformat(row["last"]).date()
    assert int(row["days"]) == 14
    assert ended - datetime.fromisoformat(row["first"]).date() == timedelta(days=13)
    today = datetime.now(timezone.utc).date()
    assert today - ended in (timedelta(days=1), timedelta(days=2))
    stages = shown.sql(
        "select stage, stage_name, count() as runs from rag_stages where stage != 'ingest' "
        "group by stage, stage_name order by runs, stage, stage_name"
    )
    assert {(line["stage"], line["stage_name"]): int(line["runs"]) for line in stages} == {
        ("retrieve", "bm25"): int(row["requests"]),
        ("retrieve", "dense"): int(row["requests"]),
        ("fuse", "fuse"): int(row["requests"]),
        ("rerank", "rerank"): int(row["requests"]),
        ("assemble", "build_prompt"): int(row["requests"]),
        ("generate", "complete"): int(row["requests"]),
    }


def test_the_faults_stand_in_the_ingest_runs(shown: Shown) -> None:
    """Six pages parsed to nothing in v2; v4 deleted passages though every page parsed."""
    runs = shown.sql(
        "select index_version, toUInt32(docs_listed - docs_parsed) as unparsed, "
        "toUInt32(docs_empty) as empty, toUInt32(chunks_deleted) as deleted "
        "from rag_ingest_runs order by index_version"
    )
    assert [run["index_version"] for run in runs] == [f"v{number}" for number in range(1, 9)]
    empty = {run["index_version"]: (int(run["unparsed"]), int(run["empty"])) for run in runs}
    assert {version for version, pair in empty.items() if pair != (0, 0)} == {"v2"}
    assert empty["v2"] == (6, 6)
    deleted = {run["index_version"]: int(run["deleted"]) for run in runs}
    assert deleted["v4"] > 100
    assert {version for version, count in deleted.items() if count} == {"v2", "v4", "v7"}


def test_the_complaint_is_found_and_explained(shown: Shown) -> None:
    """Of eleven days ago, by user, rough day and two words; its verdict is a corpus gap of v2."""
    (row,) = shown.sql(
        "select request_id, user_id, toString(toDate(started_at)) as day, bucket, attribution, "
        "index_version, grade, why from triage_requests "
        f"where label_id = '{COMPLAINT_LABEL}' and user_id = '{COMPLAINANT}' "
        "and question like '%swallowed%'"
    )
    first = min(line[0] for line in shown.table("by day"))
    start = datetime.fromisoformat(first).date()
    assert row["day"] == (start + timedelta(days=3)).isoformat()
    assert (row["bucket"], row["attribution"], row["index_version"], row["grade"]) == (
        "corpus_gap",
        "ingest",
        "v2",
        "wrong",
    )
    for command in (
        f"$ ragotel find --user {COMPLAINANT} --around {row['day']} --text 'exception swallowed'",
        f"$ ragotel show {row['request_id']}",
        f"$ ragotel complaint {row['request_id']} --text ",
        f"$ ragotel labels attach {row['request_id']} {COMPLAINT_LABEL}",
    ):
        assert command in shown.output


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    """--keep takes a new folder: what stands there is not touched, the exit code is 2."""
    (tmp_path / "mine").write_text("kept")
    done = subprocess.run(
        [sys.executable, "-m", "ragotel", "demo", "--keep", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
