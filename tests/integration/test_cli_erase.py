"""`ragotel erase`: nothing of a user or a request is left in any table, all else is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ragotel
from cli_store import REQUESTS, Ran, fill, run_in
from ragotel.store import Store
from ragotel.triage.erase import erase, keys_of_user, wait_for_files
from seed_service import serving

MARK = "Zyzzyva"
HITS = [{"id": f"c{n}", "score": 1 - n / 9, "text": f"passage {n}"} for n in range(3)]


@pytest.fixture
def command(store: Store, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    return run_in(store, capsys)


def counts(store: Store, where: str = "1") -> dict[str, int]:
    """Rows of every table that holds any; *where* is about the whole row as a text, `line`."""
    tables = [
        name
        for (name,) in store.query(
            "select name from system.tables where database = currentDatabase() "
            "and engine like '%MergeTree' and name != 'rag_migrations' and total_rows > 0"
        ).result_rows
    ]
    found = {}
    for table in tables:
        rows = f"select toString(tuple(*)) as line from {table}"
        found[table] = store.scalar(f"select count() from ({rows}) where {where}")
    return {table: count for table, count in found.items() if count}


def ask(name: str, text: str, hits: list[dict[str, Any]]) -> str:
    """One request of *name* with *text* in all that it says; its id."""

    @ragotel.retrieve(leg="dense", where=f"by {text}")
    def search(query: str) -> list[dict[str, Any]]:
        return hits

    @ragotel.assemble
    def build(question: str, found: list[dict[str, Any]]) -> str:
        return question + "".join(hit["text"] for hit in found)

    @ragotel.request
    def answer(question: str, user_id: str) -> str:
        build(question, search(question))
        return ragotel.current_request_id() or ""

    return answer(f"What about {text}?", name)


@pytest.fixture
def story(store: Store, tmp_path: Path, command: Callable[..., Ran]) -> dict[str, str]:
    """Two requests of Ana's and one of Bob's, with all that can be said about them."""
    with serving(store, tmp_path):
        own = [{"id": "own", "score": 0.1, "text": f"{MARK} is only here"}]
        ids = {
            "ana": ask("anamarie", MARK, HITS + own),
            "ana2": ask("anamarie", MARK, HITS),
            "bob": ask("bob", "nothing", HITS),
        }
    for request_id in (ids["ana"], ids["bob"]):
        label = f"label-{request_id}"
        store.insert("rag_labels", [(label, "question")], ("label_id", "question"))
        assert command("complaint", request_id, "--text", f"wrong {request_id}").code == 0
        assert command("grade", request_id, "wrong", "--label", label).code == 0
        key = (
            *store.query(
                "select trace_id, request_id from rag_requests where request_id = {id:String}",
                {"id": request_id},
            ).result_rows[0],
            label,
        )
        columns = ("trace_id", "request_id", "label_id")
        for table in ("rag_label_attachments", "rag_probes", "rag_ablations"):
            store.insert(table, [key], columns)
        store.insert("rag_label_decisions", [key], columns)
    store.insert(
        "rag_complaints",
        [("c-ana", "other", "other", f"{MARK} again", "anamarie")],
        ("complaint_id", "trace_id", "request_id", "text", "reported_by"),
    )
    return ids


def test_a_user_is_erased_from_every_table(
    store: Store, command: Callable[..., Ran], story: dict[str, str]
) -> None:
    """No row of Ana's is left, in no column; Bob's are as they were."""
    of_ana = " or ".join(
        f"position(line, '{word}') > 0" for word in (MARK, "anamarie", story["ana"], story["ana2"])
    )
    before = counts(store, of_ana)
    assert set(before) == {
        *("otel_traces", "rag_requests", "rag_stages", "rag_prompts", "rag_chunks", "rag_labels"),
        *("rag_grades", "rag_complaints", "rag_label_attachments", "rag_probes", "rag_ablations"),
        "rag_label_decisions",
    }
    others = counts(store, f"not ({of_ana})")

    dry = command("erase", "--user", "anamarie", "--chunks", "--dry-run", "--json")
    assert (dry.code, dry.json["requests"], dry.json["is_dry_run"]) == (0, 2, True)
    assert counts(store, of_ana) == before

    done = command("erase", "--user", "anamarie", "--chunks", "--json")
    assert (done.code, done.json["requests"], done.json["traces"], done.json["left"]) == (
        0,
        2,
        2,
        0,
    )
    found = {row["table_name"]: row["found"] for row in done.json["tables"]}
    assert found == {row["table_name"]: row["found"] for row in dry.json["tables"]}
    assert found["otel_traces"] == 6
    assert found["rag_chunks"] == 1
    # A label is made by the team, and names no request.
    assert counts(store, of_ana) == {"rag_labels": 1}
    others.pop("otel_traces_trace_id_ts")
    left = counts(store, f"not ({of_ana})")
    assert left.pop("otel_traces_trace_id_ts") == 1
    assert left == others


def test_files_from_before_are_named_until_they_are_gone(
    store: Store, story: dict[str, str]
) -> None:
    """The engine keeps them a while: they are counted, and its setting is as it was afterwards."""
    keys = keys_of_user(store, "anamarie")
    assert wait_for_files(store, ["rag_prompts"], 0.0) == 0
    erase(store, keys)
    assert wait_for_files(store, ["rag_prompts"], 0.0) > 0
    table = store.scalar("show create table rag_prompts")
    assert "old_parts_lifetime" not in table


def test_one_request_is_erased(
    store: Store, command: Callable[..., Ran], story: dict[str, str]
) -> None:
    """The user's other request stays; passages stay unless they are named."""
    before = counts(store)
    ran = command("erase", "--request", story["ana2"])
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "1 request in 1 trace erased, 0 rows left."
    assert counts(store, f"position(line, '{story['ana2']}') > 0") == {}
    after = counts(store)
    assert {name: before[name] - after[name] for name in before if before[name] != after[name]} == {
        "otel_traces": 3,
        "otel_traces_trace_id_ts": 1,
        "rag_requests": 1,
        "rag_stages": 2,
        "rag_prompts": 1,
    }


