"""The faults, and the world in which each happens: a store, a receiver before it, a service."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from gate import Gate
from running import Call, Service

from ragotel.delivery.frames import scan
from receiver import Reply
from served import Served, find_free_port, start_server

SMALL_QUEUE = {"RAGOTEL_QUEUE_BYTES": str(2 << 20)}
SPOOL_DISK_BYTES, STORE_DISK_BYTES = 1 << 20, 512 << 20
CANDIDATES = 10
IDLE_RATE, DRAIN_S = 0.5, 240.0


@dataclass(frozen=True)
class Fault:
    """One fault: what happens between entering `inject` and leaving it."""

    name: str
    inject: Callable[[World], AbstractContextManager[None]]
    spool: bool = False
    settings: dict[str, str] = field(default_factory=dict)
    is_direct: bool = False
    """The service sends straight to the store's server, which the fault meets."""
    disk: str = ""
    """`spool` or `store`: this folder lies on a small disk of its own."""
    kills_server: bool = False

    @property
    def needs_own_server(self) -> bool:
        return self.kills_server or self.disk == "store"

    def impossible(self) -> str:
        """Why it cannot be had here; empty: it can."""
        if self.disk == "store" and not can_mount():
            return "a small disk for the store takes root"
        return ""


class World:
    """All processes of one run; leaving it ends those that it started."""

    def __init__(
        self, folder: Path, fault: Fault, rate: float, warm_up: int, served: Served | None = None
    ) -> None:
        self.folder, self.fault, self.rate = folder, fault, rate
        self.kills: list[tuple[int, int]] = []
        """Of services: the clock, and the number of the last call before."""
        self.lost_at_exit = 0
        """By the last counters of a process that could tell nobody: its log alone has them."""
        self._clock = time.time() - time.monotonic()
        self._mounted: list[Path] = []
        self.store, self.spool = self._disk("store"), self._disk("spool")
        self.http_port = find_free_port()
        self._owns_server = served is None
        self.served = served or self.start_served()
        self._first = 0
        self._first = 1 + max(self.stored(), default=-1)
        """Number of the first request: others have used the same store before."""
        self._told_before = self._told()
        self.gate = Gate(f"{self.served.otlp_http}/v1/traces")
        self.url = self.served.otlp_http if fault.is_direct else self.gate.url
        self.settings = {
            "RAGOTEL_BENCH_FLUSH_S": "90",
            "RAGOTEL_BENCH_DISTINCT": str(CANDIDATES),
            **fault.settings,
        }
        if fault.spool:
            self.settings["RAGOTEL_SPOOL"] = str(self.spool)
        if fault.disk == "spool" and not can_mount():
            self.settings["RAGOTEL_BENCH_FILE_BYTES"] = str(SPOOL_DISK_BYTES)
        self.service = self.start_service(self._first, {"RAGOTEL_BENCH_WARM_UP": str(warm_up)})

    def __enter__(self) -> World:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.service.kill()
        self.gate.close()
        if self._owns_server:
            self.served.kill()
        for folder in self._mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False)

    def _disk(self, name: str) -> Path:
        """Make a folder; on a small disk of its own where the fault is that disk's."""
        folder = self.folder / name
        folder.mkdir()
        if self.fault.disk == name and can_mount():
            size = SPOOL_DISK_BYTES if name == "spool" else STORE_DISK_BYTES
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True
            )
            self._mounted.append(folder)
        return folder

    def start_served(self) -> Served:
        """Start the store's server, always on the same port for OTLP."""
        return start_server(self.store, "--otlp-http-port", str(self.http_port))

    def start_service(self, first: int, further: dict[str, str] | None = None) -> Service:
        settings = {**self.settings, **(further or {})}
        return Service(self.url, self.folder, self.rate, first, **settings)

    def kill_service(self) -> None:
        """End it as the kernel does, and start it again with the numbers that follow."""
        self.service.kill()
        now_ns = time.monotonic_ns()
        last = self.calls()[-1].number
        self.kills.append((now_ns, last))
        self.service = self.start_service(last + 1)

    @property
    def has_killed_services(self) -> bool:
        return bool(self.kills)

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def end(self) -> None:
        """End the load; what is left on the disk is for the next process, so let there be one."""
        self.lost_at_exit = self.service.end()["lost"].get("shutdown", 0)
        if self.fault.spool:
            first, self.rate = self.calls()[-1].number + 1, IDLE_RATE
            self.service = self.start_service(first)
            until = time.monotonic() + DRAIN_S
            while self.waiting() and time.monotonic() < until:
                time.sleep(0.5)
            self.service.end()

    def waiting(self) -> int:
        """Requests that lie in the spool."""
        count = 0
        for path in self.spool.glob("[0-9]*/*.spool"):
            with suppress(OSError), path.open("rb") as file:
                count += sum(frame.meta.requests for frame in scan(file.fileno()))
        return count

    def calls(self) -> list[Call]:
        return self.service.calls()

    # What the store says.

    def stored(self) -> dict[int, float]:
        """Each request's number, and when it was stored."""
        rows = self.served.sql(
            "select toUInt32OrZero(splitByChar(' ', query)[1]) as n, "
            "toFloat64(max(ingested_at)) as at from rag_requests group by n"
        )
        return {row["n"]: row["at"] for row in rows if row["n"] >= self._first}

    def told_losses(self) -> dict[str, int]:
        """Requests that loss reports of this run speak of, by cause."""
        return {
            cause: count - self._told_before.get(cause, 0)
            for cause, count in self._told().items()
            if count > self._told_before.get(cause, 0)
        }

    def _told(self) -> dict[str, int]:
        rows = self.served.sql(
            "select cause, sum(requests) as n from rag_losses final group by cause order by cause"
        )
        return {row["cause"]: row["n"] for row in rows}

    def sent_twice(self) -> int:
        """Requests whose own span arrived more than once."""
        rows = self.served.sql(
            "select count() - uniqExact(TraceId) as n from otel_traces where "
            "SpanAttributes['rag.stage'] = 'request' and "
            f"toUInt32OrZero(splitByChar(' ', SpanAttributes['rag.query'])[1]) >= {self._first}"
        )
        return int(rows[0]["n"])

    def textless(self) -> int:
        """Passages that a list names while the store has no text of them."""
        rows = self.served.sql(
            "select uniqExact(sha) as n from (select arrayJoin(candidate_shas) as sha "
            "from rag_stages) where sha != '' and sha not in (select chunk_sha from rag_chunks)"
        )
        return int(rows[0]["n"])

    def started_at(self, monotonic_ns: int) -> float:
        """The wall clock at a moment of the other one."""
        return monotonic_ns / 1e9 + self._clock

    def age_at_kill_s(self, call: Call) -> float | None:
        """How long before its process was killed a call had ended; None: it was not killed."""
        for killed_ns, last in self.kills:
            if call.number <= last:
                return (killed_ns - call.ended_ns) / 1e9
        return None


