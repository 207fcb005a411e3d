"""A decorated service under load in a process of its own: python service.py URL LOG RATE [FIRST].

Settings come from RAGOTEL_* variables. Every call becomes a line of LOG: its number, the monotonic
clock when it ended, and how long it took, in nanoseconds; the kernel keeps lines of a process that
is killed. Words on standard input: `clock SECONDS` moves the wall clock, `counters` asks for a line
of JSON, the end of the input ends the load, waits until all has left, and prints the last line.
"""

from __future__ import annotations

import gc
import json
import os
import random
import resource
import signal
import sys
import threading
import time
from typing import Any

import workload
from generated import Corpus
from workload import Candidate, Prepared

FLUSH_S = 60.0
SENT, PROMPT_CHARS = 4, 2_000
"""Of the requests that are all distinct; the others have prompts of 16 KB."""
skew_ns = 0


def move_clock() -> None:
    """Have the wall clock answer with `skew_ns` more; to be called before ragotel is imported.

    The clocks that only go forward stay as they are: no step of a machine's time moves them.
    """
    now_ns, now_s = time.time_ns, time.time
    time.time_ns = lambda: now_ns() + skew_ns
    time.time = lambda: now_s() + skew_ns / 1e9


class Prompts:
    """Requests over five thousand passages, each with lists, a prompt and a question of its own."""

    def __init__(self, number: int, candidates: int) -> None:
        self.corpus, self.draw, self.candidates = Corpus(), random.Random(number), candidates
        self.found = [
            Candidate(c.id, 0.0, c.text[: PROMPT_CHARS // SENT], {}) for c in self.corpus.chunks
        ]

    def make(self, number: int) -> Prepared:
        found = self.draw.sample(self.found, self.candidates)
        for at, candidate in enumerate(found):
            candidate.score = 1 - at / 64
        query = f"{number} {self.corpus.sentence(number, 11)}?"
        prompt = "\n\n".join((*(candidate.text for candidate in found[:SENT]), query))
        return Prepared(query, found, found, prompt, self.corpus.sentence(number + 1, 40))


class Few:
    """The 250 requests of the other benchmarks over and over, each with a number before it."""

    def __init__(self) -> None:
        self.prepared = workload.prepare()

    def make(self, number: int) -> Prepared:
        one = self.prepared[number % workload.REQUESTS]
        return Prepared(
            f"{number} {one.query}", one.retrieved, one.reranked, one.prompt, one.answer
        )


class Load:
    """Calls the service at an even pace until told to end."""

    def __init__(self, url: str, log: str, rate: float, first: int) -> None:
        from decorated import Decorated

        distinct = int(os.environ.get("RAGOTEL_BENCH_DISTINCT", "0"))
        self.requests = Prompts(first, distinct) if distinct else Few()
        self.service = Decorated(url, "gzip")
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.rate, self.number = rate, first
        self.ending = threading.Event()

    def call(self) -> None:
        request = self.service.now = self.requests.make(self.number)
        began = time.perf_counter_ns()
        self.service.answer(request.query)
        took = time.perf_counter_ns() - began
        os.write(self.log, b"%d %d %d\n" % (self.number, time.monotonic_ns(), took))
        self.number += 1

    def run(self) -> None:
        start, done = time.perf_counter(), 0
        while not self.ending.is_set():
            due = start + done / self.rate
            while (left := due - time.perf_counter()) > 0:
                time.sleep(left)
            self.call()
            done += 1


def counters(delivery: Any) -> dict[str, Any]:
    """What the delivery of this process has counted, in requests."""
    told = delivery.counters()
    return {
        "offered": told.offered.requests,
        "delivered": told.delivered.requests,
        "spooled": told.spooled.requests,
        "replayed": told.replayed.requests,
        "lost": {cause: tally.requests for cause, tally in told.lost.items()},
        "queue_bytes": delivery._line.queue.used_bytes,
    }


def obey(ending: threading.Event, delivery: Any) -> None:
    """Read standard input until its end."""
    global skew_ns
    for line in sys.stdin:
        word, _, value = line.strip().partition(" ")
        if word == "clock":
            skew_ns = int(float(value) * 1e9)
        elif word == "counters":
            print(json.dumps(counters(delivery)), flush=True)
    ending.set()


def limit_files(size_bytes: int) -> None:
    """Have every file end there, as a disk that is full does."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, size_bytes))


def main(url: str, log: str, rate: str, first: str = "0") -> None:
    wanted = os.environ.get
    if wanted("RAGOTEL_BENCH_CLOCK"):
        move_clock()
    limit_files(int(wanted("RAGOTEL_BENCH_FILE_BYTES", "-1")))
    import ragotel
    from ragotel import recorder

    load = Load(url, log, float(rate), int(first))
    delivery: Any = recorder.active.sink if recorder.active else None
    for _ in range(int(wanted("RAGOTEL_BENCH_WARM_UP", "0"))):
        load.call()
    ragotel.flush(FLUSH_S)
    gc.collect()
    print("ready", flush=True)
    threading.Thread(target=obey, args=(load.ending, delivery), daemon=True).start()
    load.run()
    ragotel.flush(float(wanted("RAGOTEL_BENCH_FLUSH_S", FLUSH_S)))
    ragotel.shutdown()
    print(json.dumps(counters(delivery)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
