"""The delivery against receivers that are well, busy, broken, slow, or gone."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as pb

from ragotel.delivery import Counters, Delivery, Tally
from ragotel.settings import resolve_settings
from receiver import Receiver, Reply, grpc_receiver, http_receiver, wait_until
from requests_to_deliver import FakeRequest

MIB = 1024 * 1024


def open_delivery(endpoint: str, **keywords: Any) -> Delivery:
    return Delivery(resolve_settings(service_name="bot", endpoint=endpoint, **keywords))


def delivered(spans: int, requests: int) -> Counters:
    return Counters(Tally(spans, requests), Tally(spans, requests), {})


def test_requests_arrive_with_resource_and_headers(receiver: Receiver, url: str) -> None:
    """Spans, resource, path, headers and compression are as OTLP wants them."""
    delivery = open_delivery(url, headers={"authorization": "Bearer x"}, resource={"team": "a"})
    assert delivery.submit(FakeRequest(1, "hello", span_count=2))
    assert delivery.flush()
    delivery.shutdown()
    assert receiver.spans == [{"name": "rag.request", "n": 1, "rag.prompt.text": "hello"}] * 2
    headers, resource = receiver.headers[0], receiver.resources[0]
    assert {
        k: headers[k] for k in ("path", "authorization", "content-type", "content-encoding")
    } == {
        "path": "/v1/traces",
        "authorization": "Bearer x",
        "content-type": "application/x-protobuf",
        "content-encoding": "gzip",
    }
    assert (resource["service.name"], resource["team"]) == ("bot", "a")
    assert delivery.counters() == delivered(2, 1)


def test_without_flush_requests_arrive_within_the_interval(receiver: Receiver, url: str) -> None:
    """Nobody has to flush, and requests that come together travel together."""
    delivery = open_delivery(url, batch_interval_s=0.2)
    for n in range(20):
        delivery.submit(FakeRequest(n))
    assert receiver.wait(lambda: len(receiver.spans) == 20)
    assert receiver.messages == 1
    delivery.shutdown()


def test_batches_stay_below_the_limit(receiver: Receiver, url: str) -> None:
    """Twenty requests of 300 KB, 6 MB together, go in messages that a 4 MiB receiver takes."""
    delivery = open_delivery(url)
    for n in range(20):
        delivery.submit(FakeRequest(n, "x" * 300_000))
    assert delivery.flush()
    delivery.shutdown()
    assert receiver.counts() == dict.fromkeys(range(20), 1)
    assert max(receiver.sizes) <= 3 * MIB


def test_over_sized_span_is_trimmed_alone(receiver: Receiver, url: str) -> None:
    """A prompt of 5 MB is cut and says so; the requests beside it arrive as they were."""
    delivery = open_delivery(url)
    for n, text in enumerate(["small", "x" * 5_000_000, "small"]):
        delivery.submit(FakeRequest(n, text))
    assert delivery.flush()
    delivery.shutdown()
    modes = {span["n"]: span.get("rag.content_mode") for span in receiver.spans}
    assert modes == {0: None, 1: "truncated", 2: None}
    assert max(receiver.sizes) <= 3 * MIB


def test_failing_request_costs_itself_only(receiver: Receiver, url: str) -> None:
    """A request that cannot be encoded is counted, and the next ones arrive."""
    delivery = open_delivery(url)
    losses: list[tuple[str, int, int]] = []
    delivery.on_loss(lambda *loss: losses.append(loss))
    for n in range(3):
        delivery.submit(FakeRequest(n, span_count=2, fails=n == 1))
    assert not delivery.flush(), "a loss is no success"
    assert receiver.wait(lambda: bool(receiver.named("ragotel.loss")))
    delivery.shutdown()
    assert receiver.counts() == {0: 2, 2: 2}
    assert delivery.counters() == Counters(Tally(6, 3), Tally(4, 2), {"encode_failed": Tally(2, 1)})
    assert losses == [("encode_failed", 2, 1)]
    assert receiver.named("ragotel.loss") == [
        {
            "name": "ragotel.loss",
            "rag.schema": 1,
            "rag.loss.cause": "encode_failed",
            "rag.loss.spans": 2,
            "rag.loss.requests": 1,
        }
    ]


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_busy_receiver_is_tried_again(receiver: Receiver, url: str, status: int) -> None:
    """An answer that may pass costs nothing: the same message arrives at the next try."""
    receiver.reply = lambda number: Reply(status, {"Retry-After": "0"}) if number < 3 else Reply()
    delivery = open_delivery(url)
    delivery.submit(FakeRequest(1))
    assert delivery.flush()
    delivery.shutdown()
    assert (receiver.messages, receiver.counts()) == (3, {1: 1})


@pytest.mark.parametrize("status", [400, 401, 404])
def test_refused_message_is_counted_and_not_repeated(
    receiver: Receiver, url: str, status: int
) -> None:
    """A refusal is final; its loss is told with the next message that arrives."""
    receiver.reply = lambda number: Reply(status if number == 1 else 200)
    delivery = open_delivery(url)
    delivery.submit(FakeRequest(1, span_count=3))
    assert not delivery.flush()
    delivery.submit(FakeRequest(2))
    assert delivery.flush()
    delivery.shutdown()
    assert (receiver.messages, receiver.counts()) == (2, {2: 1})
    assert receiver.counts("rag.loss.cause") == {"export_failed": 1}
    assert delivery.counters().lost == {"export_failed": Tally(3, 1)}


def test_smaller_receiver_gets_smaller_messages(receiver: Receiver, url: str) -> None:
    """A message that is too large for this receiver is split until it fits."""
    receiver.reply = lambda number: Reply(413 if number in (1, 2) else 200)
    delivery = open_delivery(url)
    for n in range(8):
        delivery.submit(FakeRequest(n, "x" * 1000))
    assert delivery.flush()
    delivery.shutdown()
    assert receiver.counts() == dict.fromkeys(range(8), 1)
    assert receiver.messages == 5


def test_rejected_spans_are_counted(receiver: Receiver, url: str) -> None:
    """A receiver that throws spans away and says so is believed."""
    answer = pb.ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = 2
    answer.partial_success.error_message = "too old"
    receiver.reply = lambda number: Reply(body=answer.SerializeToString() if number == 1 else b"")
    delivery = open_delivery(url)
    delivery.submit(FakeRequest(1, span_count=5))
    delivery.flush()
    delivery.shutdown()
    assert delivery.counters() == Counters(Tally(5, 1), Tally(3, 1), {"rejected": Tally(2, 0)})


def test_a_number_of_rejected_spans_that_cannot_be_is_none(receiver: Receiver, url: str) -> None:
    """Less than nothing was thrown away: nothing was."""
    answer = pb.ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = -1
    receiver.reply = lambda number: Reply(body=answer.SerializeToString())
    delivery = open_delivery(url)
    delivery.submit(FakeRequest(1, span_count=5))
    assert delivery.flush()
    delivery.shutdown()
    assert delivery.counters() == delivered(5, 1)


def test_receiver_that_starts_later_gets_everything_once(receiver: Receiver) -> None:
    """A service starts before its collector: what it recorded waits and arrives once."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    delivery = open_delivery(f"http://127.0.0.1:{port}", batch_interval_s=0.01)
    for n in range(10):
        delivery.submit(FakeRequest(n))
    assert not delivery.flush(0.3)
    with http_receiver(receiver, port):
        assert delivery.flush(20)
        delivery.shutdown()
    assert receiver.counts() == dict.fromkeys(range(10), 1)


