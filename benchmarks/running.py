"""The service under load seen from outside: its process, its log of calls, its memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent


class Call(NamedTuple):
    """One call of the service."""

    number: int
    ended_ns: int
    """On the monotonic clock, which all processes of a machine share."""
    took_ns: int


class Service:
    """`service.py` in a process of its own; its settings are RAGOTEL_* variables."""

    def __init__(
        self, url: str, folder: Path, rate: float, first: int = 0, **settings: str
    ) -> None:
        self.log = folder / "calls"
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL", "RAGOTEL"))}
        self.complaints = (folder / "service.log").open("a")
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "service.py"), url, str(self.log), str(rate), str(first)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.complaints,
            text=True,
            env={**environment, **settings},
        )
        if self._read() != "ready":
            raise RuntimeError(f"the service did not start: {(folder / 'service.log').read_text()}")

    def _read(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def tell(self, words: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{words}\n")
        self.process.stdin.flush()

    def counters(self) -> dict[str, Any]:
        """What its delivery has counted so far."""
        self.tell("counters")
        return dict(json.loads(self._read()))

    def end(self) -> dict[str, Any]:
        """End the load, wait until all has left or is given up; the last counters."""
        assert self.process.stdin
        self.process.stdin.close()
        told = dict(json.loads(self._read()))
        self.process.wait(60)
        return told

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)
        self.complaints.close()

    def calls(self) -> list[Call]:
        """Every call that has returned; a half-written last line is none."""
        lines = self.log.read_text().split("\n")[:-1]
        return [Call(*map(int, line.split())) for line in lines]


def resident_mb(pid: int) -> float:
    """What a process holds in memory now."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0


class MemoryWatch:
    """Looks at a process's memory five times a second; `most` is reset by whoever reads it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ending = threading.Event()
        self.most_mb = resident_mb(pid)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.wait(0.2):
            try:
                self.most_mb = max(self.most_mb, resident_mb(self._pid))
            except OSError:
                return

    def close(self) -> None:
        self._ending.set()
        self._thread.join()
