"""Ranked: the two lists side by side: what the ranker chose, and what the prompt could afford.

Pipeline: rag_stages -> [triage] -> show. Plain functions over the rows of rag_stages, no store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Stage = Mapping[str, Any]


@dataclass(frozen=True)
class Gold:
    """What is looked for: labelled ids, and by text's hash whether it states the claim."""

    chunk_ids: frozenset[str] = frozenset()
    doc_ids: frozenset[str] = frozenset()
    has_claims: bool = False
    states_claim: Mapping[str, bool] = field(default_factory=dict)

    def states(self, sha: str) -> bool | None:
        """Whether the text *sha* states the claim; None where there is no claim, or no text."""
        return self.states_claim.get(sha) if self.has_claims else None

    @property
    def has_ids(self) -> bool:
        return bool(self.chunk_ids or self.doc_ids)

    def names(self, chunk_id: str | None, doc_id: str, sha: str = "") -> bool:
        """Whether a candidate is labelled: by id, by document, without an id by its text's hash."""
        return (chunk_id or sha) in self.chunk_ids or (doc_id != "" and doc_id in self.doc_ids)


@dataclass(frozen=True)
class Sent:
    """What the prompt took: *rows* by key; *is_whole* where the list can be trusted."""

    rows: Mapping[str, Mapping[str, Any]]
    is_whole: bool
    drops: Mapping[str, tuple[str, bool]]


def candidates_of(stage: Stage, shas: Mapping[str, str]) -> list[dict[str, Any]]:
    """The candidates of one stage run, best first; *shas* has hashes for ids without."""
    columns = (
        *("chunk_ids", "scores", "candidate_shas", "candidate_doc_ids", "candidate_tokens"),
        *("candidate_chars", "candidate_kept_chars", "candidate_superseded", "candidate_legs"),
    )
    rows = []
    for rank, values in enumerate(zip(*(stage[name] for name in columns), strict=True), 1):
        chunk_id, score, sha, doc_id, tokens, chars, kept_chars, superseded, leg = values
        rows.append(
            {
                "rank": rank,
                "chunk_id": chunk_id,
                "score": score,
                "chunk_sha": sha or shas.get(chunk_id or "", ""),
                "doc_id": doc_id,
                "tokens": tokens,
                "chars": chars,
                "kept_chars": kept_chars,
                "superseded": superseded,
                "leg": leg,
            }
        )
    return rows


def key_of(row: Mapping[str, Any]) -> str:
    """What a candidate is known by in every list: its id, else its text's hash, else nothing."""
    return row["chunk_id"] or row["chunk_sha"] or ""


def sent_of(assemble: Stage | None, shas: Mapping[str, str]) -> Sent:
    """What the prompt of *assemble* took and what it says that it dropped."""
    if assemble is None:
        return Sent({}, False, {})
    rows = {
        key_of(row): {**row, "position": row["rank"]}
        for row in reversed(candidates_of(assemble, shas))
        if key_of(row)
    }
    return Sent(rows, assemble["evidence"] in ("whole", "empty"), drops_of([assemble]))


def drops_of(stages: Iterable[Stage]) -> dict[str, tuple[str, bool]]:
    """Reason and `inferred` by chunk id; the first stage that dropped a chunk counts."""
    found: dict[str, tuple[str, bool]] = {}
    for stage in stages:
        for chunk_id, reason, inferred in zip(
            stage["dropped_ids"], stage["drop_reasons"], stage["drop_inferred"], strict=True
        ):
            if chunk_id:
                found.setdefault(chunk_id, (reason or "other", bool(inferred)))
    return found


def known_tokens(stages: Iterable[Stage]) -> dict[str, int]:
    """The tokens of a chunk's whole text by its id, where all lists that tell them agree."""
    told: dict[str, set[int]] = {}
    for stage in stages:
        for row in candidates_of(stage, {}):
            kept, chars = row["kept_chars"], row["chars"]
            is_trimmed = kept is not None and chars is not None and kept < chars
            if row["chunk_id"] and row["tokens"] is not None and not is_trimmed:
                told.setdefault(row["chunk_id"], set()).add(row["tokens"])
    return {chunk_id: counts.pop() for chunk_id, counts in told.items() if len(counts) == 1}


