"""Cluster: the schema rewritten for a replicated and sharded ClickHouse cluster.

Pipeline: sql files -> [cluster] -> `ragotel init --print --cluster NAME` -> clickhouse client

What spans fill in proportion to traffic is sharded by the trace, so that all of a request is on one
shard, and each join on (trace_id, request_id) finds both sides there. Everything else is copied to
every node: labels, grades, manifests and chunk texts are joined with requests of any trace, and a
copy keeps those joins local as well. Materialized views go from a node's own table to a node's own.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ragotel.errors import MigrationError
from ragotel.store import catalog
from ragotel.store.catalog import SqlFile
from ragotel.store.handles import quoted, quoted_name
from ragotel.store.migrate import statements
from ragotel.store.open import Store

SHARDED = {
    "otel_traces": "TraceId",
    "otel_traces_trace_id_ts": "TraceId",
    "rag_requests": "trace_id",
    "rag_stages": "trace_id",
    "rag_prompts": "trace_id",
    # Keeps no rows; what is read again through it must reach the shard of its trace.
    "rag_foreign_in": "trace_id",
}
"""Tables that are cut into shards, and the column that holds the trace: all have one hash."""

VIEW_SETTINGS = {
    # What a shard must know of the others is gathered once and sent along. By default the engine
    # refuses such a query; 'local' would leave out what other shards hold.
    "distributed_product_mode": "'global'",
    "prefer_global_in_and_join": "1",
    # Evidence that was not asked for must not read as evidence that was never recorded.
    "skip_unavailable_shards": "0",
    "optimize_skip_unused_shards": "1",
}
"""Stand in every view, so that no profile of a reader can change what a verdict rests on."""

_NAME = re.compile(
    r"(?m)^(create (?:or replace )?(?:table|materialized view|view|function)"
    r"(?: if not exists)? )(\w+)"
)
_ENGINE = re.compile(r"(?m)^engine = (\w*)(?:\(([^)\n]*)\))?")
_VIEW_END = re.compile(r"(?m)^settings ([^\n]+?)\s*\Z")
_SHARDED_NAME = re.compile(rf"\b({'|'.join(SHARDED)})\b")


def cluster_statements(cluster: str, database: str) -> list[SqlFile]:
    """Every statement of the schema for *cluster*, in an order that an empty cluster can run.

    Running all of them again changes nothing, and brings an older schema up to date.

    Raises:
        MigrationError: A file of the schema has a form that cannot be rewritten.
    """
    on = f" on cluster {quoted(cluster)}"
    begin = [
        SqlFile(
            "cluster", "database", f"create database if not exists {quoted_name(database)}{on}"
        ),
        SqlFile("cluster", "use", f"use {quoted_name(database)}"),
    ]
    rewritten = [each for file in statements() for each in _rewrite(file, on, cluster, database)]
    taken = ", ".join(f"({quoted(file.name)})" for file in catalog.tables())
    # Names of our own files alone stand in it.
    end = SqlFile("cluster", "taken", f"insert into rag_migrations (name) values {taken}")  # noqa: S608
    return [*begin, *rewritten, end]


def is_cluster(store: Store) -> bool:
    """Whether *store* was made from `cluster_statements`: its spans are in a distributed table."""
    engine = store.scalar(
        "select engine from system.tables "
        "where database = currentDatabase() and name = 'otel_traces'"
    )
    return bool(engine == "Distributed")


def _rewrite(file: SqlFile, on: str, cluster: str, database: str) -> list[SqlFile]:
    found = _NAME.search(file.text)
    if found is None:
        raise MigrationError(
            f"{file.layer}/{file.name}.sql begins with none of create table, view and function: "
            "how it is run on a cluster is not known."
        )
    makes, name = found.groups()
    if "materialized" in makes:
        text = _SHARDED_NAME.sub(r"\1_local", _named(file.text, on))
    elif "table" in makes and name in SHARDED:
        text = _replicated(file.text, name, "{shard}", "{replica}")
        text = _NAME.sub(rf"\g<1>{name}_local{on}", text, count=1)
        return [replace(file, text=text), _distributed(file, name, on, cluster, database)]
    elif "table" in makes:
        text = _named(_replicated(file.text, name, "all", "{shard}-{replica}"), on)
    elif "view" in makes:
        text = _with_settings(_named(file.text, on))
    else:
        text = _named(file.text, on)
    return [replace(file, text=text)]


def _named(text: str, on: str) -> str:
    return _NAME.sub(rf"\g<0>{on}", text, count=1)


def _replicated(text: str, name: str, path: str, replica: str) -> str:
    """The table with a replicated engine; one that keeps no rows stays as it is."""
    found = _ENGINE.search(text)
    if found is None:
        raise MigrationError(f"The table {name} names no engine.")
    engine, own = found[1], found[2] or ""
    if not engine.endswith("MergeTree"):
        return text
    given = [f"'/clickhouse/tables/{path}/{{database}}/{name}'", f"'{replica}'", own]
    made = f"engine = Replicated{engine}({', '.join(filter(None, given))})"
    return text[: found.start()] + made + text[found.end() :]


def _distributed(file: SqlFile, name: str, on: str, cluster: str, database: str) -> SqlFile:
    text = (
        f"create table if not exists {name}{on} as {name}_local\n"
        f"engine = Distributed({quoted(cluster)}, {quoted(database)}, '{name}_local', "
        f"cityHash64({SHARDED[name]}))\n"
    )
    return replace(file, name=f"{file.name} (distributed)", text=text)


def _with_settings(text: str) -> str:
    text = text.rstrip()
    found = _VIEW_END.search(text)
    own = [found[1]] if found else []
    body = text[: found.start()].rstrip() if found else text
    given = ", ".join([*own, *(f"{name} = {value}" for name, value in VIEW_SETTINGS.items())])
    return f"{body}\nsettings {given}\n"
