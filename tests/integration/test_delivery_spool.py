"""Receivers that are away, services that are killed, disks that are full: nothing is lost."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragotel.delivery import Delivery, Tally
from ragotel.delivery.frames import Frame, Meta, scan
from ragotel.delivery.ledger import Ledger
from ragotel.delivery.spool import Spool
from ragotel.settings import resolve_settings
from receiver import Receiver, Reply, grpc_receiver, http_receiver, wait_until
from requests_to_deliver import FakeRequest
from served import find_free_port

TESTS = Path(__file__).resolve().parent.parent
PRELUDE = """
import os, signal, sys, threading, time
sys.path.insert(0, sys.argv[1])
from requests_to_deliver import FakeRequest
from ragotel.delivery import Delivery
from ragotel.settings import resolve_settings
settings = {"endpoint": sys.argv[2], "spool": sys.argv[3], "batch_interval_s": 0.05}
settings.update(exit_timeout_s=3, timeout_s=20)
def wait_until(condition):
    while not condition():
        time.sleep(0.01)
"""


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@pytest.fixture
def url(receiver: Receiver) -> Iterator[str]:
    with http_receiver(receiver) as base:
        yield base


def start(url: str, folder: Path, body: str) -> subprocess.Popen[str]:
    """Run *body* in a process of its own."""
    program = PRELUDE + textwrap.dedent(body)
    return subprocess.Popen(
        [sys.executable, "-c", program, str(TESTS), url, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )


def run(url: str, folder: Path, body: str) -> int:
    process = start(url, folder, body)
    process.communicate(timeout=60)
    return process.returncode


def delivery_to(url: str, folder: Path, **settings: Any) -> Delivery:
    return Delivery(
        resolve_settings(endpoint=url, spool=folder, **{"batch_interval_s": 0.05, **settings})
    )


KILLED_WHEN_SPOOLED = """
    delivery = Delivery(resolve_settings(**settings))
    for n in range({count}):
        delivery.submit(FakeRequest({first} + n, "x" * 1000))
        if n % 10 == 9:
            wait_until(lambda: delivery.counters().spooled.requests > n - 1)
    wait_until(lambda: delivery.counters().spooled.requests == {count})
    {ending}
