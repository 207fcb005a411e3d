"""The two lists side by side, verdicts and their counts, over a real store."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from cli_store import (
    ASKED_AT,
    REQUESTS,
    TRACES,
    Ran,
    fill,
    insert_spans,
    request_spans,
    run_in,
)
from ragotel.store import Store

_HEAD = """\
How long do I have to return a hardware unit?
  answer     You have 14 days.
  asked      2026-11-19 10:23:45 UTC · user ana · 950 ms · ok
  service    support-bot
  versions   index docs v7 · template answer a1b2c3 · model gpt-5-mini · k 10
  ids        request req-4bf92f · trace 4bf92f3577b34da6a3ce929d0e0e4736

retrieve dense: 6 ranked · scores are cosine · 3 sent · 5,700 of 6,000 budget tokens, 300 left · \
the next needs 400
"""
_LISTS = """\
   rank  score    gap  sent  tokens  running  dropped            chunk
      1  0.412         SENT   1,900    1,900                     policies/returns-overview.md#intro
      2  0.388  0.024  SENT   1,900    3,800                     policies/refunds-current.md#window
      3  0.377  0.011  SENT   1,900    5,700                     hardware/rma-process.md#shipping
      4  0.361  0.016           400    6,100  budget (inferred)  hardware/warranty.md#coverage
*     5  0.359  0.002           400    6,100  budget (inferred)  hardware/rma-process.md#timing
      6  0.344  0.015           400    6,100  budget (inferred)  policies/returns-2022.md#window

gold, stage by stage
* hardware/rma-process.md#timing: dense 5 (0.359), dropped by build_prompt (budget, inferred)

  claim      "21 calendar days": does not stand in the prompt
"""
_NO_LABEL = """\
  verdict    none, as no label meets this request.
             To get one, say which text states the fact:
             ragotel labels resolve --claim "..."   (then show req-4bf92f --span "...")
             ragotel labels add --question 'How long do I have to return a hardware unit?' \
--span "..."
"""


@pytest.fixture
def ragotel(store: Store, capsys: Any) -> Callable[..., Ran]:
    fill(store)
    return run_in(store, capsys)


def _label(ragotel: Callable[..., Ran]) -> None:
    ragotel(
        *("labels", "add", "--id", "returns", "--span", "21 calendar days"),
        *("--question", "how long do I have to return a hardware unit?"),
        *("--chunk", "hardware/rma-process.md#timing"),
    )


def test_the_whiteboard_needs_no_label(ragotel: Callable[..., Ran]) -> None:
    """With --span alone the list is starred; there is no verdict, and how to get one is said."""
    ran = ragotel("show", "4bf92f", "--span", "21 Calendar Days")
    lists = _LISTS.replace("21 calendar days", "21 Calendar Days")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == _HEAD + lists + _NO_LABEL


def test_the_verdict_of_a_label_added_later(ragotel: Callable[..., Ran]) -> None:
    """A label added later, a grade and a complaint give the verdict, why, and what was said."""
    _label(ragotel)
    ragotel("grade", REQUESTS[0], "wrong", "--by", "eva", "--note", "it is 21")
    ragotel("complaint", TRACES[0], "--text", "I was told 14", "--at", "2026-11-30T08:00")
    ran = ragotel("show", REQUESTS[0])
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(_HEAD + _LISTS)
    lines = ran.out[len(_HEAD + _LISTS) :].splitlines()
    assert lines[0] == (
        "  verdict    context_problem · state 2a · attribution prompt-assembly · "
        "lost at assemble (budget) · recall_class buried · deep rank 5"
    )
    assert lines[1].startswith("  why        The gold passage was ranked 5 but not sent (budget, ")
    assert lines[2] == "  label      returns (met by question)"
    assert "  grade      wrong (human by eva, " in ran.out
    assert lines[-1] == "  complaint  I was told 14 (2026-11-30 08:00:00)"


def test_show_as_json_has_everything(ragotel: Callable[..., Ran]) -> None:
    """The candidates carry star, gap, running sum and fate; the verdict is the view's row."""
    _label(ragotel)
    shown = ragotel("show", REQUESTS[0], "--json").json
    gold = shown["lists"][0]["candidates"][4]
    assert {name: gold[name] for name in ("rank", "chunk_id", "score", "gap", "star", "sent")} == {
        "rank": 5,
        "chunk_id": "hardware/rma-process.md#timing",
        "score": 0.359,
        "gap": 0.002,
        "star": True,
        "sent": False,
    }
    assert (gold["running_tokens"], gold["drop_reason"], gold["inferred"]) == (6100, "budget", True)
    assert (gold["states_claim"], gold["is_gold_id"]) == (True, True)
    assert [row["bucket"] for row in shown["verdicts"]] == ["context_problem"]
    assert [row["passage"] for row in shown["passages"]] == [1]
    assert shown["request"]["started_at"] == "2026-11-19T10:23:45.123456Z"
    assert shown["prompt"]["claim_stands"] is False


