"""Real processes that fork, leave in every way, and are killed: what they recorded arrives once."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from receiver import Receiver, Reply, grpc_receiver

TESTS = Path(__file__).resolve().parent.parent
PRELUDE = """
import multiprocessing, os, signal, sys, threading, time
sys.path.insert(0, sys.argv[1])
from requests_to_deliver import FakeRequest
from ragotel.delivery import Delivery
from ragotel.settings import resolve_settings
settings = {"endpoint": sys.argv[2], "batch_interval_s": 60, "exit_timeout_s": 3}
delivery = Delivery(resolve_settings(**settings))
"""


def run(url: str, body: str, timeout_s: float = 60) -> int:
    """Run *body* in a process of its own and give its exit status."""
    program = PRELUDE + textwrap.dedent(body)
    done = subprocess.run([sys.executable, "-c", program, str(TESTS), url], timeout=timeout_s)
    return done.returncode


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("pass", 0),
        ("sys.exit(3)", 3),
        ("raise LookupError('boom')", 1),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
        ("os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT),
        ("threading.Timer(0.2, os.kill, (os.getpid(), 15)).start(); time.sleep(30)", -15),
    ],
)
def test_end_of_a_process(receiver: Receiver, url: str, ending: str, status: int) -> None:
    """However a process ends, short of SIGKILL, its last request arrives; its status is kept."""
    assert run(url, f"delivery.submit(FakeRequest(1))\n{ending}") == status
    assert receiver.counts() == {1: 1}


def test_handler_of_the_application_is_left_alone(receiver: Receiver, url: str) -> None:
    """An application that handles SIGTERM keeps its handler; its own exit drains."""
    body = """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
        delivery.submit(FakeRequest(1))
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(30)
    """
    assert run(url, body) == 7
    assert receiver.counts() == {1: 1}


def test_end_with_a_receiver_that_hangs_is_bounded(receiver: Receiver, url: str) -> None:
    """A process does not outlive its exit timeout by more than a moment."""
    receiver.reply = lambda number: Reply(delay_s=60)
    assert run(url, "delivery.submit(FakeRequest(1))", timeout_s=30) == 0
    assert receiver.counts() == {}


def test_forked_child_delivers_and_the_parent_s_rows_go_once(receiver: Receiver, url: str) -> None:
    """Parent and child each send their own, also what was pending at the moment of the fork."""
    body = """
        for n in range(5):
            delivery.submit(FakeRequest(n))
        child = os.fork()
        delivery.submit(FakeRequest(100 if child else 200))
        if child:
            os.waitpid(child, 0)
    """
    assert run(url, body) == 0
    assert receiver.counts() == dict.fromkeys([0, 1, 2, 3, 4, 100, 200], 1)
    assert len({resource["process.pid"] for resource in receiver.resources}) == 2


def test_forked_children_deliver_over_grpc(receiver: Receiver) -> None:
    """gRPC too works in children of a process that has already used it."""
    body = """
        delivery = Delivery(resolve_settings(**settings, protocol="grpc"))
        delivery.submit(FakeRequest(0))
        delivery.flush()
        for n in range(1, 4):
            child = os.fork()
            if not child:
                delivery.submit(FakeRequest(n))
                os._exit(0 if delivery.flush(10) else 9)
            assert os.waitpid(child, 0)[1] == 0
    """
    with grpc_receiver(receiver, []) as url:
        assert run(url, body) == 0
    assert receiver.counts() == dict.fromkeys(range(4), 1)


def test_forks_under_load_never_hang(receiver: Receiver, url: str) -> None:
    """Children forked while other threads submit and the worker sends all deliver."""
    body = """
        stop = threading.Event()
        def work():
            n = 1000
            while not stop.is_set():
                delivery.submit(FakeRequest(n, "x" * 5000))
                n += 1
                time.sleep(0.0005)
        threads = [threading.Thread(target=work) for _ in range(3)]
        [t.start() for t in threads]
        children = []
        for n in range(20):
            child = os.fork()
            if not child:
                delivery.submit(FakeRequest(n))
                os._exit(0 if delivery.flush(10) else 9)
            children.append(child)
        codes = {os.waitpid(child, 0)[1] for child in children}
        stop.set()
        [t.join() for t in threads]
        assert codes == {0}, codes
    """
    assert run(url, body) == 0
    counts = receiver.counts()
    assert {n: counts[n] for n in range(20)} == dict.fromkeys(range(20), 1)


def test_child_recycled_after_one_task_delivers(receiver: Receiver, url: str) -> None:
    """A pool whose children leave after one task each loses nothing: ten jobs, ten requests."""
    body = """
        def job(n):
            delivery.submit(FakeRequest(n))
        context = multiprocessing.get_context("fork")
        with context.Pool(2, maxtasksperchild=1) as pool:
            pool.map(job, range(10), chunksize=1)
            pool.close()
            pool.join()
    """
    assert run(url, body) == 0
    assert receiver.counts() == dict.fromkeys(range(10), 1)


def test_terminated_pool_delivers(receiver: Receiver, url: str) -> None:
    """Leaving `with Pool()` ends the children by SIGTERM: what they recorded arrives."""
    body = """
        def job(n):
            delivery.submit(FakeRequest(n))
        with multiprocessing.get_context("fork").Pool(2) as pool:
            pool.map(job, range(10), chunksize=1)
    """
    assert run(url, body) == 0
    assert receiver.counts() == dict.fromkeys(range(10), 1)


def test_fork_that_python_does_not_see(receiver: Receiver, url: str) -> None:
    """A server that forks in C without telling Python is noticed by the process id."""
    body = """
        import ctypes
        delivery.submit(FakeRequest(1))
        delivery.flush()
        child = ctypes.PyDLL(None).fork()
        if not child:
            delivery.submit(FakeRequest(2))
            os._exit(0 if delivery.flush(10) else 9)
        assert os.waitpid(child, 0)[1] == 0
    """
    assert run(url, body) == 0
    assert receiver.counts() == {1: 1, 2: 1}


def test_memory_is_bounded_by_the_limit(receiver: Receiver, url: str) -> None:
    """Prompts of 200 KB at 500 a second against a receiver that takes one a second."""
    receiver.reply = lambda number: Reply(delay_s=1)
    body = """
        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20
        delivery.submit(FakeRequest(0, "x"))
        before, slowest = resident(), 0.0
        for n in range(1, 1501):
            request = FakeRequest(n, f"{n:08d}" * 25_000)
            began = time.perf_counter()
            delivery.submit(request)
            slowest = max(slowest, time.perf_counter() - began)
            time.sleep(0.002)
        growth = resident() - before
        counters = delivery.counters()
        assert growth < 64 + 16, growth
        assert counters.offered.requests == 1501, counters
        assert counters.lost["queue_full"].requests > 500, counters
        os._exit(0)
    """
    assert run(url, body) == 0


def test_sigterm_while_a_lock_is_held(receiver: Receiver, url: str) -> None:
    """A signal that meets the delivery's own code waits until that has let go of its locks."""
    body = """
        queue = delivery._line.queue
        def offer(pending):
            with queue._lock:
                os.kill(os.getpid(), signal.SIGTERM)
                return type(queue).offer(queue, pending)
        delivery.submit(FakeRequest(1))
        queue.offer = offer
        delivery.submit(FakeRequest(2))
        time.sleep(30)
    """
    assert run(url, body) == -signal.SIGTERM
    assert receiver.counts() == {1: 1, 2: 1}


def test_sigterm_at_the_beginning_of_the_end(receiver: Receiver, url: str) -> None:
    """A signal between the first steps of an ordinary end does not keep it from delivering."""
    body = """
        worker = delivery._line.worker
        def stop(timeout_s):
            os.kill(os.getpid(), signal.SIGTERM)
            type(worker).stop(worker, timeout_s)
        delivery.submit(FakeRequest(1))
        worker.stop = stop
        delivery.shutdown()
        time.sleep(30)
    """
    assert run(url, body) == -signal.SIGTERM
    assert receiver.counts() == {1: 1}
