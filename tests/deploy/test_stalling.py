"""A sender that stops in the middle of its body."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from ragotel.server import otlp_http
from ragotel.server.access import Access
from ragotel.server.receiver import Receiver


async def test_a_body_that_stalls_is_answered_and_may_be_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """503, which senders take for "later": the connection is not held for ever."""
    monkeypatch.setattr(otlp_http, "BODY_IDLE_S", 0.05)
    sent: list[dict[str, Any]] = []
    pieces = iter([{"type": "http.request", "body": b"abc", "more_body": True}])

    async def receive() -> dict[str, Any]:
        if (piece := next(pieces, None)) is not None:
            return piece
        return cast("dict[str, Any]", await asyncio.Event().wait())

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/traces",
        "query_string": b"",
        "headers": [(b"content-type", b"application/x-protobuf"), (b"host", b"127.0.0.1")],
    }
    # Nothing reaches the writer.
    receiver = Receiver(cast("Any", None))
    await otlp_http.otlp_app(receiver, Access(""))(scope, receive, send)
    receiver.close()
    assert sent[0]["status"] == 503
    assert b"did not arrive in time" in sent[1]["body"]
