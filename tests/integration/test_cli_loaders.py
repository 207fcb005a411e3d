"""Loading labels, manifests, grades, probes and ablations: good lines load, bad ones are named."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli_store import REQUESTS, TEXTS, TRACES, Ran, fill, run_in, write_lines
from ragotel.store import Store
from ragotel.text import chunk_sha, normalise

_TIMING = "hardware/rma-process.md#timing"


@pytest.fixture
def ragotel(store: Store, capsys: Any) -> Callable[..., Ran]:
    return run_in(store, capsys)


def test_bad_label_lines_are_named_and_the_others_load(
    ragotel: Callable[..., Ran], tmp_path: Path
) -> None:
    """Each refused line has its number and the reason; exit code 1; the rest is loaded."""
    path = write_lines(
        tmp_path / "labels.jsonl",
        {"label_id": "one", "question": "How long?", "gold_spans": ["21 days"]},
        {"question": " \u200b "},
        {"question": 5},
        {"question": "x", "passages": "nope"},
        '{"question": "x", "weight": NaN}',
        "",
        [1],
        "not json",
        {"question": "x", "passages": [{"chunk_ids": ["a"]}, {}]},
        {"question": "x", "passages": [{"spans": "one text"}]},
        {"question": "x", "answerable": "yes"},
        {"question": "cut \ud83d", "answerable": False},
    )
    ran = ragotel("labels", "load", path)
    assert (ran.code, ran.out) == (1, "2 labels loaded, 9 refused.\n")
    assert ran.err.replace(path, "F").splitlines() == [
        "F, line 2: question is missing or empty",
        "F, line 3: question is a number, a text is wanted",
        "F, line 4: passages is a text, a list is wanted",
        "F, line 5: not JSON: NaN is not a JSON number",
        "F, line 7: a JSON object is wanted, found a list",
        "F, line 8: not JSON: Expecting value: line 1 column 1 (char 0)",
        "F, line 9: passage 2 names no chunk, document, span or text",
        "F, line 10: passage 1: spans is a text, a list is wanted",
        "F, line 11: answerable is a text, true or false is wanted",
    ]


def test_a_label_in_full(ragotel: Callable[..., Ran], store: Store, tmp_path: Path) -> None:
    """Every key has its column; unknown keys are kept; the normalised columns equal Python's."""
    path = write_lines(
        tmp_path / "labels.jsonl",
        {
            "label_id": "w1",
            "set": "gold",
            "split": "dev",
            "population": "golden",
            "principal": "staff",
            "question": "  Wie groß\u00a0ist es? ",
            "why": "seed",
            "expected_answer": "Two years.",
            "passages": [
                {
                    "chunk_ids": ["a", 7],
                    "doc_ids": ["d"],
                    "spans": ["TWO  years", "\uff34\uff37\uff2f", " "],
                },
                {"text": "Gold\tText "},
            ],
            "lures": {"chunk_ids": ["x"], "spans": ["one year"]},
        },
    )
    assert ragotel("labels", "load", path) == Ran(0, "1 labels loaded.\n", "")
    rows = store.rows("select * except (loaded_at, question_hash) from rag_labels order by passage")
    common = {
        "label_id": "w1",
        "passage_count": 2,
        "label_set": "gold",
        "split": "dev",
        "population": "golden",
        "principal": "staff",
        "question": "  Wie groß\u00a0ist es? ",
        "expected_answer": "Two years.",
        "answerable": True,
        "lure_chunk_ids": ["x"],
        "lure_spans": ["one year"],
        "extra": '{"why": "seed"}',
    }
    empty: dict[str, Any] = {
        "chunk_ids": [],
        "doc_ids": [],
        "spans": [],
        "spans_norm": [],
        "text": "",
        "text_norm": "",
    }
    assert rows == [
        {
            **common,
            **empty,
            "passage": 1,
            "chunk_ids": ["a", "7"],
            "doc_ids": ["d"],
            "spans": ["TWO  years", "\uff34\uff37\uff2f"],
            "spans_norm": ["two years", "two"],
        },
        {**common, **empty, "passage": 2, "text": "Gold\tText ", "text_norm": "gold text"},
    ]
    assert rows[0]["spans_norm"][0] == normalise("TWO  years").strip()


