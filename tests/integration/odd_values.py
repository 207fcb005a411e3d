"""Odd values on their way into the store, and what arrives: the tables of docs/collectors.md.

`CASES` says what is sent, `STORED` what then stands in `otel_traces`, `READ` what the typed tables
make of it. A value that stands under `direct` alone arrives so by every way.
"""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

WAYS = ("direct", "collector", "rotel")
REFUSED = "(the batch is refused)"
LOST = "(nothing)"

INVALID = "INVALIDBYTE"
"""Stands for bytes that are no UTF-8, of the same length: the generated classes refuse them."""
INVALID_BYTES = b"bad \xff\xc3 tail"
SURROGATE = "LONE"
"""In a JSON body, for the escape of half a surrogate pair."""


class Case(NamedTuple):
    """One span: its name, and the attribute `odd` or other attributes."""

    name: str
    value: Any = None
    attributes: dict[str, Any] | None = None


NAN, INF = math.nan, math.inf
VALUES = (
    Case("text", "plain"),
    Case("empty text", ""),
    Case("NUL in text", "a\0b"),
    Case("U+FFFF", "a\uffffb"),
    Case("bytes that are no UTF-8 in a text", INVALID),
    Case("half a surrogate pair, escaped in JSON", SURROGATE),
    Case("true", True),
    Case("the largest int64", 2**63 - 1),
    Case("the smallest int64", -(2**63)),
    Case("1.0", 1.0),
    Case("-0.0", -0.0),
    Case("0.1", 0.1),
    Case("1e-7", 1e-7),
    Case("1e21", 1e21),
    Case("NaN", NAN),
    Case("Infinity", INF),
    Case("-Infinity", -INF),
    Case("bytes", b"\x00\xff"),
    Case("no value", None),
    Case("list of texts", ["a", "b"]),
    Case("list of ints", [1, 2]),
    Case("list of doubles", [0.5, 1.0]),
    Case("list of bools", [True, False]),
    Case("list of mixed kinds", ["a", 1, 0.5, True, b"\x00\xff"]),
    Case("list with a value that is none", [None, "a"]),
    Case("list with NaN", [0.5, NAN, -INF]),
    Case("list with a NUL, <, U+2028", ["a\0b", "<", "\u2028"]),
    Case("empty list", []),
    Case("list of lists", [["a", [1]]]),
    Case("map", {"b": 1, "a": "x"}),
    Case("map with NaN", {"score": NAN}),
    Case("empty map", {}),
)
SIZES = (
    Case("text of 300 kB", "x" * 300_000),
    Case("text of 3 MB", "y" * 3_000_000),
    Case("list of 10,000 texts", [f"item {number}" for number in range(10_000)]),
)
SPANS = (
    Case("a key that is empty", attributes={"": "kept"}),
    Case("a key given twice", attributes={"odd": "first", "odd again": "last"}),
    Case("no service.name", attributes={"odd": "x"}),
    Case("an event and a link", attributes={"odd": "x"}),
)

_HITS = [{"id": "a", "score": 0.5}, {"id": "b", "score": 1.0}]


def _retrieve(documents: Any, **more: Any) -> dict[str, Any]:
    own = {"rag.stage": "retrieve", "gen_ai.retrieval.documents": documents}
    return {**own, **{key.replace("__", "."): value for key, value in more.items()}}


