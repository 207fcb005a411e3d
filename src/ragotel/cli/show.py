"""Show: `ragotel show`, the two lists side by side, then the verdict and why.

Pipeline: triage.show -> [cli]
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ragotel.cli.dump import dump_lines
from ragotel.cli.options import common_options, ready_store
from ragotel.cli.output import clock, flat, one_line, paint, print_json, prose, say, say_block
from ragotel.cli.whiteboard import (
    gold_lines,
    list_lines,
    list_title,
    neighbour_lines,
    other_lines,
)

if TYPE_CHECKING:
    from ragotel.triage.show import Picture

_INDENT = 13
_COMMAND = ": ragotel "
"""Between what a fix is for and the command that does it."""


@click.command("show", short_help="Show one request: what was ranked, what was sent, the verdict.")
@click.argument("request_ref", metavar="REQUEST")
@click.option("--span", default="", metavar="TEXT", help="Star what states this, not the label's.")
@click.option("--label", "label_id", metavar="ID", help="Only the verdict by this label.")
@click.option("--dump", is_flag=True, help="Also the texts, found and sent, and the prompt.")
@common_options
def show(
    request_ref: str,
    span: str,
    label_id: str | None,
    dump: bool,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Show REQUEST (a request or trace id, or at least 6 characters of one).

    \b
    *  the candidate's own text states the claim, or it is a labelled chunk
    ~  its text states the claim, but the label, which has ids, does not name it
    ?  its text is not known, so that cannot be told
    SENT, trimmed (characters kept), blank (not sent), ? (not recorded)
    running: the tokens of what was sent above it, and its own, against the budget
    """
    from ragotel.triage.show import show_request

    with ready_store(dsn) as store:
        picture = show_request(store, request_ref, span=span, label_id=label_id, with_texts=dump)
    if as_json:
        print_json(dataclasses.asdict(picture))
        return
    for line in picture_lines(picture):
        say_block(line)
    for line in dump_lines(picture) if dump else ():
        say(line)


def picture_lines(picture: Picture) -> list[str]:
    """Every line that `show` prints; ids stand in full and are never broken."""
    lines = [*_head(picture), ""]
    for entry in picture.lists:
        lines += [flat(list_title(entry, picture.prompt)), *list_lines(entry["candidates"]), ""]
    if not picture.lists:
        lines += ["No ranked list was recorded.", ""]
    for part in (
        other_lines(picture.lists),
        gold_lines(picture.gold),
        neighbour_lines(picture.neighbours, picture.passages),
    ):
        lines += [*map(flat, part), ""] if part else []
    lines += _claim(picture)
    return [*lines, *_verdicts(picture), *_said(picture)]


def _head(picture: Picture) -> list[str]:
    request = picture.request
    ids = [f"request {request['request_id']}" if request["request_id"] else ""]
    ids.append(f"trace {request['trace_id']}")
    if not request["is_recorded"]:
        return [
            paint("The request's own span never arrived; its stages did.", bold=True),
            _field("ids", _joined(ids)),
            _field("versions", _versions(picture)),
            *_pins(picture),
        ]
    names = (("user", "user_id"), ("session", "session_id"), ("tenant", "tenant"))
    who = [f"{title} {one_line(request[name])}" for title, name in names if request[name]]
    when = f"{clock(request['started_at'])} UTC"
    run = [f"run {request['run_id']}" if request["run_id"] else ""]
    run.append(f"arm {request['arm']}" if request["arm"] else "")
    took = f"{request['duration_ms']:,.0f} ms"
    return [
        paint(one_line(request["query"]) or "(the question was not recorded)", bold=True),
        _field("answer", one_line(request["answer"]) or "(not recorded)"),
        _field("asked", _joined([when, *who, took, request["outcome"]])),
        _field("service", _joined([request["service_name"], *run])),
        _field("versions", _versions(picture)),
        *_pins(picture),
        _field("ids", _joined(ids)),
    ]


def _pins(picture: Picture) -> list[str]:
    """Whether the version that served is still the newest, and what became of the gold since."""
    lines = []
    for pin in picture.pins:
        served = f"{pin['index_name']} {pin['index_version'] or '(version not recorded)'}"
        if pin["newest_version"] is None:
            continue
        newest = f"{pin['newest_version']} ({clock(pin['newest_at'])})"
        if pin["is_newest"]:
            lines.append(_field("index", f"{served} is still the newest known version"))
            continue
        known = "served" if pin["is_newest"] is False else "served, and has no manifest"
        lines.append(_field("index", f"{served} {known}; the newest known version is {newest}"))
        lines += [
            _field(
                "", f"since {change['version']}: {one_line(change['chunk_id'])} {change['change']}"
            )
            for change in pin["changes"]
        ]
    return lines


def _versions(picture: Picture) -> str:
    versions, prompt = picture.versions, picture.prompt or {}
    parts = [
        f"index {entry['name'] or '?'} {entry['version'] or '(version not recorded)'}"
        for entry in versions["indexes"]
    ]
    if prompt.get("template_name") or prompt.get("template_version"):
        parts.append(f"template {prompt['template_name']} {prompt['template_version']}".strip())
    parts.append(f"model {versions['model']}" if versions["model"] else "")
    parts.append(f"k {versions['top_k']}" if versions["top_k"] is not None else "")
    return _joined(parts)


