"""Faults under load, short: all that was asked is stored or told; benchmarks/faults.py has more."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import urllib.request
from pathlib import Path

import pytest

from otlp_bodies import body
from receiver import Receiver, Reply, wait_until
from served import REPOSITORY, Served

sys.path.append(str(REPOSITORY / "benchmarks"))

from faults import Times, run_fault
from injected import FAULTS

SHORT = Times(quiet_s=0.5, fault_s=1.5, after_s=0.2, rate=20, warm_up=1)


@pytest.mark.parametrize("name", ["429, spool", "code 252 in rag_prompts"])
def test_nothing_is_missing_after_a_fault(shared_server: Served, tmp_path: Path, name: str) -> None:
    """A gateway that is too busy, and a store with too many parts, cost no request."""
    figures = run_fault(FAULTS[name], SHORT, tmp_path, shared_server)
    assert (figures.missing, figures.lost, figures.textless) == (0, {}, 0)
    assert figures.stored == figures.offered > 20


def test_the_server_says_why_it_takes_no_rows(shared_server: Served) -> None:
    """Once, with the engine's code; senders are told to wait and say nothing for long."""
    told = [line for line in shared_server.output if "takes no rows" in line]
    assert len(told) == 1
    assert "code 252" in told[0]


def test_a_body_that_is_sent_again_meanwhile_is_inserted_once(shared_server: Served) -> None:
    """A store slower than its senders' patience does not drown in copies."""
    shared_server.command(
        "alter table otel_traces modify setting parts_to_delay_insert = 1, "
        "min_delay_to_insert_ms = 3000, max_delay_to_insert = 3"
    )
    request = urllib.request.Request(
        f"{shared_server.otlp_http}/v1/traces",
        body({"trace": "again", "name": "again"}),
        {"Content-Type": "application/x-protobuf"},
    )
    try:
        with pytest.raises(TimeoutError):
            urllib.request.urlopen(request, timeout=0.5)
        assert urllib.request.urlopen(request, timeout=60).status == 200
    finally:
        shared_server.command(
            "alter table otel_traces reset setting parts_to_delay_insert, "
            "min_delay_to_insert_ms, max_delay_to_insert"
        )
    assert shared_server.sql("select count() as n from otel_traces where SpanName = 'again'") == [
        {"n": 1}
    ]


IN_THE_SERVICE = """
    import asyncio, os, sys, threading, time
    import ragotel

    ragotel.configure("bot", endpoint=sys.argv[1], batch_interval_s=0.0)

    @ragotel.request
    def answer(question):
        return "yes"

    @ragotel.request
    async def answer_soon(question):
        return build(question)

    @ragotel.assemble
    def build(question):
        return question * 19_000

    answer("first")
    sys.stdin.readline()
    threads = [threading.Thread(target=answer, args=(f"{n}",)) for n in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def main():
        await asyncio.gather(*(answer_soon("0123456789") for _ in range(20)))

    asyncio.run(main())
    print("all answered", flush=True)
    os._exit(0)
"""


def test_no_request_waits_for_the_receiver(receiver: Receiver, url: str) -> None:
    """While the receiver holds the first message, 200 threads and an event loop are answered."""
    receiver.reply = lambda number: Reply(delay_s=60)
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(IN_THE_SERVICE), url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert wait_until(lambda: receiver.messages == 1, 60)
    printed, _ = process.communicate("go\n", timeout=60)
    assert (process.returncode, printed, receiver.messages) == (0, "all answered\n", 1)


def test_an_outage_is_told_once(url: str, receiver: Receiver) -> None:
    """One warning with the receiver's answer, however often it is tried; a hiccup has none."""
    receiver.reply = lambda number: Reply(503, body=b"closed") if number < 5 else Reply()
    program = """
        import sys, ragotel
        ragotel.configure("bot", endpoint=sys.argv[1], batch_interval_s=0.0)
        answer = ragotel.request(lambda question: "yes")
        answer("first")
        print(ragotel.flush(30))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), url],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        check=False,
    )
    assert (done.stdout, done.stderr) == (
        "True\n",
        "ragotel: the receiver takes nothing, trying again: HTTP 503 closed\n",
    )
