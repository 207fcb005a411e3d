"""Values that break other recorders: NaN, surrogates, megabytes, odd kinds of number."""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import Any

import numpy as np
import pytest

import ragotel
from ragotel import attributes as at
from ragotel.privacy import MAX_STRING_CHARS, Privacy, cut_middle
from ragotel.testing import Recorded, recording
from ragotel.text import chunk_sha

HITS = [{"id": f"c{n}", "score": n / 10, "text": f"secret marker text {n}"} for n in range(3)]


def ask(prompt: str, hits: list[dict[str, Any]] = HITS) -> None:
    """Run one request through all kinds of stage."""
    retrieve = ragotel.retrieve(where={"owner": "secret marker"})(lambda query: hits)
    rerank = ragotel.rerank(lambda found: found[:2])
    assemble = ragotel.assemble(lambda found: prompt)
    generate = ragotel.generate(lambda text: "secret marker reply")

    @ragotel.request
    def answer(question: str) -> str:
        return str(generate(assemble(rerank(retrieve(question)))))

    answer("secret marker question")


def test_one_nan_costs_one_score(recorded: Recorded) -> None:
    """Nine scores are kept, the tenth is null with a mark, and the JSON is valid."""
    hits = [{"id": f"c{n}", "score": np.float32(n / 8)} for n in range(10)]
    hits[3]["score"] = float("nan")
    ragotel.rerank(lambda found: found)(hits)
    (raw,) = [s.attributes[at.CANDIDATES] for s in recorded.raw]
    rows = json.loads(str(raw), parse_constant=lambda name: pytest.fail(name))
    assert [row["score"] for row in rows] == [n / 8 if n != 3 else None for n in range(10)]
    assert rows[3]["score_state"] == "nan"


def test_ids_of_mixed_kinds(recorded: Recorded) -> None:
    """Numbers and UUIDs become texts; a missing id stays null, at its rank."""
    key = uuid.UUID(int=7)
    ragotel.retrieve(lambda query: [{"id": i, "score": 0.5} for i in (1, "b", None, key)])("q")
    rows = recorded.stage("retrieve")[at.DOCUMENTS]
    assert [row["id"] for row in rows] == ["1", "b", None, str(key)]


def test_a_lone_surrogate_is_repaired_and_marked(recorded: Recorded) -> None:
    """A prompt cut in the middle of an emoji arrives with U+FFFD, and says so."""
    prompt = "Use this: \ud83d"
    ask(prompt, [{"id": "x\ud83d", "score": 1.0, "text": "half \ud83d emoji text"}])
    for span in recorded.raw:
        json.dumps(span.attributes, ensure_ascii=False).encode()
    assembled = recorded.stage("assemble")
    assert assembled[at.PROMPT_TEXT] == "Use this: \ufffd"
    assert assembled[at.TEXT_REPAIRED] is True
    assert at.TEXT_REPAIRED not in recorded.stage("generate")
    assert recorded.stage("retrieve")[at.DOCUMENTS][0]["id"] == "x\ufffd"


def test_a_huge_prompt_keeps_head_and_tail(recorded: Recorded) -> None:
    """3 MB: head and tail within the limit, the true length, the whole hash, marked truncated."""
    prompt = "HEAD" + "x" * 3_000_000 + "TAIL"
    ask(prompt)
    assembled = recorded.stage("assemble")
    text = assembled[at.PROMPT_TEXT]
    assert len(text) == 1_000_000
    assert (text[:4], text[-4:]) == ("HEAD", "TAIL")
    assert assembled[at.PROMPT_CHARS] == len(prompt)
    assert assembled[at.PROMPT_SHA256] == hashlib.sha256(prompt.encode()).hexdigest()
    assert assembled[at.CONTENT_MODE] == "truncated"


def test_ids_of_megabytes_stay_short_and_distinct(recorded: Recorded) -> None:
    """A long id ends in a hash of the whole, so that two of them stay two."""
    ids = ["x" * 2_000_000 + end for end in "ab"]
    ragotel.retrieve(lambda query: [{"id": i} for i in ids])("q")
    kept = [row["id"] for row in recorded.stage("retrieve")[at.DOCUMENTS]]
    assert [len(key) for key in kept] == [MAX_STRING_CHARS, MAX_STRING_CHARS]
    assert len(set(kept)) == 2


def test_long_lists_are_cut_and_their_counts_are_not(recorded: Recorded) -> None:
    """Of 1,500 candidates 1,000 are written; the count says 1,500."""
    ragotel.retrieve(lambda query: [{"id": n} for n in range(1500)])("q")
    attributes = recorded.stage("retrieve")
    assert len(attributes[at.DOCUMENTS]) == 1000
    assert attributes[at.COUNT] == 1500


def test_fifty_candidates_keep_all_their_ranks(recorded: Recorded) -> None:
    """Fifty candidates are fifty rows, from the first rank to the last."""
    ragotel.retrieve(lambda query: [{"id": n, "score": -n} for n in range(50)])("q")
    rows = recorded.stage("retrieve")[at.DOCUMENTS]
    assert [row["id"] for row in rows] == [str(n) for n in range(50)]


def everything(sink: Recorded) -> str:
    return json.dumps([span.attributes for span in sink.raw])


def test_with_content_off_no_text_leaves() -> None:
    """No question, answer, prompt, passage or search text; ids, scores, counts and hashes stay."""
    with recording(content_mode="off") as sink:
        ask(f"Use {HITS[0]['text']}")
        assert "secret marker" not in everything(sink)
        retrieve, assembled = sink.stage("retrieve"), sink.stage("assemble")
    assert [row["id"] for row in retrieve[at.DOCUMENTS]] == ["c0", "c1", "c2"]
    assert retrieve[at.COUNT] == 3
    assert assembled[at.PROMPT_CHARS] == len(f"Use {HITS[0]['text']}")
    assert [(row["id"], row["sha"]) for row in assembled[at.CANDIDATES]] == [
        ("c0", chunk_sha(str(HITS[0]["text"])))
    ]
    assert {assembled[at.CONTENT_MODE], retrieve[at.CONTENT_MODE]} == {"off"}


def test_with_hashes_only_no_text_leaves() -> None:
    """Mode hashed sends the hash of each text in its place."""
    with recording(content_mode="hashed") as sink:
        ask("Use secret marker")
        assert "secret marker" not in everything(sink)
        assert sink.stage("request")[at.QUERY] == chunk_sha("secret marker question")
        assert sink.stage("request")[at.CONTENT_MODE] == "hashed"


def test_truncated_mode_keeps_short_texts_whole() -> None:
    """Mode truncated cuts at 2,000 characters and marks only what it cut."""
    with recording(content_mode="truncated") as sink:
        ask("x" * 5000)
        assert len(sink.stage("assemble")[at.PROMPT_TEXT]) == 2000
        assert sink.stage("assemble")[at.CONTENT_MODE] == "truncated"
        assert sink.stage("request")[at.CONTENT_MODE] == "full"


@pytest.mark.parametrize("limit", [0, 1, 10, 60, 99, 100, 101])
def test_a_cut_text_never_exceeds_its_limit(limit: int) -> None:
    """Whatever the limit, the cut text keeps to it, and a short one stays as it is."""
    text = "ab" * 50
    assert len(cut_middle(text, limit)) == min(limit, 100)
    assert Privacy("full", limit).keep(text).mode == ("full" if limit >= 100 else "truncated")
