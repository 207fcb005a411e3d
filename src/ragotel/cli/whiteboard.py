"""Whiteboard: the ranked list and the sent list as one table, as an engineer draws them.

Pipeline: triage.show -> [cli]. Pure: rows in, lines out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ragotel.cli.output import Column, one_line, paint, table_lines

_FEWEST_DECIMALS = 3
_MOST_DECIMALS = 6
_REPORTED_AT = {
    "corpus_gap": "ingest",
    "retrieval_miss": "retrieval",
    "context_problem": "prompt assembly",
    "generation_error": "generation",
}
"""Where a claim that the chunker cut in two is said to be lost, by the bucket of its passage."""


def list_title(entry: Mapping[str, Any], prompt: Mapping[str, Any] | None) -> str:
    """The line above a list: which stage ranked it, how many, what the budget was."""
    name = entry["stage_name"]
    stage = entry["stage"] if name in ("", entry["stage"]) else f"{entry['stage']} {name}"
    parts = [f"{stage}: {_count(entry)}"]
    parts.append(f"scores are {entry['score_kind']}" if entry["score_kind"] else "")
    if prompt is not None:
        parts.append(_budget(prompt, entry["candidates"]))
    return paint(" · ".join(part for part in parts if part), bold=True)


def _count(entry: Mapping[str, Any]) -> str:
    count, evidence = entry["candidate_count"], entry["evidence"]
    if evidence == "empty":
        return "nothing was found"
    if evidence in ("whole",):
        return f"{count} ranked"
    total = "" if count is None else f" of {count}"
    return f"{len(entry['candidates'])}{total} readable ({evidence})"


def _budget(prompt: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """What was sent of the budget, and what the first passage that was not sent needs."""
    refused = next((row for row in rows if row["sent"] is False), None)
    needed = (
        "" if refused is None else "?" if refused["tokens"] is None else f"{refused['tokens']:,}"
    )
    sent, tokens, budget = prompt["sent_count"], prompt["passage_tokens"], prompt["budget_tokens"]
    parts = ["" if sent is None else f"{sent} sent"]
    if tokens is not None and budget is not None:
        parts.append(f"{tokens:,} of {budget:,} budget tokens, {budget - tokens:,} left")
        parts.append(f"the next needs {needed}" if needed else "")
    elif budget is not None:
        parts.append(f"budget {budget:,} tokens")
    return " · ".join(part for part in parts if part)


def list_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line per candidate; columns that say nothing for any of them are left out."""
    decimals = score_decimals([row["score"] for row in rows])
    in_order = _is_in_rank_order(rows)
    shown = [
        {
            "star": _star(row),
            "rank": row["rank"],
            "score": _number(row["score"], decimals),
            "gap": _number(row["gap"], decimals),
            "sent": _sent(row),
            "position": row["position"],
            "tokens": _whole(row["tokens"]),
            "running": _whole(row["running_tokens"]),
            "dropped": _dropped(row),
            "leg": row["leg"],
            "chunk": chunk_name(row),
            "superseded": "superseded" if row["superseded"] else "",
        }
        for row in rows
    ]
    numbers = {"rank", "score", "gap", "position", "tokens", "running"}
    kept = ("star", "rank", "score", "gap", "sent")
    keys = ("star", "rank", "score", "gap", "sent", "position", "tokens", "running", "dropped")
    columns = [
        Column(key, "" if key == "star" else key, is_number=key in numbers)
        for key in (*keys, "leg", "superseded", "chunk")
        if key in (*kept, "chunk")
        or (
            any(row[key] not in ("", None) for row in shown) and (key != "position" or not in_order)
        )
    ]
    return table_lines(shown, [_titled(column) for column in columns], width=None)


def _titled(column: Column) -> Column:
    return Column(column.key, " ", colour="green") if column.key == "star" else column


def _is_in_rank_order(rows: Sequence[Mapping[str, Any]]) -> bool:
    positions = [row["position"] for row in rows if row["position"] is not None]
    return positions == sorted(positions)


def _star(row: Mapping[str, Any]) -> str:
    if row.get("is_other_source"):
        return "~"
    if row["star"]:
        return "*"
    return "?" if row["is_text_unknown"] else ""


def chunk_name(row: Mapping[str, Any]) -> str:
    """The chunk's id in full; of one that has none, its text's hash."""
    return one_line(row["chunk_id"] or row["chunk_sha"] or "(no id)")


