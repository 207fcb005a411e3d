"""What a query costs, now and at another k, out of recorded token counts; template versions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ragotel as rag
from cli_store import Ran, run_in
from ragotel.store import Store
from seed_service import Hit, serving

COST = json.loads((Path(__file__).parent / "seed_cases.json").read_text("utf-8"))["cost"]
PRICE, PER_DAY = COST["usd_per_million_input_tokens"], COST["queries_per_day"]
ROWS = {row["k"]: row for row in COST["rows"]}
COSTS = ("costs", "--usd-per-million-input-tokens", str(PRICE), "--queries-per-day", str(PER_DAY))


@pytest.fixture
def ragotel(store: Store, capsys: Any) -> Callable[..., Ran]:
    return run_in(store, capsys)


def ask(
    k: int, tokens: int, passage_tokens: int | None, run: str = "", template: str = "Use these."
) -> None:
    """One request that sends k passages and reports the prompt's tokens."""
    share, rest = divmod(passage_tokens or 0, k)
    hits = [
        Hit(
            f"page#{400 * at}",
            1 - at / 100,
            f"Passage number {at} of the handbook about returns.",
            None if passage_tokens is None else share + (at < rest),
        )
        for at in range(k)
    ]

    @rag.retrieve(leg="dense", index="docs", index_version="v1")
    def search(question: str) -> list[Hit]:
        return hits

    @rag.assemble(template="answer", tokens=lambda prompt: tokens)
    def build_prompt(question: str, found: list[Hit]) -> str:
        passages = "\n".join(f"[{hit.id}] {hit.text}" for hit in found)
        return f"{template}\n{passages}\nQuestion: {question}"

    @rag.generate(model="gpt-5-mini")
    def complete(prompt: str) -> str:
        return "Yes."

    @rag.request
    def answer(question: str) -> str:
        return complete(build_prompt(question, search(question)))

    with rag.context(run_id=run):
        answer(f"May I return it in run {run or 'none'}?")


def money(row: dict[str, Any], suffix: str = "") -> tuple[Any, ...]:
    tokens = row["input_tokens_at_k" if suffix else "mean_input_tokens"]
    per_query, per_day = row[f"usd_per_query{suffix}"], row[f"usd_per_day{suffix}"]
    return round(tokens), round(per_query, 4), round(per_day)


PUBLISHED = {
    k: (ROWS[k]["input_tokens"], ROWS[k]["usd_per_query"], usd)
    for k, usd in zip(ROWS, COST["usd_per_day"], strict=True)
}


def test_the_published_costs_of_two_runs_at_two_ks(
    store: Store, tmp_path: Path, ragotel: Callable[..., Ran]
) -> None:
    """2,098 and 8,240 tokens at 3 USD a million, 3,000 queries a day: 19 and 74 USD a day.

    No passage's tokens are recorded: they come from comparing the runs, and the run at k = 5 then
    says of k = 20 what the run at k = 20 has measured.
    """
    with serving(store, tmp_path):
        for k, row in ROWS.items():
            ask(k, row["input_tokens"], None, run=f"k{k}")
    rows = ragotel(*COSTS, "--k", "20", "--json").json
    assert {row["run_id"]: money(row) for row in rows} == {f"k{k}": PUBLISHED[k] for k in ROWS}
    assert {row["run_id"]: money(row, "_at_k") for row in rows} == {
        f"k{k}": PUBLISHED[20] for k in ROWS
    }
    assert {row["tokens_per_passage_source"] for row in rows} == {"compared"}
    assert [round(row["tokens_per_passage"], 2) for row in rows] == [409.47, 409.47]