def _claim(picture: Picture) -> list[str]:
    """Whether the prompt states the claim, in words."""
    if not picture.claims:
        return []
    stands = None if picture.prompt is None else picture.prompt["claim_stands"]
    where = "the prompt was not recorded whole: whether it stands there is not known"
    if stands is not None:
        where = "stands in the prompt" if stands else "does not stand in the prompt"
    claims = " | ".join(f'"{one_line(claim)}"' for claim in picture.claims)
    return [_field("claim", f"{claims}: {where}")]


def _verdicts(picture: Picture) -> list[str]:
    if not picture.verdicts:
        return [_field("verdict", "none, as no label meets this request."), *_how_to_label(picture)]
    lines = []
    for verdict in picture.verdicts:
        lines += _verdict(verdict)
        lines += _stated(
            [row for row in picture.statements if row["label_id"] == verdict["label_id"]]
        )
        passages = [row for row in picture.passages if row["label_id"] == verdict["label_id"]]
        if len(passages) > 1:
            lines += [_passage(row) for row in passages]
    return lines


def _verdict(verdict: Mapping[str, Any]) -> list[str]:
    bucket = paint(verdict["bucket"], bold=True, fg=_colour(verdict["bucket"]))
    parts = [bucket, f"state {verdict['state']}" if verdict["state"] else ""]
    parts.append(f"attribution {verdict['attribution']}")
    reason = f" ({verdict['drop_reason']})" if verdict["drop_reason"] else ""
    parts.append(f"lost at {verdict['loss_stage']}{reason}")
    parts.append(f"recall_class {verdict['recall_class']}" if verdict["recall_class"] else "")
    parts.append(f"deep rank {verdict['deep_rank']}" if verdict["deep_rank"] else "")
    lines = [
        _field("verdict", _joined(parts)),
        _field("why", one_line(verdict["why"])),
        _field("label", f"{verdict['label_id']} (met by {verdict['matched_by']})"),
    ]
    if verdict["missing"]:
        lines.append(_field("missing", ", ".join(verdict["missing"])))
    for chunk_id in verdict["competing_chunk_ids"]:
        lines.append(_field("competing", chunk_id))
    return [*lines, *fix_lines(verdict)]


def _stated(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """How many sent passages stand for the claim, and how many for what the answer said."""
    if not rows:
        return []
    right = sum(bool(row["states_right"]) for row in rows)
    wrong = [row for row in rows if row["states_wrong"] and not row["is_gold"]]
    values = sorted({value for row in wrong for value in row["answer_values"]})
    said = f" ({one_line(', '.join(values))})" if values else ""
    unread = sum(not row["is_read"] for row in rows)
    parts = [f"the claim in {right} sent", f"what the answer said{said} in {len(wrong)}"]
    parts.append(f"{unread} could not be read" if unread else "")
    lines = [_field("stated", _joined(parts))]
    old = [row["chunk_id"] for row in rows if row["is_superseded"]]
    return lines + [_field("superseded", one_line(chunk_id)) for chunk_id in old]


def fix_lines(verdict: Mapping[str, Any]) -> list[str]:
    """Who owns the verdict, which fixes work on it and which cannot."""
    lines = [_field("owner", verdict["owner"])] if verdict["owner"] else []
    if works := verdict["fixes_that_work"]:
        told = [entry.partition(_COMMAND) for entry in works]
        lines.append(_field(" works", "; ".join(reason for reason, _, _ in told)))
        # A command is to be copied, so it stands on a line of its own.
        lines += [
            "   run".ljust(_INDENT) + flat(f"ragotel {command}")
            for _, _, command in told
            if command
        ]
    if cannot := verdict["fixes_that_cannot"]:
        lines.append(_field(" cannot", "; ".join(cannot)))
    return lines


def _passage(row: Mapping[str, Any]) -> str:
    ids = ", ".join(row["gold_chunk_ids"])
    return _field(f"passage {row['passage']}", _joined([row["bucket"], row["loss_stage"], ids]))


def _how_to_label(picture: Picture) -> list[str]:
    request = picture.request
    reference = request["request_id"] or request["trace_id"]
    question = one_line(request.get("query", "")) or "..."
    return [
        _field("", "To get one, say which text states the fact:"),
        _field("", f'ragotel labels resolve --claim "..."   (then show {reference} --span "...")'),
        _field("", f'ragotel labels add --question {shlex.quote(question)} --span "..."'),
    ]


def _said(picture: Picture) -> list[str]:
    lines = []
    for row in picture.grades:
        by = f" by {row['graded_by']}" if row["graded_by"] else ""
        note = f": {one_line(row['note'])}" if row["note"] else ""
        lines.append(
            _field(
                "grade", f"{row['grade']} ({row['source']}{by}, {clock(row['graded_at'])}){note}"
            )
        )
    for row in picture.complaints:
        by = f" by {row['reported_by']}" if row["reported_by"] else ""
        grade = f" [{row['grade']}]" if row["grade"] else ""
        moment = clock(row["complained_at"])
        lines.append(_field("complaint", f"{one_line(row['text'])}{grade} ({moment}{by})"))
    return lines


def _colour(bucket: str) -> str:
    return {"passed": "green", "unknown": "yellow", "ungraded": "yellow"}.get(bucket, "red")


def _field(title: str, text: str) -> str:
    return f"  {title}".ljust(_INDENT) + prose(flat(text), _INDENT)


def _joined(parts: Sequence[str]) -> str:
    return " · ".join(part for part in parts if part)


def register(group: click.Group) -> None:
    """Add `show` to *group*."""
    group.add_command(show)
