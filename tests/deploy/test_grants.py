"""Users, grants and row policies of deploy/clickhouse, held against a store with rows."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from as_user import users

from ragotel.store import Store, catalog
from served import REPOSITORY

HERE = Path(__file__).resolve().parent
CLICKHOUSE = REPOSITORY / "deploy" / "clickhouse"
WORLD = HERE.parent / "sql" / "worlds" / "hit"
DENIED = "ACCESS_DENIED"

TEXTS = (
    "The Team plan",
    "How many seats",
    "hardware be returned",
    "about warranty",
    "the boss",
    "monthly fee",
)
"""Words of the world's questions, answers, prompts and passages."""


def statements(path: Path) -> list[str]:
    """The statements of a file, without its comments."""
    text = re.sub(r"(?m)^\s*--.*$", "", path.read_text("utf-8"))
    return [each.strip() for each in text.split(";\n") if each.strip(" \n;")]


SQL_FILES = sorted(CLICKHOUSE.glob("*.sql"))


@pytest.mark.parametrize("path", SQL_FILES, ids=lambda path: path.name)
def test_the_engine_parses_every_statement(engine: Store, path: Path) -> None:
    """Each alone; none is empty."""
    found = statements(path)
    assert found
    for statement in found:
        engine.client.query(
            "select formatQuerySingleLine({sql:String})",
            parameters={"sql": statement.rstrip(";")},
        )


def grants(path: Path, user: str) -> str:
    """What *path* grants to *user*, as elements of a file of users."""
    queries = [
        f"<query>{escape(statement.rstrip(';').removesuffix(f' to {user}'))}</query>"
        for statement in statements(path)
        if statement.startswith("grant ") and statement.rstrip(";").endswith(f" to {user}")
    ]
    assert queries
    return f"<grants>{''.join(queries)}</grants>"


