"""Finding the request behind a vague complaint, over a real store."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from cli_store import ASKED_AT, REQUESTS, TRACES, Ran, fill, insert_spans, request_spans, run_in
from ragotel.model import CANARY_SERVICE
from ragotel.store import Store


@pytest.fixture
def ragotel(store: Store, capsys: Any) -> Callable[..., Ran]:
    fill(store)
    return run_in(store, capsys)


def test_user_day_and_words_find_the_request(ragotel: Callable[..., Ran]) -> None:
    """User, rough day and two words give one line with time, user, id, question and answer."""
    ran = ragotel(
        *("find", "--user", "ana", "--around", "2026-11-20", "--within", "1d"),
        *("--text", "Return HARDWARE"),
    )
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "time (UTC)           user  request     verdict  !  "
        "question                                       answer\n"
        "2026-11-19 10:23:45  ana   req-4bf92f              "
        "How long do I have to return a hardware unit?  You have 14 days.\n"
    )


def _found(ran: Ran) -> list[str]:
    return [row["request_id"] for row in ran.json]


def test_no_window_hides_an_old_request(ragotel: Callable[..., Ran]) -> None:
    """Without bounds a request of 200 days earlier is found like any other, newest first."""
    ran = ragotel("find", "--text", "hardware unit", "--json")
    assert _found(ran) == [REQUESTS[0], REQUESTS[2]]


def test_nearer_requests_come_first(ragotel: Callable[..., Ran]) -> None:
    """--around ranks and hides nothing."""
    ran = ragotel("find", "--around", "2026-05-01", "--json")
    assert _found(ran) == [REQUESTS[2], REQUESTS[0], REQUESTS[1]]


def test_bounds_in_time(ragotel: Callable[..., Ran]) -> None:
    """--until a day includes that day; --since a later day leaves it out."""
    assert _found(ragotel("find", "--until", "2026-11-19", "--since", "2026-11-19", "--json")) == [
        REQUESTS[1],
        REQUESTS[0],
    ]
    assert ragotel("find", "--since", "2026-11-20").code == 1


def test_words_in_the_answer_count(ragotel: Callable[..., Ran]) -> None:
    """A word may stand in the question, another in the answer."""
    assert _found(ragotel("find", "--text", "calendar return", "--json")) == [REQUESTS[2]]


def test_parts_of_words_are_the_second_reading(ragotel: Callable[..., Ran]) -> None:
    """Where no request has a whole word, words that contain it count, and stderr says so."""
    ran = ragotel("find", "--text", "warrant", "--json")
    assert _found(ran) == [REQUESTS[1]]
    assert ragotel("find", "--text", "warrant").err == (
        "No request has all of these as whole words; these have them as parts.\n"
    )


def test_any_of_the_words_is_the_last_reading(ragotel: Callable[..., Ran]) -> None:
    """Where no request has all words, those with more of them come first."""
    ran = ragotel("find", "--text", "zebra calendar unit", "--json")
    assert [(row["request_id"], row["words_matched"]) for row in ran.json] == [
        (REQUESTS[2], 2),
        (REQUESTS[0], 1),
    ]


def test_the_day_outweighs_the_wording(ragotel: Callable[..., Ran], store: Store) -> None:
    """Near words of that day, then exact ones of the days beside it, then those weeks away."""
    exact = "Can I return a hardware unit?"
    for trace, question, days in (
        ("a" * 32, "Are hardwarereturns possible for a unit?", 0),
        ("b" * 32, exact, 2),
        ("c" * 32, "Is a unit included?", 0),
        ("d" * 32, exact, 10),
        ("e" * 32, exact, -40),
        ("f" * 32, "Is it sunny?", 0),
    ):
        moment = datetime(2026, 7, 1, 23, tzinfo=timezone.utc) + timedelta(days=days)
        spans = request_spans(1, "cy", question, "Yes.", moment)
        insert_spans(store, *((one[0], trace, *one[2:]) for one in spans))
    around = ("find", "--user", "cy", "--around", "2026-07-01")
    words = ("--text", "hardware return unit")
    ran = ragotel(*around, *words, "--json")
    assert [(row["trace_id"][0], row["words_matched"], row["points"]) for row in ran.json] == [
        ("a", 3, 0.933),
        ("b", 3, 0.8),
        ("d", 3, 0.5),
        ("c", 1, 0.333),
        ("e", 3, 0.0),
    ]
    shown = ragotel(*around, *words)
    assert shown.err == ""
    assert [line[21:28].strip() for line in shown.out.splitlines()] == [
        *("words", "3 of 3", "3 of 3", "3 of 3", "1 of 3", "3 of 3"),
    ]
    within = ragotel(*around, *words, "--within", "12h", "--json")
    assert [row["trace_id"][0] for row in within.json] == ["a", "c"]


def test_ids_and_their_beginnings(ragotel: Callable[..., Ran]) -> None:
    """--request takes a request id, a trace id or the beginning of one."""
    for reference in (REQUESTS[1], TRACES[1], TRACES[1][:7].upper()):
        assert _found(ragotel("find", "--request", reference, "--json")) == [REQUESTS[1]]


def test_verdict_and_complaint_are_marked(ragotel: Callable[..., Ran]) -> None:
    """A labelled request shows its bucket, one that was complained about an exclamation mark."""
    ragotel(
        *("labels", "add", "--question", "How long do I have to return a hardware unit?"),
        *("--span", "21 calendar days", "--chunk", "hardware/rma-process.md#timing"),
    )
    assert ragotel("complaint", TRACES[0], "--text", "wrong").code == 0
    ran = ragotel("find", "--json")
    assert [(row["request_id"], row["bucket"], row["complaints"]) for row in ran.json] == [
        (REQUESTS[1], "", 0),
        (REQUESTS[0], "context_problem", 1),
        (REQUESTS[2], "", 0),
    ]


def test_a_hostile_text_is_bound(ragotel: Callable[..., Ran]) -> None:
    """Quotes, backslashes and SQL in any option are values: nothing matches, nothing breaks."""
    hostile = "a' or 1=1 -- \\ {x:String}"
    for option in ("--user", "--session", "--tenant", "--service", "--request"):
        ran = ragotel("find", option, hostile)
        assert (ran.code, ran.out, ran.err) == (1, "", "No request is like that.\n")
    assert ragotel("find", "--text", "x' or 1=1 \\").code in (0, 1)


def test_the_sql_is_shown_with_its_parameters(ragotel: Callable[..., Ran]) -> None:
    """--sql prints what would run, parameters apart, and runs nothing."""
    assert ragotel("find", "--user", "o'brien", "--limit", "3", "--sql").out == (
        "set param_user_id = 'o\\'brien';\n"
        "set param_canary = 'ragotel-doctor';\n"
        "set param_limit = '3';\n"
        "select\n"
        "    trace_id, request_id, started_at, service_name, user_id, session_id, tenant,\n"
        "    query as question, answer, outcome, label_id,\n"
        "    0 as words_matched\n"
        "from rag_requests\n"
        "where user_id = {user_id:String}\n"
        "    and service_name != {canary:String}\n"
        "order by words_matched desc, started_at desc, trace_id, request_id\n"
        "limit 1 by trace_id, request_id\n"
        "limit {limit:UInt32};\n"
    )


def test_wrong_use_is_one_line(ragotel: Callable[..., Ran]) -> None:
    """A time that is none, --within alone and words without a letter are wrong use: exit 2."""
    assert ragotel("find", "--since", "soon") == Ran(
        2,
        "",
        "ragotel: 'soon' is no time: write 2026-11-19, '2026-11-19 14:30', 11d or yesterday "
        "(UTC).\n",
    )
    assert ragotel("find", "--within", "1d") == Ran(
        2, "", "ragotel: --within needs --around (see: ragotel find --help)\n"
    )
    many = " ".join(f"word{at}" for at in range(13))
    assert ragotel("find", "--text", many).err == (
        "--text has 13 words; the first 12 count.\nNo request is like that.\n"
    )
    for text in ("%%", "   ", ""):
        assert ragotel("find", "--text", text) == Ran(
            2, "", f"ragotel: --text {text!r} holds no word: letters or digits are wanted.\n"
        )


def test_a_batch_that_came_twice_is_found_once(ragotel: Callable[..., Ran], store: Store) -> None:
    """A duplicated delivery adds no line."""
    fill(store)
    assert len(json.loads(ragotel("find", "--json").out)) == 3


def test_the_doctors_canary_is_no_service_of_a_user(store: Store, capsys: Any) -> None:
    """It is in no list and no count, and can be shown by its id or asked for by its name."""
    ragotel = run_in(store, capsys)
    spans = request_spans(0, CANARY_SERVICE, "How long?", "21 minutes", ASKED_AT)
    insert_spans(store, *((*span[:5], CANARY_SERVICE, *span[6:]) for span in spans))
    for view in (
        *("dist_coverage", "dist_costs", "dist_flags", "rag_template_versions"),
        "rag_labelled_requests",
    ):
        assert store.scalar(f"select count() from {view}") == 0, view
    assert ragotel("find", "--text", "minutes").err == "No request is like that.\n"
    assert _found(ragotel("find", "--service", CANARY_SERVICE, "--json")) == [REQUESTS[0]]
    assert _found(ragotel("find", "--request", REQUESTS[0], "--json")) == [REQUESTS[0]]
    assert ragotel("labels", "resolve", "--claim", "original box").err == (
        "No chunk text is known: load the manifest of the index (ragotel manifest load), "
        "with its texts.\n"
    )
    day = ("--since", "2026-11-19", "--until", "2026-11-19")
    assert ragotel("check", *day, "--json").json["judged"]["requests"] == 0
    assert store.scalar(f"select rag_is_canary('{CANARY_SERVICE}')")
