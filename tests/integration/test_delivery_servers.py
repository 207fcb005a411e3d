"""Servers that fork workers: what the workers record arrives, also when they are recycled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from receiver import Receiver, wait_until

TESTS = Path(__file__).resolve().parent.parent
PRELUDE = """
import os, sys
sys.path.insert(0, os.environ["TESTS"])
from requests_to_deliver import FakeRequest
from ragotel.delivery import Delivery
from ragotel.settings import resolve_settings
delivery = Delivery(resolve_settings(batch_interval_s=60, exit_timeout_s=3))
"""


@contextmanager
def running(folder: Path, url: str, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server in *folder*, ended by SIGTERM."""
    environment = {**os.environ, "RAGOTEL_ENDPOINT": url, "TESTS": str(TESTS)}
    log = (folder / "log").open("wb")
    with subprocess.Popen(
        [sys.executable, "-m", *command], cwd=folder, env=environment, stdout=log, stderr=log
    ) as server:
        try:
            yield server
        finally:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()
            log.close()


def write(folder: Path, body: str) -> None:
    (folder / "service.py").write_text(PRELUDE + textwrap.dedent(body))


@pytest.mark.slow
def test_celery_child_recycled_after_each_task(
    receiver: Receiver, url: str, tmp_path: Path
) -> None:
    """Prefork with one task per child: ten jobs, ten requests, each once."""
    pytest.importorskip("celery")
    write(
        tmp_path,
        """
        from celery import Celery
        app = Celery("service", broker="filesystem://")
        app.conf.broker_transport_options = {
            "data_folder_in": "broker", "data_folder_out": "broker", "control_folder": "control",
        }
        app.conf.worker_prefetch_multiplier = 1

        @app.task
        def job(n):
            delivery.submit(FakeRequest(n))
        """,
    )
    (tmp_path / "broker").mkdir()
    (tmp_path / "control").mkdir()
    send = "import service; [service.job.delay(n) for n in range(10)]"
    environment = {**os.environ, "TESTS": str(TESTS)}
    subprocess.run([sys.executable, "-c", send], cwd=tmp_path, env=environment, check=True)
    options = ("--pool=prefork", "--concurrency=1", "--max-tasks-per-child=1", "--loglevel=INFO")
    with running(tmp_path, url, "celery", "-A", "service", "worker", *options):
        arrived = receiver.wait(lambda: len(receiver.named("rag.request")) >= 10, 60)
    assert arrived, (tmp_path / "log").read_text()
    assert receiver.counts() == dict.fromkeys(range(10), 1)


def test_gunicorn_with_preload(receiver: Receiver, url: str, tmp_path: Path) -> None:
    """Workers forked from a loaded application deliver, and at their end drain."""
    pytest.importorskip("gunicorn")
    write(
        tmp_path,
        """
        delivery.submit(FakeRequest(1000))

        def app(environ, start_response):
            delivery.submit(FakeRequest(int(environ["QUERY_STRING"])))
            start_response("200 OK", [("Content-Type", "text/plain")])
            return [b"ok"]
        """,
    )
    options = ("--preload", "--workers=2", "--bind=127.0.0.1:0", "--log-level=info")
    with running(tmp_path, url, "gunicorn", *options, "service:app"):
        assert wait_until(lambda: "Listening at: " in (tmp_path / "log").read_text(), 30)
        base = (tmp_path / "log").read_text().split("Listening at: ")[1].split()[0]
        for n in range(20):
            assert ask(f"{base}/?{n}") == b"ok"
    assert receiver.counts() == {**dict.fromkeys(range(20), 1), 1000: 1}


def ask(url: str) -> bytes:
    """Ask until the server answers."""
    end = time.monotonic() + 20
    while True:
        try:
            with urllib.request.urlopen(url) as answer:
                return bytes(answer.read())
        except urllib.error.URLError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def test_gevent(receiver: Receiver, url: str) -> None:
    """Greenlets go on in both processes of a fork; each request arrives once all the same."""
    pytest.importorskip("gevent")
    body = """
    from gevent import monkey
    monkey.patch_all()
    import os, sys, gevent, ragotel
    ragotel.configure("bot", batch_interval_s=0.05)

    @ragotel.retrieve
    def search(query):
        gevent.sleep(0.01)
        return [{"id": "a", "score": 0.5}]

    @ragotel.request
    def answer(question):
        gevent.joinall([gevent.spawn(search, question) for _ in range(2)])
        return "yes"

    gevent.joinall([gevent.spawn(answer, f"q{n}") for n in range(20)])
    if os.fork() == 0:
        answer("of the child")
        sys.exit()
    os.wait()
    killed = gevent.spawn(answer, "killed")
    gevent.sleep(0.003)
    killed.kill()
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(body)],
        env={**os.environ, "RAGOTEL_ENDPOINT": url},
        check=True,
        timeout=60,
    )
    asked = {span["gen_ai.retrieval.query.text"] for span in receiver.named("retrieval")}
    outcomes = Counter(span["rag.outcome"] for span in receiver.named("rag.request"))
    assert asked >= {"of the child", *(f"q{n}" for n in range(20))}
    assert outcomes == {"ok": 21, "cancelled": 1}