class Asking:
    """Asks a store as a user that has certain elements in the file of users."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, name: str, own: str, sql: list[str], profile: str = "") -> list[str]:
        users_file = self._folder / f"{name}.xml"
        users_file.write_text(users(own, profile), "utf-8")
        ran = subprocess.run(
            [sys.executable, str(HERE / "as_user.py"), str(self._folder), "ask", str(users_file)],
            input=json.dumps(sql),
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr[-2000:]
        found: list[str] = json.loads(ran.stdout)
        return found


@pytest.fixture(scope="module")
def ask_as(tmp_path_factory: pytest.TempPathFactory) -> Asking:
    folder = tmp_path_factory.mktemp("users")
    ran = subprocess.run(
        [sys.executable, str(HERE / "as_user.py"), str(folder), "build", str(WORLD)],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return Asking(folder)


def test_the_writer_only_adds_spans(ask_as: Asking) -> None:
    """Its span reaches the typed tables by the rights of their maker; it reads nothing."""
    span = (
        "insert into ragotel.otel_traces (Timestamp, TraceId, SpanId, ServiceName, SpanAttributes) "
        "select now64(9), 'written', 's', 'bot', "
        "map('rag.stage', 'request', 'rag.request.id', 'written', 'rag.tenant', 'acme')"
    )
    refused = [
        "select count() from ragotel.otel_traces",
        "select count() from ragotel.rag_requests",
        "insert into ragotel.rag_grades (trace_id) values ('x')",
        "alter table ragotel.otel_traces delete where 1",
        "truncate table ragotel.otel_traces",
        "drop table ragotel.otel_traces",
        "create table ragotel.mine (x Int32) engine = Memory",
    ]
    own = grants(CLICKHOUSE / "users-and-grants.sql", "ragotel_writer")
    answers = ask_as("writer", own, [span, *refused])
    assert answers == ["", *[DENIED] * len(refused)]
    everything = "<access_management>1</access_management>"
    count = "select count() from ragotel.rag_requests where request_id = 'written'"
    assert ask_as("after", everything, [count]) == ["1\n"]


def readable(path: Path, user: str) -> list[str]:
    """A query for all that *user* may read, one for each grant."""
    found = []
    for statement in statements(path):
        match = re.match(r"grant select(\(.+\))? on ragotel\.(\w+)(\*?) to (\w+)", statement)
        if match is None or match[4] != user:
            continue
        columns = match[1].strip("()") if match[1] else "*"
        names = [match[2]]
        if match[3]:
            names = [file.name for file in catalog.views() if file.name.startswith(match[2])]
        found += [f"select {columns} from ragotel.{name}" for name in names]
    return found


@pytest.mark.slow
def test_the_reader_sees_every_figure_and_no_text(ask_as: Asking) -> None:
    """All that it may read is readable, and holds no word that people wrote or were told."""
    path = CLICKHOUSE / "users-and-grants.sql"
    queries = readable(path, "ragotel_reader")
    assert len(queries) > 30
    answers = ask_as("reader", grants(path, "ragotel_reader"), queries)
    failed = {q: a for q, a in zip(queries, answers, strict=True) if a.isupper()}
    assert failed == {}
    for query, answer in zip(queries, answers, strict=True):
        for text in TEXTS:
            assert text.lower() not in answer.lower(), (query, text)
    verdicts = ask_as(
        "verdicts",
        grants(path, "ragotel_reader"),
        ["select trace_id, bucket from ragotel.triage_requests order by trace_id limit 2"],
    )
    assert verdicts == ["t1\tgeneration_error\nt2\tcontext_problem\n"]


def test_the_reader_is_refused_every_text(ask_as: Asking) -> None:
    """Columns with text, tables with text, and every way to change something."""
    refused = [
        "select query from ragotel.rag_requests",
        "select answer_norm from ragotel.rag_requests",
        "select user_id from ragotel.rag_requests",
        "select * from ragotel.rag_requests",
        "select prompt from ragotel.rag_prompts",
        "select length(prompt_norm) from ragotel.rag_prompts",
        "select query from ragotel.rag_stages",
        "select question from ragotel.triage_requests",
        "select * from ragotel.triage_passages",
        "select text from ragotel.rag_chunks",
        "select text from ragotel.rag_complaints",
        "select note from ragotel.rag_grades",
        "select SpanAttributes from ragotel.otel_traces",
        "insert into ragotel.rag_grades (trace_id) values ('x')",
        "drop view ragotel.triage_requests",
    ]
    own = grants(CLICKHOUSE / "users-and-grants.sql", "ragotel_reader")
    assert ask_as("refused", own, refused) == [DENIED] * len(refused)


def test_the_reader_with_text_reads_all_and_changes_nothing(ask_as: Asking) -> None:
    """It has no right to insert; that its profile is read-only comes on top."""
    own = grants(CLICKHOUSE / "users-and-grants.sql", "ragotel_text_reader")
    answers = ask_as(
        "text",
        own,
        [
            "select count() from ragotel.rag_prompts where prompt != ''",
            "select count() from ragotel.triage_requests where question != ''",
            "insert into ragotel.rag_grades (trace_id) values ('x')",
        ],
        "<readonly>2</readonly>",
    )
    assert [int(answers[0]) > 0, int(answers[1]) > 0, answers[2]] == [True, True, DENIED]


def test_a_tenant_sees_its_own_requests_alone(ask_as: Asking) -> None:
    """In the three tables, by the file's own conditions."""
    path = CLICKHOUSE / "tenant.sql"
    policies = {
        match[1]: match[2]
        for statement in statements(path)
        if (
            match := re.match(
                r"create row policy if not exists tenant_acme on ragotel\.(\w+) using (.+) "
                r"as restrictive to ragotel_tenant_acme",
                statement,
            )
        )
    }
    assert set(policies) == {"rag_requests", "rag_stages", "rag_prompts"}
    filters = "".join(
        f"<{table}><filter>{escape(condition)}</filter></{table}>"
        for table, condition in policies.items()
    )
    own = f"<databases><ragotel>{filters}</ragotel></databases>" + grants(
        path, "ragotel_tenant_acme"
    )
    everything = "<access_management>1</access_management>"
    add = (
        "insert into ragotel.otel_traces (Timestamp, TraceId, SpanId, ServiceName, SpanAttributes) "
        "select now64(9), 'acme', stage, 'bot', "
        "map('rag.stage', stage, 'rag.request.id', 'acme', 'rag.tenant', 'acme') "
        "from (select arrayJoin(['request', 'retrieve', 'assemble']) as stage)"
    )
    assert ask_as("deliver", everything, [add]) == [""]
    counts = [f"select groupUniqArray(trace_id = 'acme') from ragotel.{name}" for name in policies]
    seen = ask_as(
        "tenant",
        own,
        [
            "select distinct tenant from ragotel.rag_requests",
            "select distinct trace_id from ragotel.rag_stages",
            "select distinct trace_id from ragotel.rag_prompts",
            "select count() from ragotel.otel_traces",
            "select count() from ragotel.triage_requests",
        ],
    )
    assert seen == ["acme\n", "acme\n", "acme\n", DENIED, DENIED]
    assert ask_as("others", everything, counts) == [
        "[0,1]\n",
        "[0,1]\n",
        "[0,1]\n",
    ]