def test_a_label_meets_the_request_of_the_same_question(
    ragotel: Callable[..., Ran], store: Store
) -> None:
    """The question's hash of a loaded label equals that of a request, however it is spelt."""
    fill(store)
    ragotel(
        "labels", "add", "--question", " what DOES the\twarranty cover? ", "--span", "two years"
    )
    rows = store.rows("select request_id, matched_by from rag_request_labels")
    assert rows == [{"request_id": REQUESTS[1], "matched_by": "question"}]


def test_a_reloaded_label_replaces_the_old_one_wholly(
    ragotel: Callable[..., Ran], store: Store, tmp_path: Path
) -> None:
    """Two passages before, one now: it has one; twice in a file, the last line counts."""
    two = {"label_id": "w", "question": "q", "passages": [{"spans": ["a"]}, {"spans": ["b"]}]}
    one = {"label_id": "w", "question": "q", "passages": [{"spans": ["c"]}]}
    ragotel("labels", "load", write_lines(tmp_path / "1.jsonl", two))
    ran = ragotel("labels", "load", write_lines(tmp_path / "2.jsonl", two, one), "--json")
    assert ran.json["loaded"] == 1
    assert len(ran.json["notes"]) == 1
    assert store.rows("select passage, spans from rag_label_passages") == [
        {"passage": 1, "spans": ["c"]}
    ]


def test_ids_of_nameless_labels_are_the_same_every_time(
    ragotel: Callable[..., Ran], tmp_path: Path
) -> None:
    """Set and normalised question make the id, so loading a file twice adds nothing."""
    lines = [{"question": f"Question {number}?", "gold_chunk_ids": ["a"]} for number in range(3)]
    path = write_lines(tmp_path / "labels.jsonl", *lines)
    ragotel("labels", "load", path)
    ragotel("labels", "load", path)
    listed = ragotel("labels", "list", "--json").json
    assert sorted(row["question"] for row in listed) == [
        "Question 0?",
        "Question 1?",
        "Question 2?",
    ]


def test_a_manifest_is_whole_when_every_line_was_read(
    ragotel: Callable[..., Ran], store: Store, tmp_path: Path
) -> None:
    """Chunks, their texts and, last, the row that says how many there are."""
    lines = [{"chunk_id": name, "doc_id": "d", "text": text} for name, text in TEXTS.items()]
    path = tmp_path / "manifest.jsonl.gz"
    plain = write_lines(tmp_path / "manifest.jsonl", *lines, {"chunk_id": "bare", "chars": 7})
    path.write_bytes(gzip.compress(Path(plain).read_bytes()))
    ran = ragotel("manifest", "load", str(path), "--index", "docs", "--version", "v7")
    assert ran == Ran(0, "7 chunks of docs v7 loaded.\n", "")
    assert store.rows(
        "select chunk_id, doc_id, chunk_sha, chars, deleted from rag_index_chunks "
        "where chunk_id in ('bare', 'hardware/warranty.md#coverage') order by chunk_id"
    ) == [
        {"chunk_id": "bare", "doc_id": "", "chunk_sha": "", "chars": 7, "deleted": 0},
        {
            "chunk_id": "hardware/warranty.md#coverage",
            "doc_id": "d",
            "chunk_sha": chunk_sha("The warranty covers two years."),
            "chars": 30,
            "deleted": 0,
        },
    ]
    assert store.rows("select version, chunk_rows from rag_index_versions") == [
        {"version": "v7", "chunk_rows": 7}
    ]
    assert store.rows("select is_whole from rag_index_chains") == [{"is_whole": 1}]
    texts = {row["chunk_sha"]: row for row in store.rows("select * from rag_chunks")}
    assert {sha: row["text_norm"] for sha, row in texts.items()} == {
        chunk_sha(text): normalise(text) for text in TEXTS.values()
    }


