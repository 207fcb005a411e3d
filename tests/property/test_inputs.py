"""What nobody thought of: bytes, objects and spans of any kind, the same ones in every run.

fuzz/ throws more, for as long as one likes.
"""

from __future__ import annotations

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from input_laws import hold_decoding, hold_reading
from odd_messages import build_message
from odd_objects import Draw
from odd_spans import SERVICE, odd_rows
from small_worlds import deliver, tell
from test_views import HERE as WORLDS
from test_views import read

from otlp_bodies import rag_request
from ragotel.store import Store
from ragotel.store.otlp_json import decode_json, decode_parsed
from ragotel.store.otlp_protobuf import decode_protobuf
from ragotel.store.otlp_rows import COLUMNS, FORMAT, TABLE, encode_rows

BYTES = st.binary(max_size=300)
SAME = settings(
    derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
WHOLE = rag_request(1, prompt_chars=40)
VIEWS = ("rag_candidates", "triage_requests")


@settings(SAME, max_examples=400)
@given(BYTES, st.integers(0, len(WHOLE)), st.integers(0, 40))
def test_any_bytes_as_a_protobuf_body(noise: bytes, at: int, cut: int) -> None:
    """Rows that can be inserted, spans counted with a reason, or one error of one line."""
    hold_decoding(noise, decode_protobuf)
    hold_decoding(WHOLE[:at] + noise[:40] + WHOLE[at + cut :], decode_protobuf)


@settings(SAME, max_examples=400)
@given(BYTES)
def test_any_tree_as_a_json_body(data: bytes) -> None:
    """The same, where any part of the message is something else than it should be."""
    hold_decoding(data, decode_json)
    hold_decoding(build_message(Draw(data)), decode_parsed)


@settings(SAME, max_examples=150)
@given(st.binary(max_size=60))
def test_any_object_into_and_out_of_every_decorator(data: bytes) -> None:
    """The service gets its very object, nothing is raised, spans are valid and bounded."""
    hold_reading(data)


def test_odd_spans_of_every_convention_are_stored_and_change_no_row_of_others(
    store: Store,
) -> None:
    """One insert takes them all; what the views say of other requests they say afterwards."""
    deliver(store, WORLDS / "worlds" / "hit")
    tell(store, WORLDS / "worlds" / "hit")
    before = {view: read(store, view, True) for view in VIEWS}
    rows = odd_rows(random.Random(20261130), 400)
    store.client.raw_insert(TABLE, COLUMNS, b"".join(encode_rows(rows)), fmt=FORMAT)
    own = [row for row in rows if row.attributes.get("rag.stage", "") not in ("", "request")]
    counted = (
        "select count() from {} where service_name = {{service:String}} and convention = 'ragotel'"
    )
    assert store.scalar(counted.format("rag_stages"), {"service": SERVICE}) == len(own)
    assert {view: read(store, view, True) for view in VIEWS} == before