def ranked_rows(
    stage: Stage,
    sent: Sent,
    gold: Gold,
    shas: Mapping[str, str],
    tokens: Mapping[str, int] | None = None,
) -> list[dict[str, Any]]:
    """One row per candidate of a ranked list: its place there, and what became of it.

    *tokens* are those of other lists, by chunk id, for candidates that this one does not count.
    running_tokens adds the candidate's own tokens to those of the sent ones above it: what the
    budget would have had to hold. gap is positive where the rank above is better. is_other_source:
    it states the claim, and the label, which has ids, does not name it.
    """
    rows = candidates_of(stage, shas)
    sign = -1.0 if stage["higher_is_better"] is False else 1.0
    taken: int | None = 0
    above: float | None = None
    for row in rows:
        taken_row = sent.rows.get(key_of(row)) if key_of(row) else None
        row.update(_fate(row, taken_row, sent))
        if taken_row is not None and taken_row["tokens"] is not None:
            row["tokens"] = taken_row["tokens"]
        if row["tokens"] is None and tokens is not None:
            row["tokens"] = tokens.get(row["chunk_id"] or "")
        score = row["score"]
        row["gap"] = None if above is None or score is None else round(sign * (above - score), 9)
        above = score
        known = taken is not None and row["tokens"] is not None
        row["running_tokens"] = taken + row["tokens"] if known else None
        if row["sent"] is not False:
            taken = row["running_tokens"] if row["sent"] else None
        row["states_claim"] = gold.states(row["chunk_sha"])
        row["is_text_unknown"] = gold.has_claims and row["states_claim"] is None
        row["is_gold_id"] = gold.names(row["chunk_id"], row["doc_id"], row["chunk_sha"])
        row["is_other_source"] = (
            gold.has_ids and bool(row["states_claim"]) and not row["is_gold_id"]
        )
        row["star"] = bool(row["states_claim"]) or row["is_gold_id"]
    return rows


def _fate(
    row: Mapping[str, Any], taken_row: Mapping[str, Any] | None, sent: Sent
) -> dict[str, Any]:
    """Sent (true, false, or null where that was not recorded), trimmed, and why not."""
    if taken_row is not None:
        kept, chars = taken_row["kept_chars"], taken_row["chars"] or row["chars"]
        trimmed = kept is not None and (chars is None or kept < chars)
        return {
            "sent": True,
            "position": taken_row["position"],
            "trimmed": trimmed,
            "kept_chars": kept,
            "chars": chars,
            "drop_reason": None,
            "inferred": None,
        }
    reason, inferred = sent.drops.get(row["chunk_id"] or "", (None, None))
    return {
        "sent": False if sent.is_whole or reason is not None else None,
        "position": None,
        "trimmed": None,
        "drop_reason": reason,
        "inferred": inferred,
    }


def gold_journeys(
    stages: Sequence[Stage], gold: Gold, shas: Mapping[str, str], prompt_span_id: str
) -> list[dict[str, Any]]:
    """One row per gold chunk and stage run that had or dropped it, in the order of the stages."""
    listed = [stage for stage in stages if stage["stage"] not in ("generate", "ingest")]
    seen = {
        stage["span_id"]: [row for row in candidates_of(stage, shas) if _is_gold(row, gold)]
        for stage in listed
    }
    gold_ids = gold.chunk_ids.union(*({key_of(row) for row in rows} for rows in seen.values()))
    found = []
    for stage in listed:
        place = {
            "stage": stage["stage"],
            "stage_name": stage["stage_name"],
            "is_prompt": stage["span_id"] == prompt_span_id,
        }
        rows = seen[stage["span_id"]]
        kept = {key_of(row) for row in rows}
        found += [
            {"chunk_id": key_of(row), **place, "rank": row["rank"], "score": row["score"]}
            for row in rows
        ]
        for chunk_id, (reason, inferred) in drops_of([stage]).items():
            if chunk_id in gold_ids - kept:
                dropped = {"rank": None, "score": None, "drop_reason": reason, "inferred": inferred}
                found.append({"chunk_id": chunk_id, **place, **dropped})
    return found


def _is_gold(row: Mapping[str, Any], gold: Gold) -> bool:
    return gold.names(row["chunk_id"], row["doc_id"]) or bool(gold.states(row["chunk_sha"]))
