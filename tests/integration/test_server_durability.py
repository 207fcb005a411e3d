"""What `ragotel serve` acknowledged is there after kill -9; what it left behind harms nobody."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from otlp_bodies import post, rag_request, trace_id
from ragotel.store import open_store
from ragotel.store.open import SERVE_FILE
from served import REPOSITORY, Served, wait_until


def ragotel(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ragotel", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=REPOSITORY,
        check=False,
    )


def test_everything_acknowledged_survives_kill_9(serve: Callable[..., Served]) -> None:
    """Senders post without pause, the server is killed among them, and starts again."""
    served = serve()
    acknowledged: list[int] = []
    ended = threading.Event()

    def send(first: int) -> None:
        number = first
        while not ended.is_set():
            try:
                if post(served.otlp_http, rag_request(number, prompt_chars=2000)).status != 200:
                    return
            except OSError:
                return
            acknowledged.append(number)
            number += 8

    senders = [threading.Thread(target=send, args=(first,)) for first in range(8)]
    for sender in senders:
        sender.start()
    wait_until(lambda: len(acknowledged) >= 40, timeout_s=120)
    served.kill()
    ended.set()
    for sender in senders:
        sender.join()
    again = serve(folder=served.folder)
    stored = {row["TraceId"] for row in again.sql("select distinct TraceId from otel_traces")}
    prompts = {row["trace_id"] for row in again.sql("select distinct trace_id from rag_prompts")}
    sent = {trace_id(number).hex() for number in acknowledged}
    assert (sent - stored, sent - prompts) == (set(), set())


def test_a_stopped_server_ends_with_zero_and_leaves_no_address(server: Served) -> None:
    """SIGTERM finishes what is under way: a post is answered and stored, or it is neither."""
    replies = []
    posting = threading.Thread(
        target=lambda: replies.append(post(server.otlp_http, rag_request(1)))
    )
    assert (server.folder / SERVE_FILE).stat().st_mode & 0o777 == 0o600
    posting.start()
    time.sleep(0.01)
    code = server.stop()
    posting.join()
    assert (code, (server.folder / SERVE_FILE).exists()) == (0, False)
    with open_in_another_process(server.folder, "select uniq(TraceId) from otel_traces") as count:
        assert count == [reply.status for reply in replies].count(200)


class open_in_another_process:
    """The embedded engine allows one folder per process, so a look at another takes a process."""

    def __init__(self, folder: Path, query: str) -> None:
        self._arguments = ("sql", "--store", f"chdb://{folder}", "--json", query)

    def __enter__(self) -> int:
        rows = json.loads(ragotel(*self._arguments).stdout)
        return int(next(iter(rows[0].values())))

    def __exit__(self, *exc_info: object) -> None:
        pass


def test_commands_reach_the_store_through_the_server(server: Served) -> None:
    """The same DSN works while the server holds the folder, in this process and in others."""
    post(server.otlp_http, rag_request(7))
    ended = ragotel("sql", "--store", server.dsn, "--json", "select user_id from rag_requests")
    assert (ended.returncode, json.loads(ended.stdout)) == (0, [{"user_id": "u7"}])
    with open_store(server.dsn) as store:
        assert store.rows(
            "select user_id from rag_requests where user_id = {u:String}", {"u": "u7"}
        )


def test_the_address_of_a_dead_server_is_harmless(serve: Callable[..., Served]) -> None:
    """After kill -9 the file is still there; commands open the folder, and a new server starts."""
    served = serve()
    post(served.otlp_http, rag_request(1))
    served.kill()
    assert (served.folder / SERVE_FILE).exists()
    ended = ragotel("sql", "--store", served.dsn, "--json", "select count() as n from rag_requests")
    assert (ended.returncode, json.loads(ended.stdout)) == (0, [{"n": 1}])
    assert serve(folder=served.folder).sql("select count() as n from rag_requests") == [{"n": 1}]


def test_a_second_server_on_the_same_folder_says_so(server: Served) -> None:
    """One line with who serves it, where and what to do, exit code 1; the first one goes on."""
    ports = [f"--{name}-port=0" for name in ("otlp-grpc", "otlp-http", "http")]
    for given in ((), ports):
        ended = ragotel("serve", "--store", server.dsn, *given)
        assert ended.returncode == 1
        assert ended.stderr == (
            f"ragotel: `ragotel serve` (process {server.process.pid}) serves {server.folder} "
            f"already, at {server.url}, and the engine allows one process per folder, so other "
            "ports do not help: use that one, by this --store or by "
            f"--store {server.url}/ragotel, or serve another folder.\n"
        )
    assert server.sql("select 1 as one") == [{"one": 1}]


def test_two_processes_migrate_at_once(server: Served) -> None:
    """Both succeed, and each step is recorded once."""
    arguments = [sys.executable, "-m", "ragotel", "init", "--store", f"{server.url}/fresh"]
    both = [
        subprocess.Popen(arguments, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        for _ in range(2)
    ]
    outcomes = [(process.communicate(timeout=120)[1], process.returncode) for process in both]
    assert outcomes == [(b"", 0), (b"", 0)]
    steps = server.sql("select name, count() as n from fresh.rag_migrations final group by name")
    assert steps
    assert {row["n"] for row in steps} == {1}


def test_a_second_delivery_changes_no_count(server: Served) -> None:
    """The same batch again, as after a time-out: the views show each request once."""
    for _ in range(3):
        assert post(server.otlp_http, rag_request(1)).status == 200
    assert server.sql("select count() as n from rag_candidates where stage = 'rerank'") == [
        {"n": 50}
    ]
