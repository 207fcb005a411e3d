"""The ranked list against what was sent, as plain rows."""

from __future__ import annotations

from typing import Any

from ragotel.triage.ranked import Gold, ranked_rows, sent_of


def _stage(*candidates: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A row of rag_stages with these candidates."""
    stage: dict[str, Any] = {
        "chunk_ids": [entry.get("id") for entry in candidates],
        "scores": [entry.get("score") for entry in candidates],
        "candidate_shas": [entry.get("sha", "") for entry in candidates],
        "candidate_doc_ids": ["" for _ in candidates],
        "candidate_tokens": [entry.get("tokens") for entry in candidates],
        "candidate_chars": [entry.get("chars") for entry in candidates],
        "candidate_kept_chars": [entry.get("kept") for entry in candidates],
        "candidate_superseded": [None for _ in candidates],
        "candidate_legs": ["" for _ in candidates],
        "dropped_ids": [],
        "drop_reasons": [],
        "drop_inferred": [],
        "evidence": "whole",
        "higher_is_better": True,
    }
    return {**stage, **more}


def _rows(stage: dict[str, Any], sent: dict[str, Any] | None, *names: str) -> list[tuple[Any, ...]]:
    gold = Gold(chunk_ids=frozenset({"c"}), has_claims=True, states_claim={"s1": True, "s2": False})
    rows = ranked_rows(stage, sent_of(sent, {}), gold, {})
    return [tuple(row[name] for name in names) for row in rows]


def test_the_running_sum_counts_what_was_sent_above() -> None:
    """A refused passage shows what the budget would have had to hold, and adds nothing below."""
    stage = _stage(
        *({"id": name, "tokens": count} for name, count in (("a", 10), ("b", 99), ("c", 5)))
    )
    sent = _stage({"id": "a"}, {"id": "c"}, dropped_ids=["b"], drop_reasons=["budget"])
    sent["drop_inferred"] = [1]
    assert _rows(stage, sent, "sent", "running_tokens", "drop_reason", "inferred", "star") == [
        (True, 10, None, None, False),
        (False, 109, "budget", True, False),
        (True, 15, None, None, True),
    ]


def test_unknown_tokens_make_an_unknown_sum() -> None:
    """A sum over a passage of unknown size is not guessed."""
    stage = _stage({"id": "a", "tokens": None}, {"id": "b", "tokens": 5})
    assert _rows(stage, _stage({"id": "a"}, {"id": "b"}), "running_tokens") == [(None,), (None,)]


def test_without_a_sent_list_nothing_is_claimed() -> None:
    """Not recorded is neither sent nor left out; a truncated list proves only what it names."""
    stage = _stage({"id": "a"}, {"id": "b"})
    assert _rows(stage, None, "sent") == [(None,), (None,)]
    truncated = _stage({"id": "a"}, evidence="truncated")
    assert _rows(stage, truncated, "sent") == [(True,), (None,)]


def test_gaps_are_positive_where_the_rank_above_is_better() -> None:
    """Also where lower scores are better; a missing score has no gap on either side."""
    entries = [{"id": str(at), "score": score} for at, score in enumerate((0.1, 0.3, None, 0.4))]
    assert _rows(_stage(*entries, higher_is_better=False), None, "gap") == [
        (None,),
        (0.2,),
        (None,),
        (None,),
    ]


def test_a_trimmed_passage_says_how_much_was_kept() -> None:
    """Fewer characters kept than there are is trimmed; all of them is not."""
    stage = _stage({"id": "a", "chars": 100}, {"id": "b", "chars": 50})
    sent = _stage({"id": "a", "kept": 40, "chars": 100}, {"id": "b", "kept": 50, "chars": 50})
    assert _rows(stage, sent, "trimmed", "kept_chars", "chars") == [
        (True, 40, 100),
        (False, 50, 50),
    ]


def test_a_star_needs_text_or_id() -> None:
    """A text that states the claim, or a labelled id; an unknown text is marked as unknown."""
    stage = _stage({"id": "x", "sha": "s1"}, {"id": "y", "sha": "s2"}, {"id": "c"}, {"id": "z"})
    assert _rows(stage, None, "star", "states_claim", "is_text_unknown") == [
        (True, True, False),
        (False, False, False),
        (True, None, True),
        (False, None, True),
    ]


def test_candidates_without_id_are_matched_by_their_text() -> None:
    """A null id meets the sent passage of the same hash; without either nothing is matched."""
    stage = _stage({"sha": "s1"}, {})
    assert _rows(stage, _stage({"sha": "s1"}, {}), "sent", "position") == [(True, 1), (False, None)]
