"""Targets: what one input of a fuzzer is held against; the laws are those of the tests."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
for folder in ("tests", "tests/property", "tests/sql"):
    sys.path.insert(0, str(ROOT / folder))

from input_laws import hold_decoding, hold_reading  # noqa: E402
from odd_messages import build_message  # noqa: E402
from odd_objects import Draw  # noqa: E402

from otlp_bodies import rag_request  # noqa: E402
from ragotel.store.otlp_json import decode_json, decode_parsed  # noqa: E402
from ragotel.store.otlp_protobuf import decode_protobuf  # noqa: E402

# Faults of odd objects are told in the log, thousands of them.
logging.disable(logging.CRITICAL)


def protobuf(data: bytes) -> None:
    """*data* is the body of a request."""
    hold_decoding(data, decode_protobuf)


def json_body(data: bytes) -> None:
    """The same for the other encoding."""
    hold_decoding(data, decode_json)


def messages(data: bytes) -> None:
    """*data* chooses the parts of a parsed message."""
    hold_decoding(build_message(Draw(data)), decode_parsed)


TARGETS: dict[str, Callable[[bytes], Any]] = {
    "protobuf": protobuf,
    "json": json_body,
    "messages": messages,
    "objects": hold_reading,
}


def seeds(target: str) -> list[bytes]:
    """Inputs to begin with."""
    if target == "protobuf":
        return [rag_request(1, prompt_chars=50), b"\x0a\x00"]
    if target == "json":
        span = b'{"traceId":"%s","spanId":"%s","attributes":[{"key":"k","value":{"intValue":"1"}}]}'
        whole = b'{"resourceSpans":[{"scopeSpans":[{"spans":[%s]}]}]}'
        return [whole % (span % (b"0a" * 16, b"0b" * 8)), b"{}", b"[]"]
    return [bytes(range(256)), b"\0" * 8]