def test_receiver_that_restarts_gets_everything_once(receiver: Receiver) -> None:
    """A receiver that goes away in the middle and comes back misses nothing."""
    with http_receiver(receiver) as url:
        delivery = open_delivery(url, batch_interval_s=0.01)
        delivery.submit(FakeRequest(0))
        assert delivery.flush()
    for n in range(1, 10):
        delivery.submit(FakeRequest(n))
    assert not delivery.flush(0.3)
    with http_receiver(receiver, int(url.rsplit(":", 1)[1])):
        assert delivery.flush(20)
        delivery.shutdown()
    assert receiver.counts() == dict.fromkeys(range(10), 1)


def test_queue_is_bounded_and_losses_are_told(receiver: Receiver, url: str) -> None:
    """A receiver that hangs fills the queue to its limit; the rest is counted and told later."""
    receiver.reply = lambda number: Reply(delay_s=60 if number == 1 else 0)
    delivery = open_delivery(url, queue_bytes=100_000, batch_interval_s=0.0)
    assert delivery.submit(FakeRequest(0))
    assert wait_until(lambda: receiver.messages == 1)
    taken = sum(delivery.submit(FakeRequest(n, "x" * 9_800)) for n in range(1, 31))
    assert taken == 9
    receiver.released.set()
    assert delivery.flush()
    assert receiver.wait(lambda: bool(receiver.named("ragotel.loss")))
    delivery.shutdown()
    assert delivery.counters() == Counters(
        Tally(31, 31), Tally(10, 10), {"queue_full": Tally(21, 21)}
    )
    assert sum(span["rag.loss.requests"] for span in receiver.named("ragotel.loss")) == 21


