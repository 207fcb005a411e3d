"""Every query of every dashboard, asked by the user without text, over a store with rows."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from test_grants import CLICKHOUSE, WORLD, Asking, grants

from served import REPOSITORY

HERE = Path(__file__).resolve().parent
DASHBOARDS = sorted((REPOSITORY / "deploy" / "grafana" / "dashboards").glob("*.json"))
SINCE = datetime(2026, 11, 1, tzinfo=timezone.utc)
UNTIL = datetime(2026, 11, 30, 23, tzinfo=timezone.utc)


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def queries(dashboard: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and SQL of each variable and each panel."""
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield f"${variable['name']}", variable["query"]
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["rawSql"]


def filled(sql: str, chosen: str) -> str:
    """The query as the plugin sends it: its macros and the board's variables are filled in."""
    since, until = int(SINCE.timestamp()), int(UNTIL.timestamp())
    sql = re.sub(
        r"\$__timeFilter\((\w+)\)", rf"\1 >= toDateTime({since}) AND \1 <= toDateTime({until})", sql
    )
    sql = re.sub(
        r"\$__dateFilter\((\w+)\)",
        rf"\1 >= toDate('{SINCE:%Y-%m-%d}') AND \1 <= toDate('{UNTIL:%Y-%m-%d}')",
        sql,
    )
    sql = re.sub(r"\$\{\w+:sqlstring\}", f"'{chosen}'", sql)
    assert "$" not in sql
    return sql


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_is_whole(path: Path) -> None:
    """Panels do not overlap, have a title and one query; every datasource is the variable."""
    dashboard = read(path)
    assert (dashboard["uid"], dashboard["timezone"]) == (path.stem, "utc")
    seen: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & seen
        assert at["x"] + at["w"] <= 24
        seen |= cells
        assert panel["title"]
        assert len(panel["targets"]) == 1
        assert panel["datasource"]["uid"] == "${datasource}"
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_query_answers_without_an_error(tmp_path: Path) -> None:
    """With all services and with one, as the reader of the grants; most have rows of the world."""
    built = subprocess.run(
        [sys.executable, str(HERE / "as_user.py"), str(tmp_path), "build", str(WORLD)],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert built.returncode == 0, built.stderr[-2000:]
    asked = [
        (path.stem, name, chosen, filled(sql, chosen))
        for path in DASHBOARDS
        for name, sql in queries(read(path))
        for chosen in (
            ("all", "bot") if "service:sqlstring" in sql and "label_set" not in sql else ("all",)
        )
    ]
    own = grants(CLICKHOUSE / "users-and-grants.sql", "ragotel_reader")
    answers = Asking(tmp_path)("grafana", own, [sql for *_, sql in asked])
    broken = {
        each[:3]: answer for each, answer in zip(asked, answers, strict=True) if answer.isupper()
    }
    assert broken == {}
    empty = {each[1] for each, answer in zip(asked, answers, strict=True) if not answer}
    assert empty <= {"Ingest runs", "Verdicts that could not be given"}