READINGS = (
    Case("a list as ragotel sends it", attributes=_retrieve(json.dumps(_HITS))),
    Case("the same as an OTLP list of maps", attributes=_retrieve(_HITS)),
    Case(
        "an OTLP list of maps with a score that is NaN",
        attributes=_retrieve([{"id": "a", "score": NAN}]),
    ),
    Case("text with NaN for a score", attributes=_retrieve('[{"id": "a", "score": NaN}]')),
    Case(
        "ids with a NUL and U+FFFF",
        attributes=_retrieve('[{"id": "a\\u0000"}, {"id": "\uffff"}]'),
    ),
    Case("an id with half a surrogate pair", attributes=_retrieve('[{"id": "a\\ud83d"}]')),
    Case(
        "ids that are numbers",
        attributes=_retrieve('[{"id": 9223372036854775807, "score": 1e308}, {"id": 7}]'),
    ),
    Case(
        "10,000 candidates",
        attributes=_retrieve(json.dumps([{"id": str(number)} for number in range(10_000)])),
    ),
    Case(
        "more counted than there are",
        attributes=_retrieve(json.dumps(_HITS), rag__candidates__count=3),
    ),
    Case(
        "a count that is a double",
        attributes=_retrieve(json.dumps(_HITS), gen_ai__retrieval__top_k=5.0),
    ),
    Case(
        "finish reasons as an OTLP list",
        attributes={"rag.stage": "generate", "gen_ai.response.finish_reasons": ["stop", "length"]},
    ),
)
PROMPTS = (
    Case(
        "a prompt of 3 MB with a NUL",
        attributes={"rag.stage": "assemble", "rag.prompt.text": "p\0" + "q" * 3_000_000},
    ),
    Case(
        "a prompt with bytes that are no UTF-8",
        attributes={"rag.stage": "assemble", "rag.prompt.text": INVALID},
    ),
)
CASES = (*VALUES, *SIZES, *SPANS, *READINGS, *PROMPTS)