def test_a_manifest_with_a_bad_line_is_not_whole(
    ragotel: Callable[..., Ran], store: Store, tmp_path: Path
) -> None:
    """One refused line leaves the version unmarked, and the command says so."""
    lines = [{"chunk_id": "a"}, {"chunk_id": "b", "deleted": True}, {"doc_id": "no chunk"}]
    path = write_lines(tmp_path / "m.jsonl", *lines)
    ran = ragotel("manifest", "load", path, "--index", "docs", "--version", "v7")
    assert (ran.code, ran.out) == (1, "1 chunks of docs v7 loaded, 2 refused.\n")
    assert ran.err.replace(path, "F").splitlines() == [
        "F, line 2: deleted is for a list of changes: give its --parent",
        "F, line 3: chunk_id is missing or empty",
        "docs v7 is NOT marked whole, as lines were refused: whether a chunk was in it stays "
        "unknown until its manifest is loaded without a fault",
    ]
    assert store.rows("select * from rag_index_versions") == []


def test_an_empty_manifest_is_refused(ragotel: Callable[..., Ran], tmp_path: Path) -> None:
    """A file without a chunk would make every gold passage a corpus gap; it is no manifest."""
    path = write_lines(tmp_path / "manifest.jsonl")
    ran = ragotel("manifest", "load", path, "--index", "docs", "--version", "v9")
    assert (ran.code, ran.out) == (2, "")
    assert "docs v9 holds no chunk" in ran.err
    changes = ("--index", "docs", "--version", "v10", "--parent", "v9")
    assert ragotel("manifest", "load", path, *changes).code == 0


def test_a_label_without_gold_is_told(ragotel: Callable[..., Ran], tmp_path: Path) -> None:
    """It loads, since more may come, but its verdicts are unknown; a mistyped key is named."""
    path = write_lines(
        tmp_path / "labels.jsonl",
        {"label_id": "typo", "question": "a?", "pasages": [{"chunk_ids": ["x"]}]},
        {"label_id": "bare", "question": "b?", "passages": [{"spans": [""]}]},
        {"label_id": "none", "question": "c?", "answerable": False},
    )
    ran = ragotel("labels", "load", path)
    assert (ran.code, ran.out) == (0, "3 labels loaded.\n")
    assert ran.err.replace(path, "F").splitlines() == [
        "F, line 1: label typo names no passage, so that every verdict is unknown; "
        "did 'pasages' mean 'passages'?",
        "F, line 2: label bare names no passage, so that every verdict is unknown "
        "(answerable: false says that the corpus holds no answer)",
    ]


def test_grades_by_labels_that_are_not_there_are_told(
    ragotel: Callable[..., Ran], tmp_path: Path
) -> None:
    """The label may be loaded later, so they load; a mistyped id is seen at once."""
    path = write_lines(
        tmp_path / "grades.jsonl",
        {"request_id": "zzz", "label_id": "ghost", "grade": "wrong"},
    )
    ran = ragotel("grade", "load", path)
    assert (ran.code, ran.out) == (0, "1 grades loaded.\n")
    assert ran.err.splitlines() == [
        "Not in the store: label ghost; such grades count once it is",
        "Not in the store: request zzz; such grades count once it is",
    ]


def test_a_list_of_changes_needs_its_parent(
    ragotel: Callable[..., Ran], store: Store, tmp_path: Path
) -> None:
    """A child holds its parent's chunks but the deleted ones; without it, it proves nothing."""
    changes = write_lines(
        tmp_path / "v2.jsonl", {"chunk_id": "a", "deleted": True}, {"chunk_id": "c"}
    )
    child = ("manifest", "load", changes, "--index", "docs", "--version", "v2", "--parent")
    ran = ragotel(*child, "v1")
    assert (ran.code, ran.err) == (
        0,
        "The parent docs v1 has no whole manifest yet: whether a chunk was in docs v2 stays "
        "unknown until it is loaded\n",
    )
    whole = write_lines(tmp_path / "v1.jsonl", {"chunk_id": "a"}, {"chunk_id": "b"})
    ragotel("manifest", "load", whole, "--index", "docs", "--version", "v1")
    assert store.rows("select chunk_id from rag_index_members where version = 'v2' order by 1") == [
        {"chunk_id": "b"},
        {"chunk_id": "c"},
    ]
    assert ragotel(*child, "v2").code == 2


