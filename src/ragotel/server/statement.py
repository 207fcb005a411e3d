"""Statement: what the ClickHouse interface must know of a query before the engine runs it.

Pipeline: HTTP request -> [statement] -> ClickHouse interface -> engine
Only words, strings and brackets are told apart here; the engine parses the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    rb"""(?P<space>(?:\s|--[^\n]*|\#[\ !][^\n]*|/\*.*?\*/)+)
    |(?P<text>'(?:[^'\\]|\\.)*'|\$(\w*)\$.*?\$\3\$)
    |(?P<name>`(?:[^`\\]|\\.)*`|"(?:[^"\\]|\\.)*")
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>\d[\w.]*)
    |(?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)
_AFTER_FORMAT = re.compile(rb"[ \t\r]*;?[ \t\r]*\n?")

OUTSIDE = frozenset(
    b"""
    aiclassify aiembed aiextract aifilter aigenerate airedact aisimilarity aitranslate
    arrowflight arrowstream azure azureblobstorage azureblobstoragecluster azurequeue backup
    bigquery cassandra clickhouse cosn datalakecatalog deltalake deltalakeazure
    deltalakeazurecluster deltalakecluster deltalakelocal deltalakes3 deltalakes3cluster disk
    embeddedrocksdb eval executable executablepool file filecluster filelog filesystem fuzzquery
    gcs hdfs hdfscluster http https hudi hudicluster iceberg icebergazure icebergazurecluster
    icebergcluster iceberghdfs iceberghdfscluster iceberglocal iceberglocalcluster icebergs3
    icebergs3cluster jdbc kafka keepermap library materializedpostgresql mongodb mysql nats odbc
    oss paimon paimonazure paimonazurecluster paimoncluster paimonhdfs paimonhdfscluster
    paimonlocal paimons3 paimons3cluster postgresql python queryrunner rabbitmq redis remote
    remotesecure s3 s3cluster s3queue sqlite url urlcluster ytsaurus zookeeper
    """.split()
)
"""Functions, engines and sources that reach files, programs, models or other hosts."""

_ENGINES_OWN = frozenset((b"system", b"information_schema"))


@dataclass(frozen=True)
class Insert:
    """An INSERT whose data follows it: *sql* without SETTINGS and FORMAT; where the data begins."""

    sql: str
    input_format: str
    data_at: int
    settings: str = ""


def find_insert(text: bytes) -> Insert | None:
    """The head of an INSERT with data in a named format; None for any other statement.

    *text* may be the beginning of a body of any length. VALUES are left to the engine's parser.
    """
    depth, first, settings_at = 0, True, None
    tokens = _tokens(text)
    for kind, token, start, _ in tokens:
        if kind == "other":
            depth += {b"(": 1, b")": -1}.get(token, 0)
        if kind != "word":
            continue
        word = token.lower()
        if first and word != b"insert":
            return None
        first = False
        if depth == 0 and word in (b"values", b"select", b"with", b"infile", b"watch"):
            return None
        if depth == 0 and word == b"settings":
            settings_at = start
        if depth == 0 and word == b"format":
            name = next((each for each in tokens if each[0] != "space"), None)
            if name is None or name[0] != "word":
                return None
            sql_ends = start if settings_at is None else settings_at
            return Insert(
                sql=text[:sql_ends].decode("utf-8", "replace").rstrip(),
                input_format=name[1].decode(),
                data_at=_data_start(text, name[3]),
                settings=text[sql_ends:start].decode("utf-8", "replace").rstrip(),
            )
    return None


def _data_start(text: bytes, at: int) -> int:
    found = _AFTER_FORMAT.match(text, at)
    return found.end() if found else at


def is_insert(text: bytes) -> bool:
    """Whether the first word is INSERT."""
    return _first_word(text) == b"insert"


def is_select(text: bytes) -> bool:
    """Whether the statement can give its rows block by block."""
    return _first_word(text.lstrip(b"( \t\r\n")) in (b"select", b"with")


def is_insert_without_data(text: bytes) -> bool:
    """Whether *text* is an INSERT that leaves its data, as VALUES, to the body."""
    if not is_insert(text):
        return False
    words = {token.lower() for kind, token, _, _ in _tokens(text) if kind == "word"}
    return not words & {b"select", b"with", b"infile", b"watch", b"format"} and (
        text.rstrip().lower().endswith(b"values") or b"values" not in words
    )


def _first_word(text: bytes) -> bytes:
    for kind, token, _, _ in _tokens(text):
        if kind != "space":
            return token.lower() if kind == "word" else b""
    return b""


def output_format(text: bytes) -> str:
    """The format that the statement itself names, '' where it names none."""
    depth, found, expecting = 0, "", False
    for kind, token, _, _ in _tokens(text):
        if kind == "other":
            depth += {b"(": 1, b")": -1}.get(token, 0)
        if kind == "space":
            continue
        if expecting and kind == "word":
            found = token.decode()
        expecting = depth == 0 and kind == "word" and token.lower() == b"format"
    return found


def has_several(text: bytes) -> bool:
    """Whether more follows a semicolon."""
    ended = False
    for kind, token, _, _ in _tokens(text):
        if kind == "space":
            continue
        if ended and token != b";":
            return True
        ended = ended or token == b";"
    return False


def keeps_session(text: bytes) -> bool:
    """Whether the statement leaves something behind in its session: SET, USE, a temporary table."""
    if _first_word(text) in (b"set", b"use", b"begin", b"commit", b"rollback"):
        return True
    return any(
        kind == "word" and token.lower() == b"temporary" for kind, token, _, _ in _tokens(text)
    )


def outside_name(text: bytes) -> str:
    """The first thing in the statement that reaches beyond the store; '' where there is none.

    To end the server's process counts, as does to attach a table from another folder, or to take
    from the engine the databases that it needs itself.
    """
    previous, name = b"", b""
    first = _first_word(text)
    for kind, token, _, _ in _tokens(text):
        if kind == "space":
            continue
        bare = token.strip(b'`"').lower() if kind in ("word", "name") else b""
        # The engine undoes escapes in quoted names; nobody needs one in a function's name.
        if token == b"(" and (name in OUTSIDE or b"\\" in name):
            return name.decode("utf-8", "replace")
        if bare in (b"outfile", b"infile") and previous in (b"into", b"from"):
            return bare.decode()
        if previous in (b"engine", b"=") and (bare in OUTSIDE or b"\\" in bare):
            return bare.decode("utf-8", "replace")
        if first == b"system" and previous == first and bare in (b"shutdown", b"kill", b"suspend"):
            return f"system {bare.decode()}"
        if first in (b"drop", b"detach") and previous == b"database" and bare in _ENGINES_OWN:
            return f"{first.decode()} database {bare.decode()}"
        if first == b"attach" and previous == b"from" and kind == "text":
            return "attach … from"
        if not (previous == b"database" and bare in (b"if", b"exists")):
            previous, name = bare or token, bare
    return ""


def _tokens(text: bytes) -> Iterator[tuple[str, bytes, int, int]]:
    for match in _TOKEN.finditer(text):
        yield match.lastgroup or "text", match[0], match.start(), match.end()