@pytest.mark.parametrize(
    ("queue_bytes", "encoding_s", "most"), [(100_000, 0.0, 5), (1 << 20, 0.02, 2)]
)
def test_what_has_piled_up_goes_together(
    receiver: Receiver, url: str, queue_bytes: int, encoding_s: float, most: int
) -> None:
    """After a slow answer all that waits is one message: a request each would never catch up.

    However long it takes to encode it; of a queue that is full a message takes a quarter.
    """
    receiver.reply = lambda number: Reply(delay_s=60 if number == 1 else 0)
    delivery = open_delivery(url, queue_bytes=queue_bytes, batch_interval_s=0.0)
    delivery.submit(FakeRequest(0))
    assert wait_until(lambda: receiver.messages == 1)
    for n in range(1, 41):
        assert delivery.submit(FakeRequest(n, "x" * 2000, encoding_s=encoding_s))
    receiver.released.set()
    assert delivery.flush()
    delivery.shutdown()
    assert receiver.counts() == dict.fromkeys(range(41), 1)
    assert receiver.messages <= most


def test_request_beyond_the_whole_limit_is_named_so(url: str) -> None:
    """One request that could never fit has a cause of its own."""
    delivery = open_delivery(url, queue_bytes=1000)
    assert not delivery.submit(FakeRequest(1, "x" * 2000))
    assert delivery.counters().lost == {"too_large": Tally(1, 1)}
    delivery.shutdown()


def test_shutdown_is_bounded_and_counts_what_it_leaves(receiver: Receiver, url: str) -> None:
    """With a receiver that never answers the end comes in time, and all is accounted for."""
    receiver.reply = lambda number: Reply(delay_s=60)
    delivery = open_delivery(url, batch_interval_s=0.0)
    for n in range(5):
        delivery.submit(FakeRequest(n, span_count=2))
    assert wait_until(lambda: receiver.messages == 1)
    delivery.shutdown(0.3)
    counters = delivery.counters()
    assert (counters.offered, counters.delivered) == (Tally(10, 5), Tally(0, 0))
    assert counters.lost == {"shutdown": Tally(10, 5)}
    assert not delivery.submit(FakeRequest(9))
    assert delivery.counters().lost == {"shutdown": Tally(11, 6)}