def test_grades_find_their_request(
    ragotel: Callable[..., Ran], store: Store, tmp_path: Path
) -> None:
    """A trace or a request id is completed; what is not there yet is kept as it was given."""
    fill(store)
    path = write_lines(
        tmp_path / "grades.jsonl",
        {"request_id": REQUESTS[0], "grade": "wrong", "source": "judge"},
        {"trace_id": TRACES[1], "grade": "correct", "source": "exact", "by": "script"},
        {"trace_id": "later", "grade": "abstained"},
        {"trace_id": TRACES[1], "grade": "maybe"},
        {"grade": "wrong"},
        {"trace_id": TRACES[1], "grade": "wrong", "source": "oracle"},
    )
    ran = ragotel("grade", "load", path)
    assert (ran.code, ran.out) == (1, "3 grades loaded, 3 refused.\n")
    assert ran.err.replace(path, "F").splitlines() == [
        "F, line 4: grade is 'maybe', one of correct, wrong, abstained is wanted",
        "F, line 5: neither trace_id nor request_id is given",
        "F, line 6: source is 'oracle', one of human, exact, judge is wanted",
        "Not in the store: request later; such grades count once it is",
    ]
    rows = store.query(
        "select trace_id, request_id, grade, source, graded_by from rag_grades order by graded_at"
    ).result_rows
    assert [tuple(row) for row in rows] == [
        (TRACES[0], REQUESTS[0], "wrong", "judge", ""),
        (TRACES[1], REQUESTS[1], "correct", "exact", "script"),
        ("later", "", "abstained", "human", ""),
    ]


def test_one_grade_and_one_complaint(ragotel: Callable[..., Ran], store: Store) -> None:
    """A request is named by six characters; an unknown one or an unknown label is exit 1."""
    fill(store)
    assert ragotel("grade", "6bf92f", "correct") == Ran(
        0, f"{REQUESTS[2]} is graded correct (human).\n", ""
    )
    ran = ragotel(
        "complaint", REQUESTS[0], "--text", "No!", "--grade", "wrong", "--at", "2026-11-20"
    )
    assert ran.code == 0
    assert store.rows("select request_id, text, grade, complained_at from rag_complaints")[0] == {
        "request_id": REQUESTS[0],
        "text": "No!",
        "grade": "wrong",
        "complained_at": store.scalar("select toDateTime64('2026-11-20 12:00:00', 6, 'UTC')"),
    }
    assert ragotel("grade", "nothing", "wrong") == Ran(
        1,
        "",
        "ragotel: No request has the trace or request id 'nothing', or one that begins so; "
        "`ragotel find` looks for user, day and words.\n",
    )
    assert ragotel("grade", REQUESTS[0], "wrong", "--label", "none").code == 1
    assert ragotel("grade", "req-", "wrong").code == 1


