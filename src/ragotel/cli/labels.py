"""Labels: `ragotel labels load|add|attach|resolve|list|decide|doubts`.

Pipeline: person | file -> triage.labels -> store; [cli]
"""

from __future__ import annotations

from typing import Any

import click

from ragotel.cli.answering import answer
from ragotel.cli.options import Whole, common_options, ready_store, sql_option
from ragotel.cli.output import Column, print_json, print_rows, say
from ragotel.cli.progress import counting, print_report
from ragotel.cli.resolving import resolve
from ragotel.errors import InputError
from ragotel.triage.decisions import DEFECTS


@click.group("labels", short_help="Load, add, attach, resolve and list labels.")
def labels() -> None:
    """Labels: questions with the passages that hold their answers.

    A label added today also judges the requests of eleven days ago.
    """


@labels.command("load", short_help="Load labels (JSON lines).")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@common_options
def load(files: tuple[str, ...], dsn: str | None, as_json: bool) -> int:
    """Load FILEs of labels; a label replaces the older one of the same id wholly.

    Long form: {"label_id", "set", "split", "population", "principal", "question",
    "expected_answer", "answerable", "passages": [{"chunk_ids", "doc_ids", "spans", "text"}],
    "lures": {"chunk_ids", "spans"}}. Short form: {"question", "gold_chunk_ids", "gold_spans",
    "gold_text"}.
    """
    from ragotel.triage.labels import load_labels

    with ready_store(dsn) as store, counting("lines") as progress:
        report = load_labels(store, files, progress)
    return print_report(report, "labels", as_json=as_json)


