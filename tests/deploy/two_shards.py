"""A cluster of two shards in one process: prints, as JSON, what each view says of a world.

    python two_shards.py FOLDER WORLD VIEW…

The engine knows two shards, both itself, and a filter gives each the rows that its hash says. So
inserts, joins and aggregates over shards are planned and run as on a cluster; only Keeper and the
network are not there: a replicated engine becomes the plain one, and `on cluster` is left out.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from clickhouse_connect import get_client

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "sql")]

from small_worlds import deliver, deliver_junk, tell  # noqa: E402
from test_views import read  # noqa: E402

from ragotel.store import Store, cluster, parse_dsn  # noqa: E402

CLUSTER = "two"
DATABASE = "ragotel"
_SHARD = (
    "<shard><internal_replication>true</internal_replication>"
    "<replica><host>127.0.0.1</host><port>9000</port></replica></shard>"
)
_CONFIGURATION = (
    # The port that a shard must have to count as this process; nobody listens on it.
    "<clickhouse><tcp_port>9000</tcp_port>"
    f"<remote_servers><{CLUSTER}>{_SHARD}{_SHARD}</{CLUSTER}></remote_servers></clickhouse>"
)
_REPLICATED = re.compile(r"engine = Replicated(\w+)\('[^']*', '[^']*'(?:, )?([^)]*)\)")


def without_keeper(sql: str) -> str:
    """The statement as one process without Keeper can run it."""
    return _REPLICATED.sub(r"engine = \1(\2)", sql.replace(f" on cluster '{CLUSTER}'", ""))


def open_cluster(folder: Path) -> Store:
    """An engine with two shards and the whole schema."""
    configuration = folder / "cluster.xml"
    configuration.write_text(_CONFIGURATION, "utf-8")
    (folder / "store").mkdir()
    path = f"{folder}/store?config-file={configuration}"
    client = get_client(interface="chdb", path=path)
    store = Store(parse_dsn(f"chdb://{folder}/store"), client)
    for file in cluster.cluster_statements(CLUSTER, DATABASE):
        if file.name == "use":
            client.database = DATABASE
        else:
            store.command(without_keeper(file.text))
    client.set_client_setting("session_timezone", "UTC")
    return store


def see_two_shards(store: Store) -> None:
    """From here on each shard reads only its own rows."""
    filters = {
        f"{DATABASE}.{table}_local": f"cityHash64({column}) % 2 = shardNum() - 1"
        for table, column in cluster.SHARDED.items()
    }
    text = ", ".join(f"'{table}': '{condition}'" for table, condition in filters.items())
    store.client.set_client_setting("additional_table_filters", "{" + text + "}")


def shards_asked(store: Store, condition: str) -> int:
    """How many shards the plan of a query over the stages reads."""
    plan = store.query(
        f"explain select count() from rag_stages {condition} "
        "settings optimize_skip_unused_shards = 1"
    ).result_rows
    return sum("ReadFromMergeTree" in row[0] for row in plan)


def main() -> None:
    folder, world, views = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    store = open_cluster(folder)
    deliver(store, world)
    is_junked = world.name == "malformed"
    if is_junked:
        deliver_junk(store)
    tell(store, world)
    see_two_shards(store)
    shards = store.query(
        "select shardNum() as shard, count() from rag_requests group by shard order by shard"
    ).result_rows
    split = (
        "select trace_id from rag_stages group by trace_id having uniq(shardNum()) > 1 "
        "settings optimize_distributed_group_by_sharding_key = 0"
    )
    facts = {
        "requests_by_shard": dict(shards),
        "traces_on_two_shards": len(store.query(split).result_rows),
        "shards_asked_for_a_trace": shards_asked(store, "where trace_id = 't1'"),
        "shards_asked_for_all": shards_asked(store, ""),
        "is_cluster": cluster.is_cluster(store),
    }
    answers: dict[str, str] = {}
    for view in views:
        try:
            answers[view] = read(store, view, is_junked)
        except Exception as error:
            answers[view] = f"{type(error).__name__}: {str(error)[:300]}"
    print(json.dumps({"facts": facts, "answers": answers}))


if __name__ == "__main__":
    main()