def test_probes_and_ablations(ragotel: Callable[..., Ran], store: Store, tmp_path: Path) -> None:
    """Both load with the request completed; ranks below 1, NaN and unknown modes are refused."""
    fill(store)
    probe = {"request_id": REQUESTS[0], "label_id": "w", "k": 50, "index_version": "v7"}
    path = write_lines(
        tmp_path / "probes.jsonl",
        {**probe, "deep_rank": 34, "score": 0.402, "leg": "dense"},
        {**probe, "deep_rank": None, "passage": 2},
        {**probe, "deep_rank": 0},
        {**probe, "deep_rank": 51},
        {**probe, "score": True},
    )
    ran = ragotel("probe", "load", path)
    assert (ran.code, ran.out) == (1, "2 probes loaded, 3 refused.\n")
    assert store.rows(
        "select trace_id, passage, leg, k, deep_rank, score from rag_probes order by passage"
    ) == [
        {
            "trace_id": TRACES[0],
            "passage": 1,
            "leg": "dense",
            "k": 50,
            "deep_rank": 34,
            "score": 0.402,
        },
        {
            "trace_id": TRACES[0],
            "passage": 2,
            "leg": "",
            "k": 50,
            "deep_rank": None,
            "score": None,
        },
    ]
    run = {"request_id": REQUESTS[0], "label_id": "w"}
    path = write_lines(
        tmp_path / "ablations.jsonl",
        {**run, "mode": "gold_only", "correct": True},
        {**run, "mode": "position", "position": 3, "of": 10, "correct": False},
        {**run, "mode": "position", "correct": False},
        {**run, "mode": "upside_down", "correct": False},
        {**run, "mode": "full"},
    )
    ran = ragotel("ablate", "load", path)
    assert (ran.code, ran.out) == (1, "2 ablations loaded, 3 refused.\n")
    assert store.rows("select mode, position, of, correct from rag_ablations order by mode") == [
        {"mode": "gold_only", "position": 0, "of": 0, "correct": True},
        {"mode": "position", "position": 3, "of": 10, "correct": False},
    ]


def test_a_claim_is_resolved_to_its_chunk(
    ragotel: Callable[..., Ran], store: Store, tmp_path: Path
) -> None:
    """The chunk that states the claim is found, also in one version and under one prefix."""
    lines = [{"chunk_id": name, "text": text} for name, text in TEXTS.items()]
    path = write_lines(tmp_path / "m.jsonl", *lines)
    ragotel("manifest", "load", path, "--index", "docs", "--version", "v7")
    claim = ("labels", "resolve", "--claim", "21 Calendar days", "--json")
    expected = [
        {
            "chunk_id": _TIMING,
            "doc_id": "",
            "index_names": ["docs"],
            "claim": "21 Calendar days",
            "sentence": "A hardware unit can be returned within 21 calendar days of delivery.",
        }
    ]
    assert ragotel(*claim).json == expected
    there = ("--index", "docs", "--version", "v7", "--under", "hardware/")
    assert ragotel(*claim, *there).json == expected
    assert ragotel(
        "labels", "resolve", "--claim", "21 calendar days", "--under", "policies/"
    ) == Ran(
        1,
        "",
        "None of 3 chunk texts under policies/ states it: the corpus may not hold it. "
        "Look at the ingest manifest next.\n",
    )
    assert ragotel("labels", "resolve", "--claim", "1 calendar days").code == 1


def test_a_decision_is_about_a_request_that_the_label_judges(
    ragotel: Callable[..., Ran], store: Store
) -> None:
    """Another request is refused, with those that the label does judge."""
    fill(store)
    add = ("labels", "add", "--question", "What does the warranty cover?", "--span", "two years")
    assert ragotel(*add, "--id", "cover").code == 0
    listed = ragotel("labels", "list", "--set", "default", "--json").json
    assert [row["label_id"] for row in listed] == ["cover"]
    assert ragotel("labels", "list", "--set", "nope").code == 1
    decide = ("labels", "decide", "cover")
    assert ragotel(*decide, REQUESTS[0], "--defect", "none") == Ran(
        2,
        "",
        f"ragotel: The label 'cover' does not judge the request '{REQUESTS[0]}'; it judges "
        f"'{REQUESTS[1]}'. `ragotel labels attach REQUEST LABEL` adds one.\n",
    )
    assert store.scalar("select count() from rag_label_decisions") == 0
    assert ragotel(*decide, REQUESTS[1], "--defect", "none") == Ran(
        0, f"Label cover: none, on request {REQUESTS[1]}.\n", ""
    )


