"""A receiver of OTLP in the test's own process: keeps what arrives, answers as it is told."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, NamedTuple

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as pb_grpc


class Reply(NamedTuple):
    """How to answer one message."""

    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})
    body: bytes = b""
    delay_s: float = 0.0


def attribute(pair: Any) -> Any:
    return getattr(pair.value, pair.value.WhichOneof("value"))


class Receiver:
    """Collects spans as plain dicts; `reply` decides on each message, by its number from 1."""

    def __init__(self) -> None:
        self.reply: Callable[[int], Reply] = lambda number: Reply()
        self.messages = 0
        self.sizes: list[int] = []
        self.headers: list[dict[str, str]] = []
        self.resources: list[dict[str, Any]] = []
        self.spans: list[dict[str, Any]] = []
        self.changed = threading.Condition()
        self.released = threading.Event()

    def take(self, raw: bytes, headers: dict[str, str]) -> Reply:
        with self.changed:
            self.messages += 1
            reply = self.reply(self.messages)
        self.released.wait(reply.delay_s)
        if reply.status == 200:
            body = gzip.decompress(raw) if headers.get("content-encoding") == "gzip" else raw
            self.keep(pb.ExportTraceServiceRequest.FromString(body), headers, len(body))
        return reply

    def keep(self, request: Any, headers: dict[str, str], size: int) -> None:
        with self.changed:
            self.sizes.append(size)
            self.headers.append(headers)
            for resource_spans in request.resource_spans:
                resource = {p.key: attribute(p) for p in resource_spans.resource.attributes}
                self.resources.append(resource)
                for span in resource_spans.scope_spans[0].spans:
                    attributes = {p.key: attribute(p) for p in span.attributes}
                    self.spans.append({"name": span.name, **attributes})
            self.changed.notify_all()

    def named(self, name: str) -> list[dict[str, Any]]:
        with self.changed:
            return [span for span in self.spans if span["name"] == name]

    def counts(self, key: str = "n") -> Counter[Any]:
        """How often each value of an attribute arrived."""
        with self.changed:
            return Counter(span[key] for span in self.spans if key in span)

    def wait(self, condition: Callable[[], bool], timeout_s: float = 20.0) -> bool:
        with self.changed:
            return self.changed.wait_for(condition, timeout_s)


@contextmanager
def http_receiver(receiver: Receiver, port: int = 0) -> Iterator[str]:
    """Serve *receiver* over HTTP and give its base URL."""

    connections: list[socket.socket] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            connections.append(self.connection)

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {k.lower(): v for k, v in self.headers.items()}
            reply = receiver.take(raw, {**headers, "path": self.path})
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Clients that die in the middle are what these tests are about."""

    server = Server(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        receiver.released.set()
        server.shutdown()
        server.server_close()
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        thread.join()


@contextmanager
def grpc_receiver(
    receiver: Receiver,
    codes: list[grpc.StatusCode],
    words: str = "as told",
    trailers: tuple[tuple[str, bytes], ...] = (),
) -> Iterator[str]:
    """Serve over gRPC with the default limit of 4 MiB; the first messages are answered *codes*."""

    class Service(pb_grpc.TraceServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:
            receiver.messages += 1
            if codes:
                context.set_trailing_metadata(trailers)
                context.abort(codes.pop(0), words)
            receiver.keep(request, dict(context.invocation_metadata()), request.ByteSize())
            return pb.ExportTraceServiceResponse()

    with ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool)
        pb_grpc.add_TraceServiceServicer_to_server(Service(), server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.stop(None).wait()


def wait_until(condition: Callable[[], bool], timeout_s: float = 20.0) -> bool:
    """Wait for what another thread or process makes true."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
