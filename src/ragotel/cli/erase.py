"""Erase: `ragotel erase --user ID | --request ID`, from every table, shown and verified.

Pipeline: person -> triage.erase -> every table; [cli]
"""

from __future__ import annotations

import click

from ragotel.cli.options import common_options, ready_store
from ragotel.cli.output import Column, print_json, print_rows, say

_TABLES = (
    Column("table_name", "table"),
    Column("found", is_number=True),
    Column("left", is_number=True),
)


@click.command("erase", short_help="Delete one user or one request from every table.")
@click.option("--user", "user_id", metavar="ID", help="All requests of this user.")
@click.option("--request", "request_ref", metavar="ID", help="One request, by its id.")
@click.option(
    "--chunks",
    "with_chunks",
    is_flag=True,
    help="Also the passages that no other request and no manifest names.",
)
@click.option("--dry-run", "is_dry", is_flag=True, help="Count what would go; delete nothing.")
@click.option(
    "--wait",
    "is_waiting",
    is_flag=True,
    help="Also wait until the files that held the rows are deleted: about a minute.",
)
@common_options
def erase(
    user_id: str | None,
    request_ref: str | None,
    with_chunks: bool,
    is_dry: bool,
    is_waiting: bool,
    dsn: str | None,
    as_json: bool,
) -> int:
    """Delete a user's requests, or one, with all that was recorded and said about them.

    It waits until every table is rewritten without the rows and counts again; exit 1 if any is
    left. The engine deletes the files from before some ten minutes later, or at once with --wait. A
    user's complaints go too, also those about other requests.
    """
    from ragotel.triage.erase import erase as erase_rows
    from ragotel.triage.erase import keys_of_user, wait_for_files
    from ragotel.triage.references import resolve_request

    if bool(user_id) == bool(request_ref):
        raise click.UsageError("Name either --user or --request.")
    with ready_store(dsn) as store:
        if request_ref:
            keys = [resolve_request(store, request_ref)]
        else:
            keys = keys_of_user(store, user_id or "")
        done = erase_rows(
            store, keys, user_id=user_id or None, with_chunks=with_chunks, is_dry=is_dry
        )
        files = None
        if is_waiting and not is_dry:
            files = wait_for_files(store, [table.table_name for table in done.tables])
    tables = [table._asdict() for table in done.tables]
    if as_json:
        print_json(
            {
                "requests": done.requests,
                "traces": done.traces,
                "is_dry_run": is_dry,
                "left": done.left,
                "files_left": files,
                "tables": tables,
            }
        )
    else:
        if user_id and not done.requests:
            say(f"No request of the user {user_id!r} is recorded.", err=True)
        print_rows(tables, _TABLES[:2] if is_dry else _TABLES)
        say("")
        say(_summary(done.requests, done.traces, done.left, is_dry, files))
    return 1 if (done.left or files) and not is_dry else 0


def _summary(requests: int, traces: int, left: int, is_dry: bool, files: int | None) -> str:
    of = f"{requests} {'request' if requests == 1 else 'requests'} in {traces} "
    of += "trace" if traces == 1 else "traces"
    if is_dry:
        return f"{of} would be erased; nothing was deleted."
    summary = f"{of} erased, {left} rows left"
    return f"{summary}." if files is None else f"{summary}, {files} files that held them."


def register(group: click.Group) -> None:
    """Add `erase` to *group*."""
    group.add_command(erase)
