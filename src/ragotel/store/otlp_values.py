"""OTLP values: attribute values as the text that the collector's ClickHouse exporter stores.

Pipeline: wire -> [values] -> rows -> otel_traces
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any

from ragotel.store.otlp_rows import SpanRejectedError
from ragotel.text import repair

MAX_DEPTH = 64
"""Levels of lists in lists that a value may have; deeper ones cost their span, not the process."""

# Go's encoder writes these so; <, > and & it leaves alone where it is not told to write HTML.
_SEPARATORS = str.maketrans({"\u2028": "\\u2028", "\u2029": "\\u2029"})
_encode_text = json.JSONEncoder(ensure_ascii=False).encode


def value_text(value: Any) -> str:
    """Text of a decoded value: scalars plainly, lists and maps as compact JSON, bytes as base64.

    Maps are dicts, null is None. Text is repaired (U+FFFD for lone surrogates), NUL is kept.
    A number that JSON lacks becomes null inside a list; alone, the exporter's word for it.
    """
    if isinstance(value, str):
        return repair(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return _json_text(value, 0)


def float_text(number: float) -> str:
    """A double as Go prints it in JSON: 1, 0.5, 1e-7, 1e+21."""
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    text = repr(number)
    magnitude = abs(number)
    if magnitude and (magnitude < 1e-6 or magnitude >= 1e21):
        mantissa, _, exponent = text.partition("e")
        sign, digits = exponent[:1], exponent[1:].lstrip("0")
        return f"{mantissa.removesuffix('.0')}e{sign}{digits}"
    if "e" in text:
        text = f"{number:.0f}" if magnitude >= 1 else _without_exponent(text)
    return text.removesuffix(".0")


def _without_exponent(text: str) -> str:
    mantissa, _, exponent = text.partition("e-")
    sign = "-" if mantissa.startswith("-") else ""
    digits = mantissa.lstrip("-").replace(".", "")
    return f"{sign}0.{'0' * (int(exponent) - 1)}{digits}"


def _json_text(value: Any, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise SpanRejectedError(f"attribute nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        items = sorted((repair(key), item) for key, item in value.items())
        inner = (f"{_quoted(key)}:{_json_text(item, depth + 1)}" for key, item in items)
        return "{" + ",".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ",".join([_json_text(item, depth + 1) for item in value]) + "]"
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "null"
    if isinstance(value, str):
        return _quoted(repair(value))
    if isinstance(value, bytes):
        return _quoted(value_text(value))
    return value_text(value)


def _quoted(text: str) -> str:
    return _encode_text(text).translate(_SEPARATORS)