def test_a_proxy_gets_the_whole_address(
    receiver: Receiver, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a receiver in plain HTTP: a tunnel to another port than TLS's is what proxies refuse."""
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("http_proxy", url.replace("//", "//me:secret@"))
    delivery = open_delivery("http://collector.invalid:4318")
    delivery.submit(FakeRequest(1))
    assert delivery.flush()
    delivery.shutdown()
    (headers,) = receiver.headers
    assert headers["path"] == "http://collector.invalid:4318/v1/traces"
    assert headers["host"] == "collector.invalid:4318"
    assert headers["proxy-authorization"] == "Basic bWU6c2VjcmV0"
    assert "authorization" not in headers


def test_a_receiver_that_has_moved_is_not_followed_but_named(receiver: Receiver, url: str) -> None:
    """What is sent goes where it was told to go; the log says where that points to now."""
    receiver.reply = lambda number: Reply(301, {"Location": "https://new.example/v1/traces"})
    delivery = open_delivery(url)
    delivery.submit(FakeRequest(1))
    assert not delivery.flush()
    delivery.shutdown()
    assert (receiver.messages, delivery.counters().lost) == (1, {"export_failed": Tally(1, 1)})


def test_what_a_receiver_says_is_one_line_of_the_log(
    receiver: Receiver, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever it answers: no second line that somebody takes for another, no colours."""
    receiver.reply = lambda number: Reply(400, body=b"no\r\nERROR all is lost\x1b[31m\0")
    delivery = open_delivery(url)
    delivery.submit(FakeRequest(1))
    delivery.flush()
    delivery.shutdown()
    told = [record.getMessage() for record in caplog.records if "gave up" in record.getMessage()]
    assert told == ["ragotel gave up a message of 1 spans: HTTP 400 no ERROR all is lost [31m"]


def test_an_answer_that_never_ends_is_none() -> None:
    """One byte after the other keeps no message beyond its time; the next receiver gets it."""
    is_over = threading.Event()

    def answer_slowly(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            while not is_over.wait(0.05):
                with suppress(OSError):
                    connection.sendall(b"y")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        slow = threading.Thread(target=answer_slowly, args=(listener,))
        slow.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        delivery = open_delivery(url, timeout_s=0.3, retry_s=0.2)
        delivery.submit(FakeRequest(1))
        assert not delivery.flush()
        is_over.set()
        slow.join()
    delivery.shutdown()
    assert delivery.counters().lost == {"export_failed": Tally(1, 1)}


def test_over_grpc(receiver: Receiver) -> None:
    """gRPC carries the same bytes, with metadata, and a busy receiver is tried again."""
    codes = [grpc.StatusCode.UNAVAILABLE]
    with grpc_receiver(receiver, codes) as url:
        delivery = open_delivery(url, protocol="grpc", headers={"Token": "x"})
        for n in range(20):
            delivery.submit(FakeRequest(n, "x" * 300_000))
        assert delivery.flush()
        delivery.shutdown()
    assert receiver.counts() == dict.fromkeys(range(20), 1)
    assert receiver.headers[0]["token"] == "x"
    assert receiver.resources[0]["service.name"] == "bot"
    assert delivery.counters() == delivered(20, 20)


def test_grpc_receiver_with_a_smaller_limit(receiver: Receiver) -> None:
    """A message over the server's limit is split instead of lost."""
    with grpc_receiver(receiver, []) as url:
        delivery = open_delivery(url, protocol="grpc", batch_bytes=8 * MIB)
        for n in range(20):
            delivery.submit(FakeRequest(n, "x" * 300_000))
        assert delivery.flush()
        delivery.shutdown()
    assert receiver.counts() == dict.fromkeys(range(20), 1)


RETRY_AT_ONCE = RetryInfo(retry_delay=Duration(nanos=1_000)).SerializeToString()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("google.rpc.retryinfo-bin", RETRY_AT_ONCE),
        (
            "grpc-status-details-bin",
            Status(
                code=8,
                details=[
                    AnyMessage(
                        type_url="type.googleapis.com/google.rpc.RetryInfo", value=RETRY_AT_ONCE
                    )
                ],
            ).SerializeToString(),
        ),
    ],
)
def test_an_exhausted_grpc_receiver_that_names_a_time_gets_the_same_message(
    receiver: Receiver, key: str, value: bytes
) -> None:
    """It is busy, and says so in either of two places: nothing is split, and nothing lost."""
    codes = [grpc.StatusCode.RESOURCE_EXHAUSTED] * 3
    with grpc_receiver(receiver, codes, trailers=((key, value),)) as url:
        delivery = open_delivery(url, protocol="grpc", batch_interval_s=60)
        for n in range(3):
            delivery.submit(FakeRequest(n))
        assert delivery.flush()
        delivery.shutdown()
    assert (receiver.messages, receiver.counts()) == (4, dict.fromkeys(range(3), 1))


def test_a_grpc_receiver_that_calls_too_large_out_of_range_gets_halves(receiver: Receiver) -> None:
    """As those written in Rust do; tried again as it is, the message would never arrive."""
    words = "Error, decoded message length too large: found 5 bytes, the limit is: 4 bytes"
    with grpc_receiver(receiver, [grpc.StatusCode.OUT_OF_RANGE], words) as url:
        delivery = open_delivery(url, protocol="grpc", batch_interval_s=60)
        for n in range(4):
            delivery.submit(FakeRequest(n))
        assert delivery.flush()
        delivery.shutdown()
    assert (receiver.messages, receiver.counts()) == (3, dict.fromkeys(range(4), 1))


def test_grpc_refusal_is_counted(receiver: Receiver) -> None:
    """A status that cannot pass is final."""
    with grpc_receiver(receiver, [grpc.StatusCode.UNAUTHENTICATED]) as url:
        delivery = open_delivery(url, protocol="grpc")
        delivery.submit(FakeRequest(1))
        assert not delivery.flush()
        delivery.shutdown()
    assert delivery.counters().lost == {"export_failed": Tally(1, 1)}
