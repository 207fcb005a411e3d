"""A store as one of the users of deploy/clickhouse sees it, in a process of its own.

    python as_user.py FOLDER build WORLD
    python as_user.py FOLDER ask USERS.xml < statements as JSON

The embedded engine has one user and keeps none that SQL makes; but it takes that user's grants and
row filters from a file, and holds it to them. Answers are printed as JSON: rows as text, or the
name of the error.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from clickhouse_connect import get_client

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "sql")]

from small_worlds import deliver, tell  # noqa: E402

from ragotel.store import Store, migrate, parse_dsn  # noqa: E402

_ERROR = re.compile(r"\(([A-Z_]{4,})\)")
# Who makes the views must go on having every right when the one user has few.
_OWNER = (
    "<owner><password/><networks><ip>::/0</ip></networks><profile>default</profile>"
    "<quota>default</quota></owner>"
)


def users(own: str, profile: str = "") -> str:
    """A file of users: the owner of the views, and the engine's own one with *own* elements."""
    return (
        f"<clickhouse><profiles><default>{profile}</default></profiles>"
        f"<quotas><default/></quotas><users>{_OWNER}<default><password/>"
        "<networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>"
        f"{own}</default></users></clickhouse>"
    )


def _sql_security() -> str:
    """The server's setting of deploy/ by which a view remembers whose rights it has."""
    text = (HERE.parent.parent / "deploy/clickhouse/config.d/ragotel.xml").read_text("utf-8")
    found = re.search(r"<(ignore_empty_sql_security\w+)>.+</\1>", text)
    assert found is not None
    return found[0]


def open_as(folder: Path, users_file: Path) -> Store:
    configuration = users_file.with_suffix(".config.xml")
    configuration.write_text(
        "<clickhouse><user_directories><users_xml>"
        f"<path>{users_file}</path></users_xml></user_directories>"
        f"{_sql_security()}</clickhouse>",
        "utf-8",
    )
    path = f"{folder}/store?config-file={configuration}"
    client = get_client(interface="chdb", path=path)
    return Store(parse_dsn(f"chdb://{folder}/store"), client)


def build(folder: Path, world: Path) -> None:
    users_file = folder / "all.xml"
    users_file.write_text(users("<access_management>1</access_management>"), "utf-8")
    (folder / "store").mkdir()
    store = open_as(folder, users_file)
    store.command("create database ragotel")
    store.client.database = "ragotel"
    store.client.set_client_setting("default_view_definer", "owner")
    store.client.set_client_setting("default_normal_view_sql_security", "DEFINER")
    migrate(store)
    store.client.set_client_setting("session_timezone", "UTC")
    deliver(store, world)
    tell(store, world)


def ask(folder: Path, users_file: Path) -> None:
    store = open_as(folder, users_file)
    store.client.database = "ragotel"
    answers = []
    for sql in json.load(sys.stdin):
        try:
            answers.append(store.client.raw_query(sql, fmt="TSV").decode())
        except Exception as error:
            found = _ERROR.search(str(error))
            answers.append(found[1] if found else "FAILED")
    print(json.dumps(answers))


if __name__ == "__main__":
    target, what, argument = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    build(target, argument) if what == "build" else ask(target, argument)
