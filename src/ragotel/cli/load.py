"""Load: OTLP files into the store.

Pipeline: files -> [cli: load] -> store.load -> otel_traces
"""

from __future__ import annotations

import click

from ragotel.cli.options import common_options
from ragotel.cli.output import one_line, print_json, say
from ragotel.cli.progress import counting

_SHOWN_LINES = 20


@click.command("load", short_help="Load OTLP files into the store.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@common_options
def load(files: tuple[str, ...], dsn: str | None, as_json: bool) -> int:
    """Load OTLP traces from FILEs ('-' reads standard input).

    JSON lines, JSON documents, arrays of them, protobuf (one message, or many behind their
    lengths), plain or packed (gzip, zstd, lz4): the content tells, not the name. Old times are
    welcome; loading the same file twice changes no verdict. Exit code 1 if anything was rejected.
    """
    from ragotel.store import migrate, open_store, pending
    from ragotel.store.load import load_files

    with open_store(dsn) as store, counting("spans") as show:
        if pending(store):
            migrate(store)
        report = load_files(store, files, show)
    code = 1 if report.rejected_count else 0
    if as_json:
        print_json(report.as_dict())
        return code
    lines = [line for file in report.files for line in file.lines()]
    for line in lines[:_SHOWN_LINES]:
        say(one_line(line), err=True)
    if len(lines) > _SHOWN_LINES:
        say(f"... and {len(lines) - _SHOWN_LINES:,} more (--json names them all)", err=True)
    rejected = f", {report.rejected_count:,} rejected" if report.rejected_count else ""
    count = len(report.files)
    say(f"{report.span_count:,} spans loaded from {count} file{'s' * (count != 1)}{rejected}.")
    return code


def register(group: click.Group) -> None:
    """Add `load` to *group*."""
    group.add_command(load)
