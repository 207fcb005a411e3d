"""Find: `ragotel find`, from a vague complaint to the request.

Pipeline: rag_requests -> triage.find -> [cli]
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ragotel.cli.answering import print_sql
from ragotel.cli.options import Whole, common_options, ready_store, sql_option
from ragotel.cli.output import Column, print_json, print_rows, say
from ragotel.cli.verdicts import slice_of
from ragotel.errors import InputError

if TYPE_CHECKING:
    from ragotel.triage.find import Found, Search

_COLUMNS = (
    Column("started_at", "time (UTC)"),
    Column("user_id", "user"),
    Column("request_id", "request"),
    Column("bucket", "verdict"),
    Column("complaint", "!", colour="red"),
    Column("question", is_text=True),
    Column("answer", is_text=True),
)
_ANSWER_CHARS = 200


@click.command("find", short_help="Find requests for a vague complaint.")
@click.option("--user", metavar="ID", help="Who asked.")
@click.option("--session", metavar="ID", help="The conversation.")
@click.option("--tenant", metavar="NAME", help="Customer or workspace.")
@click.option("--service", metavar="NAME", help="Service that answered.")
@click.option("--request", metavar="ID", help="A request or trace id, or the beginning of one.")
@click.option("--around", metavar="TIME", help="Rough day or time: nearer requests come first.")
@click.option("--within", metavar="SPAN", help="Only so far from --around: 1d, 12h.")
@click.option("--text", metavar="WORDS", help="Words of question or answer, any order.")
@click.option("--since", metavar="TIME", help="From this time or day on.")
@click.option("--until", metavar="TIME", help="Before this time, or up to the end of this day.")
@click.option("--limit", type=Whole(1, 10_000), default=20, show_default=True, metavar="N")
@sql_option
@common_options
def find(
    user: str | None,
    session: str | None,
    tenant: str | None,
    service: str | None,
    request: str | None,
    around: str | None,
    within: str | None,
    text: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    show_sql: bool,
    dsn: str | None,
    as_json: bool,
) -> int:
    """Find requests from what is known: who, roughly when, some words.

    The index version that served each is shown where they differ; --json always has it.

    \b
    ragotel find --user ana --around 2026-11-19 --text "return hardware"

    All words must stand in question or answer, as whole words; if no request has them so, parts of
    words count, then any of the words. Requests of any age are found. TIME is UTC: 2026-11-19,
    "2026-11-19 14:30", 11d (ago), yesterday.

    With --around and --text the day and the words are weighed: the share of the words that a
    request has (a word within a longer one counts 0.9) less 0.2 if it is over 12 hours from that
    day, 0.5 if over 3 days, 1 if over 14. So near words on that day come before exact words weeks
    away; --within leaves other days out.
    """
    from ragotel.triage.find import Search, find_question, find_requests
    from ragotel.triage.times import parse_moment

    bounds = slice_of(since, until, None, None, None)
    search = Search(
        text=text or "",
        user=user,
        session=session,
        tenant=tenant,
        service=service,
        request=request,
        since=bounds.since,
        until=bounds.until,
        around=None if around is None else parse_moment(around),
        limit=limit,
    )
    if text is not None and not search.words:
        raise InputError(f"--text {text!r} holds no word: letters or digits are wanted.")
    search = _checked(search, within)
    if show_sql:
        print_sql(find_question(search), as_json=as_json)
        return 0
    with ready_store(dsn) as store:
        found = find_requests(store, search)
    if len(search.all_words) > len(search.words):
        say(
            f"--text has {len(search.all_words):,} words; the first {len(search.words)} count.",
            err=True,
        )
    if as_json:
        print_json(found.rows)
    else:
        _print(found)
    return 0 if found.rows else 1


def _checked(search: Search, within: str | None) -> Search:
    """*search* with --within as its bounds in time."""
    from ragotel.triage.times import Moment, parse_span, widened

    if search.request is not None and not search.request.strip():
        raise InputError("--request is empty: give the beginning of a request or trace id.")
    if within is None:
        return search
    if search.around is None:
        raise click.UsageError("--within needs --around")
    reach = widened(search.around, parse_span(within))
    bounds = Moment(reach.start, reach.end)
    return replace(search, since=search.since or bounds, until=search.until or bounds)


def _print(found: Found) -> None:
    if not found.rows:
        say("No request is like that.", err=True)
        return
    if found.reading == "part":
        say("No request has all of these as whole words; these have them as parts.", err=True)
    elif found.reading == "any":
        say(
            f"No request has all of the words ({', '.join(found.words)}); "
            "those with most of them come first.",
            err=True,
        )
    wanted = len(found.words)
    rows = [
        {
            **row,
            "words": f"{row['words_matched']} of {wanted}",
            "request_id": row["request_id"] or row["trace_id"],
            "answer": row["answer"][:_ANSWER_CHARS],
            "complaint": "!" if row["complaints"] else "",
        }
        for row in found.rows
    ]
    served = {tuple(row["index_versions"]) for row in rows}
    columns = list(_COLUMNS)
    if len(served) > 1:
        columns.insert(4, Column("index_versions", "index"))
    if found.reading in ("any", "near") and any(row["words_matched"] < wanted for row in rows):
        columns.insert(1, Column("words"))
    print_rows(rows, columns)


def register(group: click.Group) -> None:
    """Add `find` to *group*."""
    group.add_command(find)