STORED: dict[str, tuple[str, ...]] = {
    "text": ("plain",),
    "empty text": ("''",),
    "NUL in text": ("a\\u0000b",),
    "U+FFFF": ("a\\uffffb",),
    "bytes that are no UTF-8 in a text": ("bad �� tail", "bad \\xff\\xc3 tail", REFUSED),
    "half a surrogate pair, escaped in JSON": ("�", "�", REFUSED),
    "true": ("true",),
    "the largest int64": ("9223372036854775807",),
    "the smallest int64": ("-9223372036854775808",),
    "1.0": ("1", "1", "1.0"),
    "-0.0": ("-0", "-0", "-0.0"),
    "0.1": ("0.1",),
    "1e-7": ("1e-7",),
    "1e21": ("1e+21", "1e+21", "1e21"),
    "NaN": ("NaN", "NaN", "null"),
    "Infinity": ("Infinity", "Infinity", "null"),
    "-Infinity": ("-Infinity", "-Infinity", "null"),
    "bytes": ("AP8=", "AP8=", "00ff"),
    "no value": ("''", "''", LOST),
    "list of texts": (
        '["a","b"]',
        '["a","b"]',
        '{"values":[{"stringValue":"a"},{"stringValue":"b"}]}',
    ),
    "list of ints": ("[1,2]", "[1,2]", '{"values":[{"intValue":"1"},{"intValue":"2"}]}'),
    "list of doubles": (
        "[0.5,1]",
        "[0.5,1]",
        '{"values":[{"doubleValue":0.5},{"doubleValue":1.0}]}',
    ),
    "list of bools": (
        "[true,false]",
        "[true,false]",
        '{"values":[{"boolValue":true},{"boolValue":false}]}',
    ),
    "list of mixed kinds": (
        '["a",1,0.5,true,"AP8="]',
        '["a",1,0.5,true,"AP8="]',
        '{"values":[{"stringValue":"a"},{"intValue":"1"},{"doubleValue":0.5},{"boolValue":true},{"bytesValue":"AP8="}]}',
    ),
    "list with a value that is none": (
        '[null,"a"]',
        '[null,"a"]',
        '{"values":[{},{"stringValue":"a"}]}',
    ),
    "list with NaN": (
        "[0.5,null,null]",
        "''",
        '{"values":[{"doubleValue":0.5},{"doubleValue":null},{"doubleValue":null}]}',
    ),
    "list with a NUL, <, U+2028": (
        '["a\\u0000b","<","\\u2028"]',
        '["a\\u0000b","<","\\u2028"]',
        '{"values":[{"stringValue":"a\\u0000b"},{"stringValue":"<"},{"stringValue":"\\u2028"}]}',
    ),
    "empty list": ("[]", "[]", '{"values":[]}'),
    "list of lists": (
        '[["a",[1]]]',
        '[["a",[1]]]',
        '{"values":[{"arrayValue":{"values":[{"stringValue":"a"},{"arrayValue":{"values":[{"intValue":"1"}]}}]}}]}',
    ),
    "map": (
        '{"a":"x","b":1}',
        '{"a":"x","b":1}',
        '{"values":[{"key":"b","value":{"intValue":"1"}},{"key":"a","value":{"stringValue":"x"}}]}',
    ),
    "map with NaN": (
        '{"score":null}',
        "''",
        '{"values":[{"key":"score","value":{"doubleValue":null}}]}',
    ),
    "empty map": ("{}", "{}", '{"values":[]}'),
    "text of 300 kB": ("300000 bytes",),
    "text of 3 MB": ("3000000 bytes",),
    "list of 10,000 texts": ("118891 bytes", "118891 bytes", "278902 bytes"),
    "a key that is empty": ("kept",),
    "a key given twice": ("last",),
    "no service.name": ("''",),
    "an event and a link": (
        "[1], link to 0202…",
        "[1], link to 0202…",
        '{"values":[{"intValue":"1"}]}, link to 0202…',
    ),
}
READ: dict[str, tuple[str, ...]] = {
    "a list as ragotel sends it": ("whole, 2: a, b (0.5, 1)",),
    "the same as an OTLP list of maps": (
        "whole, 2: a, b (0.5, 1)",
        "whole, 2: a, b (0.5, 1)",
        "malformed",
    ),
    "an OTLP list of maps with a score that is NaN": (
        "whole, 1: a (null)",
        "not_recorded",
        "malformed",
    ),
    "text with NaN for a score": ("malformed",),
    "ids with a NUL and U+FFFF": ("whole, 2: a\\u0000, \\uffff (null, null)",),
    "an id with half a surrogate pair": ("malformed",),
    "ids that are numbers": ("whole, 2: 9223372036854775807, 7 (1e+308, null)",),
    "10,000 candidates": ("whole, 10000: 0, 1, 2 (null, null, null)",),
    "more counted than there are": ("truncated, 3: a, b (0.5, 1)",),
    "a count that is a double": (
        "whole, 2: a, b (0.5, 1), top_k 5",
        "whole, 2: a, b (0.5, 1), top_k 5",
        "whole, 2: a, b (0.5, 1)",
    ),
    "finish reasons as an OTLP list": ("stop, length",),
    "a prompt of 3 MB with a NUL": ("3000002 bytes, text: p\\u0000qqqqqqqqqq",),
    "a prompt with bytes that are no UTF-8": (
        "15 bytes, text: bad �� t",
        "12 bytes, text: bad � tail",
        REFUSED,
    ),
}


def expected(name: str, way: str) -> str:
    """What arrives of a case by one of `WAYS`."""
    line = STORED.get(name) or READ[name]
    return line[WAYS.index(way)] if len(line) == len(WAYS) else line[0]


def page_tables() -> list[str]:
    """The tables as the page has them."""
    head = "| what is sent | direct | Collector | rotel |\n|---|---|---|---|"
    return [
        "\n".join([head, *(_line(name, line) for name, line in lines.items())])
        for lines in (STORED, READ)
    ]


def _line(name: str, line: tuple[str, ...]) -> str:
    direct, *others = line if len(line) == len(WAYS) else (line[0], line[0], line[0])
    cells = ["as direct" if one == direct else _cell(one) for one in others]
    return f"| {name} | {_cell(direct)} | {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return text.strip("()") if text in (REFUSED, LOST) else f"`{text}`".replace("|", "\\|")
