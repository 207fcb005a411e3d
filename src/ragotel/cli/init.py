"""Init: brings a store to this package's schema, or prints that schema.

Pipeline: wire -> otel_traces -> typed tables -> views -> store -> triage -> [cli]
"""

from __future__ import annotations

import click

from ragotel.cli.options import common_options
from ragotel.cli.output import print_json


@click.command("init", short_help="Create the store's schema, or bring it up to date.")
@click.option(
    "--print",
    "print_only",
    is_flag=True,
    help="Print every statement in order, runnable as it stands; open no store.",
)
@common_options
def init(print_only: bool, dsn: str | None, as_json: bool) -> None:
    """Create the store's schema, or bring it up to date.

    Tables are numbered and made once; views hold no data and are re-applied every time. Running it
    twice, or two at once, is harmless.
    """
    if print_only:
        _print_schema(as_json)
        return
    from ragotel.store import catalog, migrate, open_store

    with open_store(dsn) as store:
        new = migrate(store)
        views = len(catalog.views())
        report = {
            "store": _name(store.dsn.path, store.dsn.host, store.dsn.port),
            "database": store.database,
            "engine_version": store.scalar("select version()"),
            "new": new,
            "views": views,
        }
    if as_json:
        print_json(report)
        return
    for name in new:
        click.echo(f"+ {name}")
    what = f"{len(new)} steps are new" if new else "no step was missing"
    click.echo(
        f"The schema in {report['store']}, database {report['database']}, is up to date: "
        f"{what}, {views} views re-applied (ClickHouse {report['engine_version']})."
    )


def _name(path: str, host: str, port: int) -> str:
    return path or f"{host}:{port}"


def _print_schema(as_json: bool) -> None:
    from ragotel.store import catalog, statements

    files = statements()
    if as_json:
        print_json([{"name": f.name, "layer": f.layer, "sql": f.text} for f in files])
        return
    click.echo("-- The whole schema of ragotel, in order: clickhouse client --database NAME < FILE")
    for file in files:
        click.echo(f"\n-- {file.layer}/{file.name}.sql\n{file.text.rstrip()};")
    taken = ", ".join(f"('{file.name}')" for file in catalog.tables())
    click.echo(
        f"\n-- so that `ragotel init` knows these steps\n"
        f"insert into rag_migrations (name) values {taken};"
    )


def register(group: click.Group) -> None:
    """Add `init` to *group*."""
    group.add_command(init)