def test_resolving_writes_the_label(ragotel: Callable[..., Ran], store: Store) -> None:
    """Without a manifest, the texts that requests brought are searched; --write keeps the rest."""
    fill(store)
    ragotel(
        *("labels", "add", "--id", "w", "--question", "How long?", "--span", "21 calendar days"),
        *("--answer", "21 days", "--set", "s"),
    )
    ran = ragotel("labels", "resolve", "--label", "w", "--write")
    assert (ran.code, ran.err) == (0, f"Written to the label: {_TIMING}.\n")
    assert store.rows(
        "select chunk_ids, spans, expected_answer, label_set from rag_label_passages"
    ) == [
        {
            "chunk_ids": [_TIMING],
            "spans": ["21 calendar days"],
            "expected_answer": "21 days",
            "label_set": "s",
        }
    ]


def test_all_labels_of_a_set_are_resolved(
    ragotel: Callable[..., Ran], store: Store, tmp_path: Path
) -> None:
    """What is found is written; a claim that stands nowhere and a label without one are named."""
    lines = [{"chunk_id": name, "text": text} for name, text in TEXTS.items()]
    path = write_lines(tmp_path / "m.jsonl", *lines)
    ragotel("manifest", "load", path, "--index", "docs", "--version", "v7")
    labels = write_lines(
        tmp_path / "labels.jsonl",
        {"label_id": "a", "set": "s", "question": "a?", "gold_spans": ["21 calendar days"]},
        {"label_id": "b", "set": "s", "question": "b?", "gold_spans": ["two years"]},
        {"label_id": "n", "set": "s", "question": "n?", "answerable": False},
        {"label_id": "o", "set": "other", "question": "o?", "gold_spans": ["in its original box"]},
    )
    ragotel("labels", "load", labels)
    resolve = ("labels", "resolve", "--set", "s", "--all-versions", "--write")
    ran = ragotel(*resolve)
    assert (ran.code, ran.err) == (
        0,
        "Set s: 2 of 2 labels have a chunk for each passage; 2 chunk ids written to 2 of them.\n",
    )
    assert [line.split()[:5] for line in ran.out.splitlines()] == [
        ["label", "passage", "index", "version", "chunk"],
        ["a", "1", "docs", "v7", _TIMING],
        ["b", "1", "docs", "v7", "hardware/warranty.md#coverage"],
    ]
    kept = "select label_id, chunk_ids from rag_label_passages where notEmpty(chunk_ids) order by 1"
    assert store.rows(kept) == [
        {"label_id": "a", "chunk_ids": [_TIMING]},
        {"label_id": "b", "chunk_ids": ["hardware/warranty.md#coverage"]},
    ]
    more = write_lines(
        tmp_path / "more.jsonl",
        {"label_id": "c", "set": "s", "question": "c?", "gold_spans": ["42 days"]},
        {"label_id": "d", "set": "s", "question": "d?", "gold_chunk_ids": [_TIMING]},
    )
    ragotel("labels", "load", more)
    ran = ragotel(*resolve)
    assert (ran.code, ran.err) == (
        1,
        "None of 6 chunk texts states the claim of: c.\n"
        "No span and no text to look for: d.\n"
        "Set s: 2 of 4 labels have a chunk for each passage.\n",
    )
    assert ragotel("labels", "resolve", "--set", "t") == Ran(
        1,
        "",
        "ragotel: No label is in the set 't'; `ragotel labels list` shows the sets that "
        "there are.\n",
    )
    one = ("--all-versions", "--limit", "1", "--claim", "days")
    assert ragotel("labels", "resolve", *one).err == (
        "A claim stands in more places than the 1 listed: raise --limit.\n"
    )
    assert ragotel("labels", "resolve", "--set", "s", "--label", "a").code == 2


def test_a_file_of_another_form_is_told_how_to_become_lines(
    ragotel: Callable[..., Ran], tmp_path: Path
) -> None:
    """One JSON document, ids and numbers of absurd length: refused, with what to do."""
    path = write_lines(tmp_path / "doc.json", "[", '{"question": "a"}', "]")
    ran = ragotel("labels", "load", path)
    assert (ran.code, ran.err.splitlines()[2:3]) == (
        1,
        [f"{path} looks like one JSON document; one object a line is wanted: jq -c '.[]' {path}"],
    )
    long = {"label_id": "x" * 8_193, "question": "q", "gold_spans": ["s"]}
    path = write_lines(tmp_path / "long.jsonl", long, '{"question": ' + "9" * 5_000 + "}")
    assert ragotel("labels", "load", path).err.splitlines() == [
        f"{path}, line 1: label_id has 8,193 characters, at most 8,192 can be",
        f"{path}, line 2: a number of thousands of digits",
    ]


