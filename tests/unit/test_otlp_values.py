"""Attribute values become the text that the collector's ClickHouse exporter stores."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragotel.store.otlp_rows import SpanRejectedError
from ragotel.store.otlp_values import MAX_DEPTH, float_text, value_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("cut \ud83d emoji", "cut \ufffd emoji"),
        ("nul\0kept", "nul\0kept"),
        (True, "true"),
        (False, "false"),
        (-5, "-5"),
        (2**63 - 1, "9223372036854775807"),
        (None, ""),
        (b"\x00\xff", "AP8="),
        ([], "[]"),
        ({}, "{}"),
        (["a", "b"], '["a","b"]'),
        ([1, 0.5, True, None, b"x"], '[1,0.5,true,null,"eA=="]'),
        ([math.nan, math.inf], "[null,null]"),
        ({"b": 1, "a": {"c": []}}, '{"a":{"c":[]},"b":1}'),
        (["<&>\u2028"], '["<&>\\u2028"]'),
        (['é"\n\x01'], '["é\\"\\n\\u0001"]'),
    ],
)
def test_a_value_is_stored_as_the_exporter_stores_it(value: object, text: str) -> None:
    """Scalars plainly, lists and maps as Go's compact JSON with sorted keys, bytes as base64."""
    assert value_text(value) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1"),
        (0.5, "0.5"),
        (-0.0, "-0"),
        (1e-6, "0.000001"),
        (1.5e-5, "0.000015"),
        (1e-7, "1e-7"),
        (1.25e-10, "1.25e-10"),
        (1e20, "100000000000000000000"),
        (123456789012345680.0, "123456789012345680"),
        (1e21, "1e+21"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (5e-324, "5e-324"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
    ],
)
def test_a_double_is_written_as_go_writes_it(number: float, text: str) -> None:
    """No exponent between 1e-6 and 1e21, no point for whole numbers, none padded."""
    assert float_text(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_keeps_its_value(number: float) -> None:
    """Reading the text gives the same double."""
    assert float(float_text(number)) == number


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    ).filter(lambda value: isinstance(value, list | dict))
)
def test_lists_and_maps_survive_as_json(value: object) -> None:
    """What stands in the store is JSON that reads as the value that was sent."""
    assert json.loads(value_text(value)) == value


def test_a_value_nested_too_deep_costs_its_span() -> None:
    """A list in a list in a list, without end, is refused before the stack is."""
    value: object = "x"
    for _ in range(MAX_DEPTH + 2):
        value = [value]
    with pytest.raises(SpanRejectedError, match=f"deeper than {MAX_DEPTH}"):
        value_text(value)