"""


def test_collector_down_from_the_start_and_the_service_killed(
    receiver: Receiver, folder: Path
) -> None:
    """What a service that was killed had written arrives once, in order, after its restart."""
    port = find_free_port()
    url = f"http://127.0.0.1:{port}"
    body = KILLED_WHEN_SPOOLED.format(count=50, first=0, ending="os.kill(os.getpid(), 9)")
    assert run(url, folder, body) == -signal.SIGKILL
    assert run(url, folder, body.replace("(0 +", "(50 +")) == -signal.SIGKILL
    with http_receiver(receiver, port):
        restarted = delivery_to(url, folder)
        assert receiver.wait(lambda: len(receiver.spans) == 100)
        assert wait_until(lambda: not list(folder.iterdir()))
        counters = restarted.counters()
        restarted.shutdown()
    assert [span["n"] for span in receiver.spans] == list(range(100))
    assert (counters.offered, counters.replayed, counters.lost) == (Tally(), Tally(100, 100), {})


def test_collector_that_comes_back(receiver: Receiver, folder: Path) -> None:
    """An outage costs nothing and no memory: what was spooled goes first, then the rest."""
    port = find_free_port()
    url = f"http://127.0.0.1:{port}"
    delivery = delivery_to(url, folder, queue_bytes=20_000)
    for n in range(60):
        delivery.submit(FakeRequest(n, "x" * 5000))
        assert wait_until(lambda n=n: delivery.counters().spooled.requests > n - 2)
    assert wait_until(lambda: delivery.counters().spooled.requests == 60)
    assert delivery.flush(5) is False
    with http_receiver(receiver, port):
        assert receiver.wait(lambda: len(receiver.spans) == 60)
        delivery.submit(FakeRequest(60))
        assert delivery.flush(20) is True
        delivery.shutdown()
    assert [span["n"] for span in receiver.spans] == list(range(61))
    assert delivery.counters().lost == {}
    assert list(folder.iterdir()) == []


def test_an_outage_of_many_messages_is_sent_in_few(receiver: Receiver, folder: Path) -> None:
    """What was written once a second is joined again, whole and in order, also what others left."""
    port = find_free_port()
    url = f"http://127.0.0.1:{port}"
    body = KILLED_WHEN_SPOOLED.format(count=60, first=0, ending="os.kill(os.getpid(), 9)")
    assert run(url, folder, body) == -signal.SIGKILL
    frames = [frame for path in folder.glob("*/*.spool") for frame in _frames(path)]
    assert len(frames) >= 6
    with http_receiver(receiver, port):
        restarted = delivery_to(url, folder)
        assert receiver.wait(lambda: len(receiver.spans) == 60)
        assert wait_until(lambda: not list(folder.iterdir()))
        restarted.shutdown()
    assert [span["n"] for span in receiver.spans] == list(range(60))
    assert receiver.messages == 1
    assert restarted.counters().replayed == Tally(60, 60)


def _frames(path: Path) -> list[Frame]:
    with path.open("rb") as file:
        return list(scan(file.fileno()))


def test_one_message_that_is_refused_costs_itself(receiver: Receiver, folder: Path) -> None:
    """Joined messages go alone after a refusal, and the others arrive."""
    port = find_free_port()
    url = f"http://127.0.0.1:{port}"
    body = KILLED_WHEN_SPOOLED.format(count=60, first=0, ending="os.kill(os.getpid(), 9)")
    assert run(url, folder, body) == -signal.SIGKILL
    receiver.reply = lambda number: Reply(400 if number <= 2 else 200)
    with http_receiver(receiver, port):
        restarted = delivery_to(url, folder, retry_s=0)
        assert wait_until(lambda: not list(folder.iterdir()))
        restarted.shutdown()
    counters = restarted.counters()
    (cause,) = counters.lost
    assert cause == "export_failed"
    assert 0 < counters.lost[cause].requests < 60
    assert len(receiver.counts()) == 60 - counters.lost[cause].requests


def test_exit_while_the_receiver_hangs(receiver: Receiver, url: str, folder: Path) -> None:
    """A process that ends in the middle of an outage leaves all of its requests on the disk."""
    receiver.reply = lambda number: Reply(delay_s=60)
    body = """
        delivery = Delivery(resolve_settings(**{**settings, "batch_interval_s": 60}))
        for n in range(200):
            delivery.submit(FakeRequest(n, "x" * 20_000))
    """
    assert run(url, folder, body) == 0
    assert receiver.counts() == {}
    receiver.reply = lambda number: Reply()
    restarted = delivery_to(url, folder)
    assert receiver.wait(lambda: len(receiver.counts()) == 200)
    restarted.shutdown()
    assert receiver.counts() == dict.fromkeys(range(200), 1)


@pytest.mark.parametrize("status", [503, 500])
def test_answers_that_may_pass(receiver: Receiver, url: str, folder: Path, status: int) -> None:
    """A receiver that answers with an error of its own loses nothing, however often it does."""
    receiver.reply = lambda number: Reply(status if number <= 6 else 200)
    delivery = delivery_to(url, folder)
    delivery.submit(FakeRequest(1))
    assert receiver.wait(lambda: len(receiver.spans) == 1)
    delivery.shutdown()
    assert (receiver.counts(), delivery.counters().lost) == ({1: 1}, {})
    assert delivery.counters().spooled == delivery.counters().replayed == Tally(1, 1)


def test_over_grpc(receiver: Receiver, folder: Path) -> None:
    """The same file is sent over gRPC by a process that was configured so."""
    url = f"http://127.0.0.1:{find_free_port()}"
    body = KILLED_WHEN_SPOOLED.format(count=10, first=0, ending="os._exit(0)")
    assert run(url, folder, body) == 0
    with grpc_receiver(receiver, []) as grpc_url:
        restarted = delivery_to(grpc_url, folder, protocol="grpc")
        assert receiver.wait(lambda: len(receiver.counts()) == 10)
        restarted.shutdown()
    assert receiver.counts() == dict.fromkeys(range(10), 1)


def test_several_processes_share_a_spool(receiver: Receiver, folder: Path) -> None:
    """Forked workers each write their own; whoever lives on sends the others' once."""
    port = find_free_port()
    url = f"http://127.0.0.1:{port}"
    body = """
        children = []
        for child in range(4):
            if not (pid := os.fork()):
                delivery = Delivery(resolve_settings(**settings))
                for n in range(10):
                    delivery.submit(FakeRequest(child * 10 + n))
                wait_until(lambda: delivery.counters().spooled.requests == 10)
                os.kill(os.getpid(), 9)
            children.append(pid)
        for pid in children:
            os.waitpid(pid, 0)
    """
    assert run(url, folder, body) == 0
    assert len(list(folder.iterdir())) == 4
    waiting = [
        start(url, folder, "Delivery(resolve_settings(**settings)); time.sleep(60)")
        for _ in range(3)
    ]
    try:
        with http_receiver(receiver, port):
            assert receiver.wait(lambda: len(receiver.counts()) == 40)
            assert wait_until(lambda: not list(folder.iterdir()))
    finally:
        for process in waiting:
            process.kill()
            process.wait()
    assert receiver.counts() == dict.fromkeys(range(40), 1)