def test_tokens_of_another_list_say_what_the_next_passage_needed(store: Store, capsys: Any) -> None:
    """The reranked list counts no tokens, the searched one does; what disagrees is not taken."""
    ragotel = run_in(store, capsys)
    root, retrieve, *later = request_spans(0, "ana", "How long?", "14 days.", ASKED_AT)
    told = dict(retrieve[7])
    found = json.loads(told["gen_ai.retrieval.documents"])
    bare = [{key: row[key] for key in ("id", "sha", "chars")} for row in found]
    told |= {"rag.stage": "rerank", "rag.stage.name": "rerank", "rag.candidates": json.dumps(bare)}
    told |= {"rag.candidates.in_count": "6"}
    del told["gen_ai.retrieval.documents"]
    at = ASKED_AT + timedelta(milliseconds=50)
    rerank = (at, retrieve[1], "ff" * 8, *retrieve[3:7], told, 2_000_000, "Ok")
    insert_spans(store, root, retrieve, rerank, *later)
    budget = "select first_refused_tokens, first_refused_reason, why from triage_budgets"
    warranty = "hardware/warranty.md#coverage"
    assert store.rows(budget) == [
        {
            "first_refused_tokens": 400,
            "first_refused_reason": "budget",
            "why": "The sent passages took 5700 of 6000 budget tokens; the next, "
            f"{warranty}, would have needed 400, and 300 were left.",
        }
    ]
    title = "rerank: 6 ranked · scores are cosine · 3 sent · 5,700 of 6,000 budget tokens, 300 left"
    assert f"{title} · the next needs 400\n" in ragotel("show", REQUESTS[0]).out
    other = [{**row, "tokens": 500} if row["id"] == warranty else row for row in found]
    second = {**retrieve[7], "gen_ai.retrieval.documents": json.dumps(other)}
    insert_spans(store, (at, retrieve[1], "fe" * 8, *retrieve[3:7], second, 1, "Ok"))
    assert store.rows(budget)[0]["why"].endswith(
        f"how many the next, {warranty}, would have needed was not recorded."
    )
    assert f"{title} · the next needs ?\n" in ragotel("show", REQUESTS[0]).out


def test_triage_says_which_arm_answered(store: Store, capsys: Any) -> None:
    """The column stands only where a request names its arm."""
    ragotel = run_in(store, capsys)
    question = "how long do I have to return a hardware unit?"
    root, *rest = request_spans(0, "ana", question, "14 days.", ASKED_AT)
    insert_spans(store, root, *rest)
    _label(ragotel)
    assert "arm" not in ragotel("triage").out.splitlines()[0].split()
    told = {**root[7], "rag.arm": "rare-words", "rag.request.id": "other"}
    insert_spans(store, (*root[:1], "c" * 32, "ab" * 8, *root[3:7], told, *root[8:]))
    head, *rows = ragotel("triage").out.splitlines()
    assert head.split()[2:4] == ["arm", "bucket"]
    assert [row.split()[2] for row in rows[:2] if " other " in row] == ["rare-words"]


def test_tokens_are_estimated_where_the_prompt_was(store: Store, capsys: Any) -> None:
    """Four characters each of a known text, as those sent were counted; else not at all."""
    ragotel = run_in(store, capsys)
    root, retrieve, assemble, *rest = request_spans(0, "ana", "How long?", "14 days.", ASKED_AT)
    found = [{**row} for row in json.loads(retrieve[7]["gen_ai.retrieval.documents"])]
    for row in found:
        del row["tokens"], row["chars"]
    bare = {**retrieve[7], "gen_ai.retrieval.documents": json.dumps(found)}
    told = {**assemble[7], "rag.prompt.tokens_source": "estimated"}
    spans = [root, (*retrieve[:7], bare, *retrieve[8:]), (*assemble[:7], told, *assemble[8:])]
    insert_spans(store, *spans, *rest)
    (row,) = store.rows("select candidate_tokens, first_refused_tokens, why from triage_budgets")
    assert (row["candidate_tokens"][3], row["first_refused_tokens"]) == (None, 8)
    assert "would have needed 8 (estimated), which fits into the 300 left" in row["why"]
    assert "300 left · the next needs 8\n" in ragotel("show", REQUESTS[0]).out