def test_what_k_twenty_would_cost_from_counted_passages(
    store: Store, tmp_path: Path, ragotel: Callable[..., Ran]
) -> None:
    """Three requests at k = 5 whose passages are counted: k = 20 is 8,240 tokens and 74 USD."""
    with serving(store, tmp_path):
        for passage_tokens in (2047, 2047, 2048):
            ask(5, ROWS[5]["input_tokens"], passage_tokens)
    view = store.rows("select * from dist_costs")
    assert [(row["requests"], row["mean_passages"], row["mean_input_tokens"]) for row in view] == [
        (3, 5, 2098)
    ]
    assert [round(row["tokens_per_passage"], 3) for row in view] == [409.467]
    assert [round(row["fixed_tokens"], 2) for row in view] == [50.67]
    (row,) = ragotel(*COSTS, "--k", "20", "--json").json
    assert (money(row), money(row, "_at_k")) == (PUBLISHED[5], PUBLISHED[20])
    ran = ragotel(*COSTS, "--k", "20")
    assert "2,098" in ran.out
    assert "8,240     0.0247    74.16" in ran.out
    assert ran.err == "counted: passages as the record counts them\n"


def test_one_k_without_counted_passages_is_an_estimate_and_says_so(
    store: Store, tmp_path: Path, ragotel: Callable[..., Ran]
) -> None:
    """Where nobody counted a passage's tokens, four characters each is what the record has."""
    with serving(store, tmp_path):
        ask(5, 2098, None)
    (row,) = ragotel(*COSTS, "--k", "20", "--json").json
    assert money(row) == PUBLISHED[5]
    assert row["tokens_per_passage_source"] == "estimated"
    assert (row["tokens_per_passage"], row["input_tokens_at_k"]) == (12, 2098 + 15 * 12)
    assert ragotel("costs", "--usd-per-million-input-tokens", "3", "--run", "none").code == 1


def test_fewer_passages_that_took_more_tokens_predict_nothing(
    store: Store, tmp_path: Path, ragotel: Callable[..., Ran]
) -> None:
    """Prompts that differ in more than their passages give no negative price: it is estimated."""
    with serving(store, tmp_path):
        ask(2, 3000, None, run="few")
        ask(5, 2000, None, run="many")
    rows = ragotel(*COSTS, "--k", "20", "--json").json
    assert {row["tokens_per_passage_source"] for row in rows} == {"estimated"}
    assert [row["input_tokens_at_k"] for row in rows] == [3000 + 18 * 12, 2000 + 15 * 12]
    with serving(store, tmp_path):
        ask(5, 2000, None, run="few")
    (view,) = store.rows("select * from dist_costs where run_id = 'few'")
    assert (view["tokens_per_passage_source"], view["tokens_per_passage"]) == ("estimated", 12)


@pytest.mark.parametrize("price", ["nan", "inf", "-1"])
def test_a_price_is_a_finite_number(ragotel: Callable[..., Ran], price: str) -> None:
    """What cannot be multiplied is wrong use."""
    assert ragotel("costs", "--usd-per-million-input-tokens", price).code == 2


def test_an_edited_template_shows_as_two_versions_and_what_was_edited(
    store: Store, tmp_path: Path, ragotel: Callable[..., Ran]
) -> None:
    """Nobody gave the template a version: its words' hash is one, and a diff shows the edit."""
    with serving(store, tmp_path):
        ask(2, 100, None)
        ask(3, 120, None)
        ask(2, 100, None, template="Use these. The newer page holds.")
        ask(1, 80, None, template="Use these. The newer page holds.")
    versions = ragotel("templates", "list", "--json").json
    assert [(row["name"], row["requests"]) for row in versions] == [("answer", 2), ("answer", 2)]
    old, new = (row["version"] for row in versions)
    ran = ragotel("templates", "diff", "answer", old, new.removeprefix("sha256:")[:8])
    assert ran.code == 0
    assert ran.out.splitlines() == [
        f"--- answer {old}",
        f"+++ answer {new}",
        "@@ -1,3 +1,3 @@",
        "-Use these.",
        "+Use these. The newer page holds.",
        " [{id 1}] {passage}",
        " Question: {question}",
    ]
    assert "its question and 3 passages cut out" in ran.err
    same = ragotel("templates", "diff", "answer", old, old)
    assert (same.code, same.out) == (0, "")
    missing = ragotel("templates", "diff", "answer", old, "v9")
    assert (missing.code, "has no version 'v9'" in missing.err) == (1, True)