def test_folder_of_a_process_that_lives_is_left_alone(receiver: Receiver, folder: Path) -> None:
    """A second process does not touch what the first will send itself."""
    port = find_free_port()
    url = f"http://127.0.0.1:{port}"
    ending = "print('ready', flush=True); time.sleep(60)"
    first = start(url, folder, KILLED_WHEN_SPOOLED.format(count=10, first=0, ending=ending))
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == "ready\n"
        spool = Spool(str(folder), 1 << 30, Ledger([]))
        spool.adopt()
        assert not spool.has_messages()
        first.kill()
        first.wait()
        spool.adopt()
        assert spool.has_messages()
        spool.close()
    finally:
        first.kill()
        first.wait()


def test_spool_that_is_full(receiver: Receiver, folder: Path) -> None:
    """What it has no room for is counted by its cause, and the store hears of it."""
    port = find_free_port()
    url = f"http://127.0.0.1:{port}"
    delivery = delivery_to(url, folder, spool_max_bytes=3000, retry_s=0, compression="none")
    for n in range(10):
        delivery.submit(FakeRequest(n, os.urandom(400).hex()))
        assert wait_until(
            lambda n=n: (
                (c := delivery.counters()).spooled.requests
                + sum(tally.requests for tally in c.lost.values())
                == n + 1
            )
        )
    counters = delivery.counters()
    kept = counters.spooled.requests
    assert 1 <= kept < 10
    assert counters.lost == {"spool_full": Tally(10 - kept, 10 - kept)}
    delivery.shutdown()
    with http_receiver(receiver, port):
        restarted = delivery_to(url, folder)
        assert receiver.wait(lambda: bool(receiver.named("ragotel.loss")))
        restarted.shutdown()
    assert receiver.counts() == dict.fromkeys(range(kept), 1)
    (loss,) = receiver.named("ragotel.loss")
    assert (loss["rag.loss.cause"], loss["rag.loss.requests"]) == ("spool_full", 10 - kept)


def test_disk_that_takes_nothing(receiver: Receiver, tmp_path: Path) -> None:
    """Where the folder cannot be written, the memory keeps what waits."""
    port = find_free_port()
    url = f"http://127.0.0.1:{port}"
    (tmp_path / "file").write_text("no folder")
    delivery = delivery_to(url, tmp_path / "file" / "spool")
    delivery.submit(FakeRequest(1))
    with http_receiver(receiver, port):
        assert receiver.wait(lambda: len(receiver.spans) == 1)
        delivery.shutdown()
    assert (receiver.counts(), delivery.counters().lost) == ({1: 1}, {})
    assert delivery.counters().spooled == Tally()