def test_the_hash_of_an_earlier_list_leads_to_the_text(store: Store, capsys: Any) -> None:
    """A service writes a candidate's hash once, in the first list that has it."""
    ragotel = run_in(store, capsys)
    root, retrieve, assemble, *rest = request_spans(0, "ana", "How long?", "14 days.", ASKED_AT)
    found = json.loads(retrieve[7]["gen_ai.retrieval.documents"])
    first = [{key: row[key] for key in ("id", "sha")} for row in found]
    told = dict(retrieve[7])
    del told["gen_ai.retrieval.documents"]
    later = [{"id": row["id"]} for row in found]
    told |= {"rag.stage": "rerank", "rag.stage.name": "rerank", "rag.candidates": json.dumps(later)}
    told |= {"rag.candidates.in_count": "6"}
    at = ASKED_AT + timedelta(milliseconds=50)
    bare = {**retrieve[7], "gen_ai.retrieval.documents": json.dumps(first)}
    sent = {**assemble[7], "rag.prompt.tokens_source": "estimated"}
    insert_spans(
        store,
        *(root, (*retrieve[:7], bare, *retrieve[8:])),
        (at, retrieve[1], "ff" * 8, *retrieve[3:7], told, 2_000_000, "Ok"),
        *((*assemble[:7], sent, *assemble[8:]), *rest),
    )
    (row,) = store.rows("select first_refused_tokens, why from triage_budgets")
    assert row["first_refused_tokens"] == 8
    assert "would have needed 8 (estimated)" in row["why"]
    assert "300 left · the next needs 8\n" in ragotel("show", REQUESTS[0]).out


def test_what_cannot_be_shown(ragotel: Callable[..., Ran]) -> None:
    """An unknown request and a label that does not meet it are exit 1; an ambiguous one is 2."""
    assert ragotel("show", "nothing-like-it").code == 1
    assert ragotel("show", REQUESTS[1], "--label", "returns") == Ran(
        1,
        "",
        "ragotel: The label 'returns' does not meet this request; "
        "`ragotel labels attach req-5bf92f returns` makes it.\n",
    )
    assert ragotel("show", "req-").code == 1


def test_hostile_ids_stay_on_their_lines(store: Store, capsys: Any) -> None:
    """Line breaks and escape sequences in ids, names and tags change no line and no terminal."""
    ragotel = run_in(store, capsys)
    bad = "x\n\x1b[31my\x9b2J"
    spans = []
    for span in request_spans(0, f"u{bad}", f"How{bad} long?", "21 days", ASKED_AT):
        told = {**span[7], "rag.request.id": bad, "rag.tags": json.dumps({f"a=b.c d{bad}": bad})}
        if told["rag.stage"] == "retrieve":
            told = {**told, "rag.stage.name": bad, "rag.index.version": bad}
        if told["rag.stage"] == "assemble":
            told = {**told, "gen_ai.prompt.name": bad, "gen_ai.prompt.version": bad}
        spans.append((*span[:5], f"bot{bad}", span[6], told, *span[8:]))
    insert_spans(store, *spans)
    add = ("labels", "add", "--question", f"How{bad} long?", "--span", "21 calendar days")
    assert ragotel(*add, "--id", bad, "--set", bad, "--chunk", bad).code == 0
    shown, seen = "x \\x1b[31my\\x9b2J", []
    for arguments in (
        ("show", bad, "--dump"),
        ("labels", "decide", bad, bad, "--defect", "none"),
        ("recall", "--by-tag", f"a=b.c d{bad}"),
        ("recall", "--by-tag", "nothing"),
        ("triage",),
    ):
        ran = ragotel(*arguments)
        assert not set(ran.out + ran.err) & {"\x1b", "\x9b"}, arguments
        seen.append((ran.code, shown in ran.out + ran.err))
    # The tags that there are stand quoted, so that they can be told apart and typed.
    assert seen == [(0, True), (0, True), (0, True), (1, False), (0, True)]


def test_triage_buckets_and_recall(ragotel: Callable[..., Ran]) -> None:
    """One labelled request: its verdict, 100 % of one bucket, found within 5 and not within 3."""
    assert ragotel("triage") == Ran(
        1,
        "",
        "No labelled request is like that; labels meet requests by id, grade or question.\n",
    )
    _label(ragotel)
    rows = ragotel("triage", "--since", "2026-11-19", "--until", "2026-11-19", "--json").json
    assert [(row["request_id"], row["bucket"]) for row in rows] == [
        (REQUESTS[0], "context_problem")
    ]
    assert ragotel("buckets", "--by", "index") == Ran(
        0,
        "index_name  index_version  bucket           requests    share  of\n"
        "docs        v7             context_problem         1  100.0 %   1\n",
        "",
    )
    recalls = ragotel("recall", "--json").json
    assert [(row["stage"], row["k"], row["recall"]) for row in recalls if row["k"] in (3, 5)] == [
        ("retrieve", 3, 0),
        ("retrieve", 5, 1),
        ("assemble", 3, 0),
        ("assemble", 5, 0),
    ]
    assert {row["recall_at_k_prompt"] for row in recalls} == {0}
    assert ragotel("buckets", "--since", "2026-11-20").code == 1
