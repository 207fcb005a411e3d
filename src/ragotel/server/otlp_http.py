"""OTLP over HTTP: POST /v1/traces, protobuf or JSON, plain or packed.

Pipeline: SDK | Collector -> [OTLP/HTTP] -> receiver -> writer -> otel_traces
"""

from __future__ import annotations

import asyncio
import logging

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ragotel.errors import InputError
from ragotel.server.access import Access
from ragotel.server.exchange import BODY_IDLE_S
from ragotel.server.otlp_reply import JSON, PROTOBUF, RpcCode, failure, success
from ragotel.server.receiver import MAX_BODY_BYTES, Receiver
from ragotel.server.writer import StoreUnavailableError
from ragotel.store.encodings import TooLargeError, unpack
from ragotel.store.otlp_rows import OtlpError

log = logging.getLogger(__name__)

RETRY_AFTER_S = 2
DISCARDED_BYTES = 192 << 20
"""How much of a body beyond the limit is read, so that its sender hears the answer."""
_CONTENT_TYPES = {PROTOBUF: PROTOBUF, "application/protobuf": PROTOBUF, JSON: JSON}


def otlp_app(receiver: Receiver, access: Access) -> Starlette:
    """The ASGI application of the OTLP/HTTP port."""

    async def traces(request: Request) -> Response:
        return await _export(request, receiver, access)

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    return Starlette(
        routes=[Route("/v1/traces", traces, methods=["POST"]), Route("/health", health)]
    )


async def _export(request: Request, receiver: Receiver, access: Access) -> Response:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    kind = _CONTENT_TYPES.get(given, PROTOBUF)
    refusal = access.refusal(request.headers)
    if refusal:
        return _failed(403, RpcCode.UNAUTHENTICATED, refusal, kind)
    if not access.is_allowed(_bearer(request.headers.get("authorization", ""))):
        message = "this server wants its token: Authorization: Bearer …"
        return _failed(401, RpcCode.UNAUTHENTICATED, message, kind)
    if given not in _CONTENT_TYPES:
        message = f"content type {given!r} is neither {PROTOBUF} nor {JSON}"
        return _failed(415, RpcCode.INVALID_ARGUMENT, message, kind)
    encoding = request.headers.get("content-encoding", "").strip().lower()
    try:
        body = await _read(request)
        decoded = await receiver.receive(
            lambda: b"".join(unpack([body], encoding, limit_bytes=MAX_BODY_BYTES)),
            is_json=kind == JSON,
        )
    except TooLargeError as error:
        return _failed(413, RpcCode.RESOURCE_EXHAUSTED, str(error), kind)
    except (OtlpError, InputError) as error:
        return _failed(400, RpcCode.INVALID_ARGUMENT, str(error), kind)
    except StoreUnavailableError as error:
        return _failed(503, RpcCode.UNAVAILABLE, str(error), kind)
    except (TimeoutError, asyncio.TimeoutError):
        return _failed(503, RpcCode.UNAVAILABLE, "the body did not arrive in time", kind)
    except ClientDisconnect:
        return Response(status_code=499)
    except Exception as error:
        log.exception("an export failed")
        return _failed(500, RpcCode.INTERNAL, f"{type(error).__name__}: {error}", kind)
    reply = success(decoded.rejected_count, decoded.message, kind)
    return Response(reply, media_type=kind)


async def _read(request: Request) -> bytes:
    chunks: list[bytes] = []
    total = 0
    stream = request.stream()
    while (chunk := await asyncio.wait_for(anext(stream, None), BODY_IDLE_S)) is not None:
        total += len(chunk)
        if total > MAX_BODY_BYTES + DISCARDED_BYTES:
            break
        chunks.append(chunk)
        if total > MAX_BODY_BYTES:
            # Read on without keeping it: a sender that is still sending hears no answer.
            chunks.clear()
    if total > MAX_BODY_BYTES:
        raise TooLargeError(f"the body is larger than {MAX_BODY_BYTES} bytes")
    return b"".join(chunks)


def _failed(status: int, code: RpcCode, message: str, kind: str) -> Response:
    headers = {"Retry-After": str(RETRY_AFTER_S)} if status == 503 else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(failure(code, message, kind), status, headers, media_type=kind)


def _bearer(authorization: str) -> str:
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