def test_what_others_have_in_the_folder_is_left_alone(receiver: Receiver, folder: Path) -> None:
    """Folders that somebody else locks by a file of that name, and files that are named as ours."""
    for name in ("dpkg/lock", "dpkg/archive.spool", "apt/lock", "notes.txt", ".new-mine/draft"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("mine")
    before = {path: path.is_dir() or path.read_text() for path in folder.rglob("*")}
    os.utime(folder / ".new-mine", (0, 0))
    port = find_free_port()
    delivery = delivery_to(f"http://127.0.0.1:{port}", folder)
    delivery.submit(FakeRequest(1))
    assert wait_until(lambda: delivery.counters().spooled.spans == 1)
    with http_receiver(receiver, port):
        assert receiver.wait(lambda: len(receiver.spans) == 1)
        delivery.shutdown()
    assert {path: path.is_dir() or path.read_text() for path in folder.rglob("*")} == before


def test_folder_that_is_deleted_meanwhile(receiver: Receiver, folder: Path) -> None:
    """An open file has its messages still: they are written again, and the next process has all."""
    delivery = delivery_to("http://127.0.0.1:9", folder)
    for n in range(3):
        delivery.submit(FakeRequest(n))
        assert wait_until(lambda n=n: delivery.counters().spooled.spans == n + 1)
        if n < 2:
            shutil.rmtree(folder)
    shutil.rmtree(folder)
    delivery.shutdown(1.0)
    with http_receiver(receiver) as url:
        again = delivery_to(url, folder)
        assert receiver.wait(lambda: len(receiver.spans) == 3)
        again.shutdown()
    assert receiver.counts() == dict.fromkeys(range(3), 1)
    assert list(folder.iterdir()) == []


def test_folder_that_is_deleted_while_it_is_empty(receiver: Receiver, folder: Path) -> None:
    """As a cleaner of temporary folders does; the next outage finds a new one."""
    port = find_free_port()
    delivery = delivery_to(f"http://127.0.0.1:{port}", folder)
    delivery.submit(FakeRequest(1))
    assert wait_until(lambda: delivery.counters().spooled.spans == 1)
    with http_receiver(receiver, port):
        assert wait_until(lambda: delivery.counters().delivered.spans == 1)
    shutil.rmtree(folder)
    delivery.submit(FakeRequest(2))
    assert wait_until(lambda: delivery.counters().spooled.spans == 2)
    delivery.shutdown(1.0)
    assert delivery.counters().lost == {}
    assert len(list(folder.glob("*/*.spool"))) == 1


def test_one_spool_named_in_two_ways_is_one(
    receiver: Receiver, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two deliveries of a process do not send each other's, wherever the process has gone."""
    monkeypatch.chdir(folder.parent)
    one = delivery_to("http://127.0.0.1:9", Path(folder.name))
    one.submit(FakeRequest(1))
    assert wait_until(lambda: one.counters().spooled.spans == 1)
    monkeypatch.chdir("/")
    with http_receiver(receiver) as url:
        other = delivery_to(url, folder)
        other.submit(FakeRequest(2))
        assert other.flush()
        assert receiver.counts() == {2: 1}
        one.shutdown(1.0)
        other.shutdown()
    assert one.counters().spooled == Tally(1, 1)


def test_disk_that_is_full(folder: Path) -> None:
    """A write that ends half-way leaves the file as it was, and what is in it is sent."""
    body = """
        import resource
        from ragotel.delivery.frames import Frame, Meta, scan
        from ragotel.delivery.ledger import Ledger
        from ragotel.delivery.spool import Spool
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        spool = Spool(sys.argv[3], 1 << 30, Ledger([]))
        answers = [spool.append(bytes([n]) * 4000, Meta(1, 1)) for n in range(4)]
        assert answers == ["", "", "spool_failed", "spool_failed"], answers
        os._exit(0)
    """
    assert run("none", folder, body) == 0
    assert _contents(folder) == ([(4000, b"\x00"), (4000, b"\x01")], {})


def _contents(folder: Path) -> tuple[list[tuple[int, bytes]], dict[str, Tally]]:
    """Take all messages out of a spool: sizes and first bytes; and what was counted as lost."""
    ledger = Ledger([])
    spool = Spool(str(folder), 1 << 30, ledger)
    spool.adopt()
    found = []
    while (stored := spool.oldest()) is not None:
        found.append((len(stored.body), stored.body[:1]))
        spool.remove(stored)
    spool.close()
    return found, ledger.counters().lost


@pytest.mark.parametrize(
    ("damage", "left", "lost"),
    [
        (lambda raw: raw[:-1], b"ab", {"spool_damaged": Tally(3, 2)}),
        (lambda raw: raw[: -len(raw) // 6], b"ab", {"spool_damaged": Tally(3, 2)}),
        (lambda raw: raw[:250] + b"?" + raw[251:], b"ac", {"spool_damaged": Tally(3, 2)}),
        (lambda raw: raw + b"RGS1 and no more", b"abc", {}),
        (lambda raw: b"", b"", {}),
    ],
)
def test_damaged_files(folder: Path, damage: Any, left: bytes, lost: dict[str, Tally]) -> None:
    """A file whose end is missing, or whose middle is wrong, costs what the damage touches."""
    spool = Spool(str(folder), 1 << 30, Ledger([]))
    for letter in b"abc":
        assert spool.append(bytes([letter]) * 150, Meta(3, 2, {"queue_full": Tally(1, 1)})) == ""
    spool.close()
    (path,) = folder.glob("*/*.spool")
    path.write_bytes(damage(path.read_bytes()))
    found, counted = _contents(folder)
    assert b"".join(first for _, first in found) == left
    assert counted == lost
    assert list(folder.iterdir()) == []


def test_receiver_that_takes_less_than_before(receiver: Receiver, folder: Path) -> None:
    """A message that has become too large is sent in parts."""
    port = find_free_port()
    url = f"http://127.0.0.1:{port}"
    delivery = delivery_to(url, folder, batch_interval_s=60)
    for n in range(8):
        delivery.submit(FakeRequest(n, span_count=2))
    delivery.flush(5)
    assert delivery.counters().spooled == Tally(16, 8)
    real = receiver.take

    def take(raw: bytes, headers: dict[str, str]) -> Reply:
        return Reply(413) if receiver.messages < 1 and not _count(receiver) else real(raw, headers)

    receiver.take = take  # type: ignore[method-assign]
    with http_receiver(receiver, port):
        assert receiver.wait(lambda: sum(receiver.counts().values()) == 16)
        assert delivery.flush(20)
        delivery.shutdown()
    assert receiver.counts() == Counter(dict.fromkeys(range(8), 2))
    assert len(receiver.sizes) == 2
    assert delivery.counters().delivered == Tally(16, 8)


def _count(receiver: Receiver) -> bool:
    """Whether the receiver has refused once; from then on it takes all."""
    is_first = not hasattr(receiver, "has_refused")
    receiver.has_refused = True  # type: ignore[attr-defined]
    return not is_first


def test_killed_at_any_moment_while_the_receiver_comes_and_goes(
    receiver: Receiver, url: str, folder: Path
) -> None:
    """What a process knew to be on the disk or delivered arrives, wherever it was killed."""
    receiver.reply = lambda number: Reply(503 if number % 7 < 4 else 200)
    expected: set[int] = set()
    for round in range(6):
        body = f"""
            delivery = Delivery(resolve_settings(**settings))
            threading.Timer({0.25 + round * 0.13}, os.kill, (os.getpid(), 9)).start()
            for n in range(100_000):
                delivery.submit(FakeRequest({round * 100_000} + n, os.urandom(500).hex()))
                counters = delivery.counters()
                print(counters.delivered.requests + counters.spooled.requests
                      - counters.replayed.requests, flush=True)
                time.sleep(0.001)
        """
        process = start(url, folder, body)
        printed, _ = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        # Requests leave in the order in which they came.
        settled = max((int(line) for line in printed.split("\n")[:-1]), default=0)
        expected.update(range(round * 100_000, round * 100_000 + settled))
    receiver.reply = lambda number: Reply()
    last = delivery_to(url, folder)
    assert receiver.wait(lambda: expected <= set(receiver.counts()))
    assert wait_until(lambda: not list(folder.iterdir()))
    last.shutdown()
    assert len(expected) > 100
    assert last.counters().lost.keys() <= {"spool_damaged"}