@labels.command("add", short_help="Add one label.")
@click.option("--question", required=True, help="As users ask it.")
@click.option("--chunk", "chunk_ids", multiple=True, metavar="ID", help="A chunk that has it; any.")
@click.option("--doc", "doc_ids", multiple=True, metavar="ID", help="A document that has it; any.")
@click.option("--span", "spans", multiple=True, metavar="TEXT", help="The claim; any wording.")
@click.option("--text", default="", help="The gold passage's own text.")
@click.option("--answer", "expected_answer", default="", help="The right answer.")
@click.option("--id", "label_id", default="", metavar="ID", help="Default: made from the question.")
@click.option("--set", "label_set", default="default", show_default=True, metavar="NAME")
@click.option("--unanswerable", is_flag=True, help="The corpus holds no answer: abstain.")
@common_options
def add(
    question: str,
    chunk_ids: tuple[str, ...],
    doc_ids: tuple[str, ...],
    spans: tuple[str, ...],
    text: str,
    expected_answer: str,
    label_id: str,
    label_set: str,
    unanswerable: bool,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Add one label with one gold passage; it replaces the label of the same id.

    \b
    ragotel labels add --question "how long to return a hardware unit?" --span "21 calendar days"
    """
    from ragotel.triage.fields import FieldError
    from ragotel.triage.labels import parse_label, write_labels

    record = {
        "label_id": label_id or None,
        "set": label_set,
        "question": question,
        "expected_answer": expected_answer,
        "answerable": not unanswerable,
        "passages": [
            {"chunk_ids": [*chunk_ids], "doc_ids": [*doc_ids], "spans": [*spans], "text": text}
        ],
    }
    try:
        label = parse_label(record)
    except FieldError as error:
        raise InputError(f"The label cannot be used: {error}.") from error
    if not label.passages and not unanswerable:
        raise click.UsageError("give --chunk, --doc, --span or --text, or --unanswerable")
    with ready_store(dsn) as store:
        write_labels(store, [label])
    if as_json:
        print_json({"label_id": label.label_id, "set": label.label_set})
        return
    say(f"Label {label.label_id} is in the set {label.label_set}.")


@labels.command("attach", short_help="Judge a request by a label.")
@click.argument("request_ref", metavar="REQUEST")
@click.argument("label_id", metavar="LABEL")
@click.option("--by", "attached_by", default="", metavar="NAME", help="Who says so.")
@common_options
def attach(
    request_ref: str, label_id: str, attached_by: str, dsn: str | None, as_json: bool
) -> None:
    """Judge REQUEST by LABEL, however its question was worded."""
    from ragotel.triage.complaints import attach_label
    from ragotel.triage.labels import check_label
    from ragotel.triage.references import resolve_request

    with ready_store(dsn) as store:
        key = resolve_request(store, request_ref)
        check_label(store, label_id)
        attach_label(store, key, label_id, attached_by=attached_by)
    if as_json:
        print_json({**key._asdict(), "label_id": label_id})
        return
    say(f"{key.request_id or key.trace_id} is judged by {label_id}.")


@labels.command("list", short_help="List labels.")
@click.option("--set", "label_set", metavar="NAME", help="Only this set.")
@click.option("--limit", type=Whole(1, 1_000_000), default=100, show_default=True, metavar="N")
@sql_option
@common_options
def list_labels(
    label_set: str | None, limit: int, show_sql: bool, dsn: str | None, as_json: bool
) -> int:
    """List labels as they were loaded last."""
    from ragotel.triage.labels import labels_question

    question = labels_question(label_set=label_set, limit=limit)
    columns = (
        Column("label_id", "label"),
        Column("label_set", "set"),
        Column("passage_count", "passages", is_number=True),
        Column("answerable"),
        Column("question", is_text=True),
        Column("spans", "claim", is_text=True),
        Column("chunk_ids", "gold chunks"),
    )
    return answer(
        question,
        lambda rows: print_rows(rows, columns),
        nothing="There is no label; `ragotel labels add --help` shows how to add one.",
        show_sql=show_sql,
        dsn=dsn,
        as_json=as_json,
    )


@labels.command("decide", short_help="Say whether a miss is the label's fault.")
@click.argument("label_id", metavar="LABEL")
@click.argument("request_ref", metavar="[REQUEST]", required=False)
@click.option(
    "--defect",
    type=click.Choice(DEFECTS),
    required=True,
    help="What is wrong with the label; none: it is right, and the search is at fault.",
)
@click.option("--by", "decided_by", default="", metavar="NAME", help="Who says so.")
@click.option("--note", default="", metavar="TEXT", help="Why.")
@common_options
def decide(
    label_id: str,
    request_ref: str | None,
    defect: str,
    decided_by: str,
    note: str,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Keep what a person found about LABEL, on REQUEST or (without it) on every request.

    `losses` then counts such misses apart; verdicts stay as they are. The newest decision counts.
    """
    from ragotel.triage.decisions import write_decision
    from ragotel.triage.references import resolve_request

    with ready_store(dsn) as store:
        key = None if request_ref is None else resolve_request(store, request_ref)
        write_decision(store, label_id, defect, key=key, note=note, decided_by=decided_by)
    if as_json:
        print_json({"label_id": label_id, "request": request_ref, "defect": defect})
    else:
        where = f"on request {request_ref}" if request_ref else "on every request"
        say(f"Label {label_id}: {defect}, {where}.")


@labels.command("doubts", short_help="List misses that may be the label's fault.")
@click.option("--set", "label_set", metavar="NAME", help="Only labels of this set.")
@click.option("--open", "is_open", is_flag=True, help="Only those that nobody decided.")
@click.option("--limit", type=Whole(1, 100_000), default=50, show_default=True)
@sql_option
@common_options
def doubts(
    label_set: str | None,
    is_open: bool,
    limit: int,
    show_sql: bool,
    dsn: str | None,
    as_json: bool,
) -> int:
    """List misses that may be the label's fault: a suspicion each, for a person to decide."""
    from ragotel.triage.decisions import doubts_question

    question = doubts_question(label_set=label_set, is_open=is_open, limit=limit)
    columns = (
        Column("suspicion"),
        Column("label_id", "label"),
        Column("request_id", "request"),
        Column("loss_stage", "lost at"),
        Column("via_other_chunk", "other chunk"),
        Column("decided_defect", "decided"),
        Column("question", is_text=True),
    )
    return answer(
        question,
        lambda rows: print_rows(_named(rows), columns),
        nothing="No miss looks like the label's fault.",
        show_sql=show_sql,
        dsn=dsn,
        as_json=as_json,
    )


def _named(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """*rows* whose request is called by its trace where it has no id of its own."""
    return [{**row, "request_id": row["request_id"] or row["trace_id"]} for row in rows]


def register(group: click.Group) -> None:
    """Add `labels` to *group*."""
    labels.add_command(resolve)
    group.add_command(labels)