def _sent(row: Mapping[str, Any]) -> str:
    if row["sent"] is None:
        return "?"
    if not row["sent"]:
        return ""
    if row["trimmed"]:
        whole = f"/{row['chars']}" if row["chars"] else ""
        return f"trimmed {row['kept_chars']}{whole}"
    return "SENT"


def _dropped(row: Mapping[str, Any]) -> str:
    if not row["drop_reason"]:
        return ""
    return f"{row['drop_reason']} (inferred)" if row["inferred"] else str(row["drop_reason"])


def score_decimals(scores: Sequence[float | None]) -> int:
    """As many decimals (3 to 6) as keep different neighbours different."""
    known = [score for score in scores if score is not None]
    for decimals in range(_FEWEST_DECIMALS, _MOST_DECIMALS):
        if all(
            first == second or round(first, decimals) != round(second, decimals)
            for first, second in pairwise(known)
        ):
            return decimals
    return _MOST_DECIMALS


def _number(value: float | None, decimals: int) -> str:
    return "" if value is None else f"{value:.{decimals}f}"


def _whole(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def gold_lines(journeys: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line per gold chunk: its rank at every stage that had it, and where it was dropped."""
    by_chunk: dict[str, list[str]] = {}
    for step in journeys:
        by_chunk.setdefault(step["chunk_id"], []).append(_step(step))
    if not by_chunk:
        return []
    head = paint("gold, stage by stage", bold=True)
    return [head, *(f"* {one_line(name)}: {', '.join(steps)}" for name, steps in by_chunk.items())]


def _step(step: Mapping[str, Any]) -> str:
    name = step["stage_name"] or step["stage"]
    place = "prompt" if step["is_prompt"] else name
    if step["rank"] is None:
        inferred = ", inferred" if step.get("inferred") else ""
        return f"dropped by {name} ({step['drop_reason']}{inferred})"
    score = "" if step["score"] is None or step["is_prompt"] else f" ({step['score']:.6g})"
    return f"{place} {step['rank']}{score}"


def other_lines(lists: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which candidates state the claim without being labelled: two readings, for a person."""
    names: dict[str, bool] = {}
    for entry in lists:
        for row in entry["candidates"]:
            if row["is_other_source"]:
                name = chunk_name(row)
                names[name] = names.get(name, False) or bool(row["sent"])
    if not names:
        return []
    head = paint("~ states the claim, but no label names it", bold=True)
    note = "  It answers too (add it to the label), or unrelated words match: read it."
    return [
        head,
        *(f"~ {name}{' (sent)' if sent else ''}" for name, sent in names.items()),
        note,
    ]


def neighbour_lines(
    neighbours: Sequence[Mapping[str, Any]], passages: Sequence[Mapping[str, Any]]
) -> list[str]:
    """The gold chunk of a miss between those before and after it, and a claim cut between two.

    *passages* are rows of triage_passages: they say where the fault was reported.
    """
    buckets = {(row["label_id"], row["passage"]): row["bucket"] for row in passages}
    lines: list[str] = []
    for entry in neighbours:
        served = f"{entry['index_name']} {entry['index_version']}"
        order = {"chunk_id": "in the order of their ids", "manifest": "as the manifest lists them"}
        how = order.get(entry["order_by"] or "", "no order of its chunks is known: no neighbours")
        title = f"gold in index {served}, document {one_line(entry['doc_id']) or '?'}, {how}"
        lines.append(paint(title, bold=True))
        if not entry["chunks"]:
            lines.append("  No chunk of it is labelled or states the claim.")
        for chunk in entry["chunks"]:
            mark = "*" if chunk["place"] == "gold" else " "
            text = one_line(chunk["text"]) or "(text not known)"
            lines.append(f"{mark} {chunk['place']:<8}  {one_line(chunk['chunk_id'])}: {text}")
        split = entry["split"]
        if split:
            place = _REPORTED_AT.get(buckets.get((entry["label_id"], entry["passage"]), ""), "")
            reported = f", reported at {place}" if place else ""
            ids = f"{one_line(split['first_chunk_id'])} and {one_line(split['second_chunk_id'])}"
            lines.append(
                f'! "{one_line(split["claim"])}" stands in no chunk, only across {ids}: '
                f"a fault of the chunker{reported}."
            )
    return lines