def test_what_contradicts_itself_is_refused(ragotel: Callable[..., Ran], tmp_path: Path) -> None:
    """A position beyond the prompt, or a passage looked for to no depth; strangers are named."""
    here = {"request_id": "nobody", "label_id": "nothing"}
    beyond = {**here, "mode": "position", "position": 11, "of": 10, "correct": True}
    first = {**beyond, "position": 0}
    path = write_lines(tmp_path / "a.jsonl", beyond, first, {**beyond, "position": 10})
    ran = ragotel("ablate", "load", path)
    assert (ran.code, ran.out) == (1, "1 ablations loaded, 2 refused.\n")
    assert ran.err.splitlines() == [
        f"{path}, line 1: position 11 lies beyond the 10 passages of the prompt",
        f"{path}, line 2: position is missing or 0: it is what this mode varies, from 1 on",
        "Not in the store: request nobody; such ablations count once it is",
    ]
    path = write_lines(tmp_path / "p.jsonl", {**here, "k": 0}, {**here, "deep_rank": 3})
    ran = ragotel("probe", "load", path)
    assert (ran.code, ran.out) == (1, "1 probes loaded, 1 refused.\n")
    assert ran.err.splitlines() == [
        f"{path}, line 1: k is missing or 0: how deep was the passage looked for in vain?",
        "Not in the store: request nobody; such probes count once it is",
    ]
    path = write_lines(tmp_path / "g.jsonl", {**here, "grade": "wrong"})
    assert ragotel("grade", "load", path).err.splitlines() == [
        "Not in the store: label nothing; such grades count once it is",
        "Not in the store: request nobody; such grades count once it is",
    ]


def test_a_file_without_lines_is_told(ragotel: Callable[..., Ran], tmp_path: Path) -> None:
    """It is no fault, for on a quiet day nobody graded anything; a manifest of nothing is."""
    empty, blank = tmp_path / "empty.jsonl", tmp_path / "blank.jsonl"
    empty.write_bytes(b"")
    blank.write_bytes(b"\n \n")
    told = f"{empty} holds no lines: nothing was loaded from it"
    for command, things in (
        (("labels", "load"), "labels"),
        (("grade", "load"), "grades"),
        (("probe", "load"), "probes"),
        (("ablate", "load"), "ablations"),
        (("manifest", "load", "--index", "i", "--version", "2", "--parent", "1"), "chunks of i 2"),
    ):
        ran = ragotel(*command, str(empty), str(blank))
        assert (ran.code, ran.out) == (0, f"0 {things} loaded.\n")
        assert ran.err.splitlines()[:2] == [told, told.replace(str(empty), str(blank))]
    report = ragotel("grade", "load", "--json", str(empty)).json
    assert report == {"loaded": 0, "refused": [], "notes": [told]}
    assert ragotel("load", str(empty)) == Ran(
        0,
        "0 spans loaded from 1 file.\n",
        f"{empty} holds no spans: nothing was loaded from it\n",
    )
    manifest = ragotel("manifest", "load", str(empty), "--index", "i", "--version", "1")
    assert (manifest.code, manifest.err.count("\n")) == (2, 1)
    assert "holds no chunk" in manifest.err


def test_a_file_that_is_not_there_is_wrong_use(ragotel: Callable[..., Ran]) -> None:
    """It is named, with the system's reason; exit 2."""
    assert ragotel("labels", "load", "/nowhere/labels.jsonl") == Ran(
        2,
        "",
        "ragotel: The file /nowhere/labels.jsonl cannot be read: No such file or directory.\n",
    )
