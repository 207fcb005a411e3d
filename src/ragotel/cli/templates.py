"""Templates: `ragotel templates list|diff`, the versions of a prompt template.

Pipeline: rag_template_versions, rag_prompts -> triage.templates -> [cli]
"""

from __future__ import annotations

import dataclasses

import click

from ragotel.cli.answering import answer
from ragotel.cli.options import common_options, ready_store, sql_option
from ragotel.cli.output import Column, paint, print_json, print_rows, say


@click.group("templates", short_help="List the versions of prompt templates; compare two.")
def templates() -> None:
    """Prompt templates: which versions answered when, and what was edited between two.

    A template that was edited shows as two versions, also where nobody gave it one: then the hash
    of its text is the version.
    """


@templates.command("list", short_help="List the versions of prompt templates.")
@click.argument("name", required=False)
@click.option("--service", metavar="NAME", help="Only this service.")
@sql_option
@common_options
def list_templates(
    name: str | None, service: str | None, show_sql: bool, dsn: str | None, as_json: bool
) -> int:
    """List the versions of the template NAME (or of all), oldest first."""
    from ragotel.triage.templates import templates_question

    question = templates_question(name, service)
    what = "with a template" if name is None else f"of the template {name!r}"
    by = "" if service is None else f" by the service {service!r}"
    columns = (
        Column("service_name", "service"),
        Column("name", "template"),
        Column("version"),
        Column("first_seen", "first seen (UTC)"),
        Column("last_seen", "last seen (UTC)"),
        Column("requests", is_number=True),
        Column("mean_prompt_tokens", "prompt tokens", is_number=True),
    )
    return answer(
        question,
        lambda rows: print_rows(rows, columns),
        nothing=f"No prompt {what} was recorded{by}; see `template=` on assemble.",
        show_sql=show_sql,
        dsn=dsn,
        as_json=as_json,
    )


@templates.command("diff", short_help="Show what differs between two versions.")
@click.argument("name")
@click.argument("old", metavar="V1")
@click.argument("new", metavar="V2")
@common_options
def diff(name: str, old: str, new: str, dsn: str | None, as_json: bool) -> None:
    """Show what differs between the versions V1 and V2 (or beginnings of them) of NAME.

    The template's text is not on the record, so one prompt of each version is taken, its question
    and the passages that were sent are cut out, and the rest is compared.
    """
    from ragotel.triage.templates import template_diff

    with ready_store(dsn) as store:
        found = template_diff(store, name, old, new)
    if as_json:
        print_json(dataclasses.asdict(found))
        return
    for skeleton in (found.old, found.new):
        request = skeleton.request_id or skeleton.trace_id
        cut = "cut out" if skeleton.is_cut else "NOT cut out, as they were not found in it whole"
        say(
            f"{skeleton.version}: from the prompt of request {request}, its question and "
            f"{skeleton.sent_count} passages {cut}",
            err=True,
        )
    for line in found.lines:
        colour = {"+": "green", "-": "red"}.get(line[:1], "")
        say(paint(line, fg=colour) if colour else line)
    if not found.lines:
        say("Nothing differs around question and passages.", err=True)


def register(group: click.Group) -> None:
    """Add `templates` to *group*."""
    group.add_command(templates)