def test_of_a_shared_trace_only_the_user_s_part_goes(
    store: Store, command: Callable[..., Ran], tmp_path: Path
) -> None:
    """Two requests of a job in one trace: the spans below the erased one go, others' with none."""
    fill(store)
    (request,) = store.rows(
        "select TraceId, SpanId, ServiceName, Timestamp from otel_traces "
        f"where SpanAttributes['rag.request.id'] = '{REQUESTS[0]}' and ParentSpanId = ''"
    )
    columns = (
        *("Timestamp", "TraceId", "SpanId", "ParentSpanId", "SpanName", "ServiceName"),
        "SpanAttributes",
    )
    bob = {"rag.stage": "request", "rag.request.id": "req-of-bob", "user.id": "bob"}
    trace, moment = request["TraceId"], request["Timestamp"]
    store.insert(
        "otel_traces",
        [
            (moment, trace, "b" * 16, "", "rag.request", "support-bot", bob),
            (moment, trace, "c" * 16, "b" * 16, "SELECT", "support-bot", {"db": "bob's"}),
            (moment, trace, "d" * 16, request["SpanId"], "SELECT", "support-bot", {"db": "ana's"}),
            (moment, trace, "e" * 16, "d" * 16, "fetch", "support-bot", {}),
            (moment, trace, "f" * 16, "", "job", "support-bot", {}),
        ],
        columns,
    )
    ran = command("erase", "--request", REQUESTS[0], "--json")
    assert (ran.code, ran.json["left"]) == (0, 0)
    spans = store.query(
        "select SpanId from otel_traces where TraceId = {trace:String} order by SpanId",
        {"trace": trace},
    ).result_rows
    assert [span for (span,) in spans] == ["b" * 16, "c" * 16, "f" * 16]
    assert store.scalar("select count() from rag_requests where request_id = 'req-of-bob'") == 1
    assert counts(store, f"position(line, '{REQUESTS[0]}') > 0") == {}


def test_a_user_whose_name_was_hashed(
    store: Store, command: Callable[..., Ran], tmp_path: Path
) -> None:
    """Who knows the name can erase what was recorded under its hash."""
    with serving(store, tmp_path, content={"user": "hashed"}):
        ask("ana", "things", HITS)
    assert command("erase", "--user", "ana", "--json").json["requests"] == 1
    assert store.scalar("select count() from otel_traces") == 0


def test_a_user_of_whom_there_is_nothing(command: Callable[..., Ran]) -> None:
    """Nothing is left, so the answer is fine."""
    ran = command("erase", "--user", "nobody")
    assert (ran.code, ran.out.splitlines()[-1]) == (
        0,
        "0 requests in 0 traces erased, 0 rows left.",
    )


@pytest.mark.parametrize("options", [(), ("--user", "a", "--request", "b")])
def test_wrong_use(command: Callable[..., Ran], options: tuple[str, ...]) -> None:
    """One of the two, so that nobody erases what was not meant."""
    ran = command("erase", *options)
    assert (ran.code, "either --user or --request" in ran.err) == (2, True)
