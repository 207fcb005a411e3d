"""Init: brings a store to this package's schema, or prints that schema.

Pipeline: wire -> otel_traces -> typed tables -> views -> store -> triage -> [cli]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ragotel.cli.options import common_options
from ragotel.cli.output import print_json, say_block
from ragotel.errors import ConfigurationError

if TYPE_CHECKING:
    from ragotel.store.catalog import SqlFile

_CLUSTER_HEAD = """\
-- The whole schema of ragotel for the cluster {cluster!r}: clickhouse client < FILE, on any node.
-- Run it again after an upgrade of ragotel; what is there stays.
--
-- Each node needs the macros {{shard}} and {{replica}}, the cluster internal_replication = true.
-- Tables that spans fill are NAME_local on each shard; NAME reads and writes all shards, and all
-- spans of a trace are on one. Everything else is copied to every node: joins with it stay there.
--
-- Write spans with distributed_foreground_insert = 1 (before 23.10: insert_distributed_sync = 1):
-- without it a span is acknowledged while it is only in a queue of the node that took it.
-- prefer_localhost_replica = 1 (the default) reads a node's own copy of its shard."""


@click.command("init", short_help="Create the store's schema, or bring it up to date.")
@click.option(
    "--print",
    "print_only",
    is_flag=True,
    help="Print every statement in order, runnable as it stands; open no store.",
)
@click.option(
    "--cluster",
    default="",
    metavar="NAME",
    help="With --print: for a replicated, sharded cluster that ClickHouse knows by this name.",
)
@common_options
def init(print_only: bool, cluster: str, dsn: str | None, as_json: bool) -> None:
    """Create the store's schema, or bring it up to date.

    Tables are numbered and made once; views hold no data and are made again where they differ from
    this version's. Running it twice, or two at once, is harmless. The database is that of --store,
    also where it is printed for a cluster.
    """
    if cluster and not print_only:
        raise click.UsageError("--cluster needs --print: the statements are for you to run.")
    if cluster:
        _print_cluster(cluster, dsn, as_json)
        return
    if print_only:
        _print_schema(as_json)
        return
    from ragotel.store import catalog, migrate, open_store
    from ragotel.store.cluster import is_cluster

    with open_store(dsn) as store:
        if is_cluster(store):
            raise ConfigurationError(
                f"{_name(store.dsn.path, store.dsn.host, store.dsn.port)} is a node of a cluster, "
                "and a schema is the whole cluster's: run what `ragotel init --print --cluster "
                "NAME` prints."
            )
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
        say_block(f"+ {name}")
    what = f"{len(new)} steps are new" if new else "no step was missing"
    say_block(
        f"The schema in {report['store']}, database {report['database']}, is up to date: "
        f"{what}, {views} views are in place (ClickHouse {report['engine_version']})."
    )


def _name(path: str, host: str, port: int) -> str:
    return path or f"{host}:{port}"


def _print_schema(as_json: bool) -> None:
    from ragotel.store import catalog, statements

    files = statements()
    if as_json:
        _print_json(files)
        return
    say_block("-- The whole schema of ragotel, in order: clickhouse client --database NAME < FILE")
    _print_files(files)
    taken = ", ".join(f"('{file.name}')" for file in catalog.tables())
    say_block(
        f"\n-- so that `ragotel init` knows these steps\n"
        f"insert into rag_migrations (name) values {taken};"
    )


def _print_cluster(cluster: str, dsn: str | None, as_json: bool) -> None:
    from ragotel.store import parse_dsn
    from ragotel.store.cluster import cluster_statements

    files = cluster_statements(cluster, parse_dsn(dsn).database)
    if as_json:
        _print_json(files)
        return
    say_block(_CLUSTER_HEAD.format(cluster=cluster))
    _print_files(files)


def _print_json(files: list[SqlFile]) -> None:
    print_json([{"name": f.name, "layer": f.layer, "sql": f.text} for f in files])


def _print_files(files: list[SqlFile]) -> None:
    for file in files:
        say_block(f"\n-- {file.layer}/{file.name}.sql\n{file.text.rstrip()};")


def register(group: click.Group) -> None:
    """Add `init` to *group*."""
    group.add_command(init)