def can_mount() -> bool:
    return os.geteuid() == 0 and sys.platform == "linux"


def answers(reply: Reply) -> Callable[[World], AbstractContextManager[None]]:
    return lambda world: world.gate.answering(lambda number: reply)


def refuses(world: World) -> AbstractContextManager[None]:
    return world.gate.closed()


@contextmanager
def too_many_parts(world: World, table: str) -> Iterator[None]:
    """Have the engine itself answer code 252 to every insert that reaches *table*."""
    world.served.command(f"alter table {table} modify setting parts_to_throw_insert = 1")
    try:
        yield
    finally:
        world.served.command(f"alter table {table} reset setting parts_to_throw_insert")


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """Fill the disk of *folder* to the last byte."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(1 << 16)):
                pass
        except OSError:
            pass
    try:
        yield
    finally:
        ballast.unlink()


@contextmanager
def clock_jumps(world: World) -> Iterator[None]:
    """The service's clock goes a day ahead and a day back, and the receiver names dates."""

    def jump() -> None:
        for seconds in (86_400, -86_400, 3_600):
            world.service.tell(f"clock {seconds}")
            if ended.wait(4):
                return

    def reply(number: int) -> Reply:
        told = {"Retry-After": formatdate(time.time() + 1, usegmt=True)}
        return Reply(429, told) if number % 3 == 0 else Reply()

    ended = threading.Event()
    jumping = threading.Thread(target=jump)
    jumping.start()
    try:
        with world.gate.answering(reply):
            yield
    finally:
        ended.set()
        jumping.join()
        world.service.tell("clock 0")


@contextmanager
def again_and_again(act: Callable[[], None], least_s: float, most_s: float) -> Iterator[None]:
    """Do it at random moments, on another thread, until the fault ends."""

    def run() -> None:
        while not ended.wait(draw.uniform(least_s, most_s)):
            act()

    draw, ended = random.Random(5), threading.Event()
    acting = threading.Thread(target=run)
    acting.start()
    try:
        yield
    finally:
        ended.set()
        acting.join()


def service_killed(world: World) -> AbstractContextManager[None]:
    return again_and_again(world.kill_service, 0.5, 4.0)


@contextmanager
def service_killed_in_an_outage(world: World) -> Iterator[None]:
    with world.gate.closed(), service_killed(world):
        yield


def receiver_killed(world: World) -> AbstractContextManager[None]:
    def act() -> None:
        world.served.kill()
        world.served = world.start_served()

    return again_and_again(act, 1.0, 5.0)


def _nothing(world: World) -> AbstractContextManager[None]:
    return nullcontext()


def _all() -> list[Fault]:
    hangs, slow = answers(Reply(delay_s=3600)), answers(Reply(delay_s=3))
    busy = answers(Reply(429, {"Retry-After": "2"}))
    short: dict[str, Any] = {"settings": {"RAGOTEL_TIMEOUT_S": "3"}}
    return [
        Fault("none", _nothing),
        Fault("refuses connections", refuses),
        Fault("refuses, spool", refuses, spool=True),
        Fault("accepts and hangs", hangs, **short),
        Fault("accepts and hangs, spool", hangs, spool=True, **short),
        Fault("hangs, queue of 2 MiB", hangs, settings={**SMALL_QUEUE, "RAGOTEL_TIMEOUT_S": "3"}),
        Fault("3 s for each answer", slow),
        Fault("3 s for each answer, spool", slow, spool=True),
        Fault("429, Retry-After 2", busy),
        Fault("429, spool", busy, spool=True),
        Fault("500", answers(Reply(500))),
        Fault("500, spool", answers(Reply(500)), spool=True),
        Fault(
            "code 252 in otel_traces", lambda w: too_many_parts(w, "otel_traces"), is_direct=True
        ),
        Fault(
            "code 252 in rag_prompts", lambda w: too_many_parts(w, "rag_prompts"), is_direct=True
        ),
        Fault("store's disk full", lambda w: full_disk(w.store), is_direct=True, disk="store"),
        Fault(
            "spool's disk full, refuses",
            refuses,
            spool=True,
            disk="spool",
            settings=SMALL_QUEUE,
        ),
        Fault("clock jumps", clock_jumps, settings={"RAGOTEL_BENCH_CLOCK": "1"}),
        Fault("service killed", service_killed, spool=True),
        Fault("service killed in an outage", service_killed_in_an_outage, spool=True),
        Fault("store's server killed", receiver_killed, is_direct=True, kills_server=True),
    ]


FAULTS = {fault.name: fault for fault in _all()}
