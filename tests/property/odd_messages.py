"""Odd messages: bytes become parsed OTLP JSON whose every part may be something else.

Used by test_inputs.py and by the fuzzers in fuzz/.
"""

from __future__ import annotations

import math
from typing import Any

from odd_objects import TEXTS, Draw

JUNK: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        5,
        2**63,
        -(2**63),
        2**64,
        10**38,
        0.5,
        1e308,
        math.nan,
        math.inf,
    ),
    *(
        -math.inf,
        -0.0,
        "",
        "0",
        "a",
        "NaN",
        "cut \ud83d",
        "nul\0",
        "9" * 60,
        "\u0663",
        "1e5",
        [],
        {},
    ),
    *(
        [None],
        [[]],
        [{}],
        {"": 1},
        {"values": 5},
        {"values": [5]},
        {"key": "k"},
        "0a" * 16,
        "0b" * 8,
    ),
)
HEX = (
    "0a" * 16,
    "0b" * 8,
    "00" * 16,
    "CC" * 8,
    "0g" * 16,
    "",
    "CgoKCgoKCgoKCgoKCgoKCg==",
    "CwsLCwsLCws=",
)
VALUES = (
    "stringValue",
    "boolValue",
    "intValue",
    "doubleValue",
    "bytesValue",
    "string_value",
    "newValue",
)


def build_message(draw: Draw) -> Any:
    """One parsed body: mostly of the right form, with junk here and there."""
    frames = [
        {"resource": {"attributes": _pairs(draw)}, "scopeSpans": _some(draw, _scope)}
        for _ in range(draw.below(3))
    ]
    return _odd(draw, {_key(draw, "resourceSpans", "resource_spans"): _odd(draw, frames)})


def _scope(draw: Draw) -> Any:
    scope = {"name": _odd(draw, "ragotel"), "version": _odd(draw, "1")}
    return {"scope": _odd(draw, scope), "spans": _some(draw, _span)}


def _span(draw: Draw) -> Any:
    made: dict[str, Any] = {
        _key(draw, "traceId", "trace_id"): _odd(draw, "0a" * 16),
        _key(draw, "spanId", "span_id"): _odd(draw, "0b" * 8),
        _key(draw, "parentSpanId", "parent_span_id"): draw.one_of(HEX),
        "name": _odd(draw, "answer"),
        "kind": _odd(draw, 1),
        "startTimeUnixNano": _odd(draw, "1796000000000000000"),
        "endTimeUnixNano": _odd(draw, "1796000000000000009"),
        "attributes": _pairs(draw),
    }
    if draw.below(3) == 1:
        made["status"] = _odd(draw, {"code": _odd(draw, 1), "message": _odd(draw, "m")})
        made["events"] = _some(draw, _event)
        made["links"] = _some(draw, _link)
    return made


def _event(draw: Draw) -> Any:
    return {"timeUnixNano": _odd(draw, "9"), "name": _odd(draw, "e"), "attributes": _pairs(draw)}


def _link(draw: Draw) -> Any:
    return {"traceId": draw.one_of(HEX), "spanId": draw.one_of(HEX), "attributes": _pairs(draw)}


def _pairs(draw: Draw) -> Any:
    return _some(
        draw, lambda draw: {"key": _odd(draw, draw.one_of(("k", ""))), "value": _value(draw, 0)}
    )


def _value(draw: Draw, depth: int) -> Any:
    kind = draw.below(5) if depth < 80 else 0
    if kind == 1:
        inner = [_value(draw, depth + 1) for _ in range(draw.below(3))]
        return {"arrayValue": _odd(draw, {"values": _odd(draw, inner)})}
    if kind == 2:
        pairs = [
            {"key": draw.text(), "value": _value(draw, depth + 1)} for _ in range(draw.below(3))
        ]
        return {"kvlistValue": _odd(draw, {"values": _odd(draw, pairs)})}
    if kind == 3:
        return _odd(draw, draw.one_of(TEXTS))
    return {draw.one_of(VALUES): draw.one_of(JUNK)}


def _some(draw: Draw, make: Any) -> Any:
    return _odd(draw, [_odd(draw, make(draw)) for _ in range(draw.below(3))])


def _key(draw: Draw, camel: str, snake: str) -> str:
    return snake if draw.below(8) == 1 else camel


def _odd(draw: Draw, usual: Any) -> Any:
    """*usual*, or one time in sixteen something else."""
    return draw.one_of(JUNK) if draw.below(16) == 1 else usual
