"""`ragotel probe`: the user's search asked again, deeply, where it lost the gold passage."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli_store import Ran, run_in
from ragotel.store import Store
from ragotel.triage.labels import load_labels
from seed_service import read_case, serve, serving, write

MODULE = '''
"""A search whose answer lies as deep as its question says."""
import ragotel

RANKS = {"near": 12, "rank-40": 40, "far": None, "old": 3}
calls = []


async def search(query, top_k=10, principal=None):
    calls.append((query, top_k, principal))
    name = query.split()[-1].rstrip("?")
    if name == "boom":
        raise TimeoutError("the index is asleep")
    return [
        {"id": f"{name}#gold" if rank == RANKS[name] else f"other#{rank}", "score": 1 - rank / 1000}
        for rank in range(1, top_k + 1)
    ]


search.index_version = "v7"


@ragotel.retrieve(leg="words", index="docs", index_version="v7")
def by_words(question, k, tenant):
    calls.append((question, k, tenant))
    return [
        {"id": "x", "text": "It says nothing.", "doc_id": "other.md"},
        {"id": "y", "text": "In 110 SEATS, 10  Seats\\u200b.", "doc_id": "plans.md", "score": 0.2},
    ]


def nameless(question, k):
    return [{"id": "near#gold"}]
'''


@pytest.fixture
def ragotel(store: Store, capsys: Any) -> Callable[..., Ran]:
    return run_in(store, capsys)


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of the user's search, fresh for each test."""
    (tmp_path / "probed_bot.py").write_text(MODULE, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    import probed_bot  # type: ignore[import-not-found]

    yield probed_bot
    del sys.modules["probed_bot"]


def ask(store: Store, folder: Path, names: list[str], version: str = "v7") -> dict[str, str]:
    """Send a question of each name, its gold passage not among the ten found; the request ids."""
    with serving(store, folder, fixed=False):
        return {
            name: serve(replace(read_case({"name": name, "top_k": 10}), version=version))(
                f"What holds for {name}?", "ana"
            ).request_id
            for name in names
        }


def label(name: str, **more: Any) -> dict[str, Any]:
    passages = more.pop("passages", [{"chunk_ids": [f"{name}#gold"]}])
    question = f"What holds for {name}?"
    return {"label_id": name, "set": "deep", "question": question, "passages": passages, **more}


def test_a_miss_is_near_or_far(
    ragotel: Callable[..., Ran], store: Store, bot: Any, tmp_path: Path
) -> None:
    """Rank 12 on a top 10 is a near miss, 40 is in reach of a reranker over 50, 200 is not."""
    names = ["near", "rank-40", "far", "boom"]
    ids = ask(store, tmp_path, names)
    ask(store, tmp_path, ["old"], version="v6")
    labels = [label(name, principal="bob" if name == "far" else "") for name in [*names, "old"]]
    assert not load_labels(store, [write(tmp_path, "labels", *labels)]).refused

    arguments = ("probe", "--retriever", "probed_bot:search", "--set", "deep")
    ran = ragotel(*arguments)
    assert (ran.code, ran.err) == (
        1,
        f"failed: {ids['boom']}: 'What holds for boom?': TimeoutError: the index is asleep\n",
    )
    assert ran.out.splitlines() == [
        "3 passages probed by 4 searches of index version v7, 1 of them failed: "
        "2 found within 200, 1 not.",
        "1 passage not probed: another index version served their requests.",
        "",
        "deep rank                              passages   share",
        "near miss: up to 2 k                          1  25.0 %",
        "distant: beyond 2 k                           1  25.0 %",
        "not found by the probe                        1  25.0 %",
        "not probed                                    1  25.0 %",
        "a reranker over the top 20 can reach          1  25.0 %",
        "a reranker over the top 50 can reach          2  50.0 %",
        "a reranker over the top 100 can reach         2  50.0 %",
        "a reranker over the top 200 can reach         2  50.0 %",
        "",
        "A reranker over the top 50 can reach 2 of 4 passages. 1 lie beyond what any such reranker "
        "is handed. Of 1 nothing is known: they were not probed.",
    ]
    assert sorted(bot.calls) == [
        ("What holds for boom?", 200, None),
        ("What holds for far?", 200, "bob"),
        ("What holds for near?", 200, None),
        ("What holds for rank-40?", 200, None),
    ]
    columns = "label_id, passage, leg, principal, k, deep_rank, round(score, 3), index_version"
    stored = store.query(f"select {columns} from rag_probes order by label_id").result_rows
    assert list(stored) == [
        ("far", 1, "", "bob", 200, None, None, "v7"),
        ("near", 1, "", "", 200, 12, 0.988, "v7"),
        ("rank-40", 1, "", "", 200, 40, 0.96, "v7"),
    ]
    verdicts = store.query(
        "select label_id, bucket, deep_rank, near_miss, rerank_reachable_within\n"
        "from triage_requests order by label_id"
    ).result_rows
    # No manifest is loaded: that a deep search found the passage is what proves that it exists.
    assert list(verdicts) == [
        ("boom", "unknown", None, None, None),
        ("far", "unknown", None, None, None),
        ("near", "retrieval_miss", 12, True, 20),
        ("old", "unknown", None, None, None),
        ("rank-40", "retrieval_miss", 40, False, 50),
    ]
    assert store.scalar("select count() from rag_requests") == 5

    bot.calls.clear()
    again = ragotel(*arguments, "--json").json
    assert (again["probed"], again["searches"]) == (0, 1)
    assert again["skipped"] == {"already_probed": 3, "other_version": 1}
    assert [failure["question"] for failure in again["failures"]] == ["What holds for boom?"]
    assert [call[0] for call in bot.calls] == ["What holds for boom?"]
    assert again["deep_ranks_of"] == "earlier runs"
    failed = ragotel(*arguments)
    assert (failed.code, failed.out.splitlines()) == (
        1,
        [
            "Nothing was probed: 1 of 1 search failed.",
            "1 passage not probed: another index version served their requests.",
            "3 passages probed before, as deeply (--again repeats them).",
            "",
            "Nothing of this is from this run; stored before:",
            "deep rank                              passages   share",
            "near miss: up to 2 k                          1  20.0 %",
            "distant: beyond 2 k                           1  20.0 %",
            "not found by the probe                        1  20.0 %",
            "not probed                                    2  40.0 %",
            "a reranker over the top 20 can reach          1  20.0 %",
            "a reranker over the top 50 can reach          2  40.0 %",
            "a reranker over the top 100 can reach         2  40.0 %",
            "a reranker over the top 200 can reach         2  40.0 %",
            "",
            "A reranker over the top 50 can reach 2 of 5 passages. 1 lie beyond what any such "
            "reranker is handed. Of 2 nothing is known: they were not probed.",
        ],
    )
    # What was found needs no deeper search, what was not does.
    deeper = ragotel(*arguments, "--k", "300", "--json").json
    assert (deeper["probed"], deeper["found"]) == (1, 0)
    assert deeper["deep_ranks_of"] == "this run and earlier ones"


def test_a_run_with_nothing_to_do_says_so(
    ragotel: Callable[..., Ran], store: Store, bot: Any, tmp_path: Path
) -> None:
    """No figure is printed of a set without a miss, nor where no probe was ever stored."""
    labels = [label("near"), label("far", set="other")]
    assert not load_labels(store, [write(tmp_path, "labels", *labels)]).refused
    arguments = ("probe", "--retriever", "probed_bot:search", "--set", "deep")
    assert ragotel(*arguments) == Ran(
        0, "Nothing was probed: no gold passage of the set deep was missed.\n", ""
    )
    ask(store, tmp_path, ["near"], version="v6")
    assert ragotel(*arguments) == Ran(
        0,
        "Nothing was probed.\n1 passage not probed: another index version served their requests.\n",
        "",
    )
    for given, lacks in (
        (("--set", "deep"), "--retriever MODULE:FUNCTION (or --leg NAME=MODULE:FUNCTION)"),
        (("--retriever", "probed_bot:search"), "--set NAME"),
    ):
        refused = ragotel("probe", *given)
        assert (refused.code, refused.err) == (
            2,
            f"ragotel: Missing: {lacks}. Files are loaded by `ragotel probe load FILE`. "
            "(see: ragotel probe --help)\n",
        )
    twice = ("--leg", "a=probed_bot:search", "--leg", "a=probed_bot:by_words")
    assert ragotel("probe", *twice, "--set", "deep") == Ran(
        2,
        "",
        "ragotel: --leg a is given twice: a leg has one rank. (see: ragotel probe --help)\n",
    )


def test_legs_wordings_and_documents(
    ragotel: Callable[..., Ran], store: Store, bot: Any, tmp_path: Path
) -> None:
    """Each leg has its own rank; a label without ids is met by its wording, one by its document."""
    ask(store, tmp_path, ["near"])
    wordings, document = [{"spans": ["10 seats"]}], [{"doc_ids": ["plans.md"]}]
    labels = [
        label("near", label_id="words", passages=wordings, principal="bob"),
        label("near", label_id="docs", passages=document),
        label("near", label_id="ids", passages=[{"chunk_ids": ["near#gold"]}]),
    ]
    assert not load_labels(store, [write(tmp_path, "labels", *labels)]).refused
    legs = ("--leg", "deep=probed_bot:search", "--leg", "words=probed_bot:by_words")
    ran = ragotel("probe", *legs, "--set", "deep", "--all", "--principal", "nobody", "--json").json
    assert (ran["probed"], ran["found"], ran["ranks_stored"]) == (3, 3, 6)
    assert (ran["searches"], ran["failures"]) == (4, [])
    assert ran["notes"] == [
        "words never returned more than 2 candidates for k = 200: a passage that was not found "
        "may stand behind them."
    ]
    question = "What holds for near?"
    assert sorted(bot.calls) == [
        (question, 200, name) for name in ("bob", "bob", "nobody", "nobody")
    ]
    columns = "label_id, leg, principal, deep_rank"
    stored = store.query(f"select {columns} from rag_probes order by label_id, leg").result_rows
    assert list(stored) == [
        ("docs", "deep", "", None),
        ("docs", "words", "", 2),
        ("ids", "deep", "", 12),
        ("ids", "words", "", None),
        ("words", "deep", "bob", None),
        ("words", "words", "bob", 2),
    ]
    again = ragotel("probe", *legs, "--set", "deep", "--all", "--principal", "nobody", "--again")
    assert again.out.splitlines()[0] == (
        "3 passages probed on 2 legs by 4 searches of index version v7: "
        "3 found within 200 by a leg or more, 0 not."
    )


def test_a_search_of_unknown_version_is_refused(
    ragotel: Callable[..., Ran], store: Store, bot: Any, tmp_path: Path
) -> None:
    """A rank of another version tells nothing; the option says which it is."""
    ask(store, tmp_path, ["near"])
    assert not load_labels(store, [write(tmp_path, "labels", label("near"))]).refused
    arguments = ("probe", "--retriever", "probed_bot:nameless", "--set", "deep")
    ran = ragotel(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "ragotel: probed_bot:nameless does not say which index version it searched, and a rank of "
        "another version tells nothing; give --index-version, or decorate it with "
        "@ragotel.retrieve(index_version=...).\n"
    )
    assert store.scalar("select count() from rag_probes") == 0
    assert ragotel(*arguments, "--index-version", "v6", "--json").json["skipped"] == {
        "other_version": 1
    }
    assert ragotel(*arguments, "--index-version", "v7", "--json").json["found"] == 1
    refused = ragotel("probe", "--retriever", "probed_bot:search", "--set", "shallow")
    assert (refused.code, refused.err) == (
        1,
        "ragotel: There is no label set 'shallow'; there are 'deep'.\n",
    )
