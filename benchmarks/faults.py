"""What faults cost: python benchmarks/faults.py [--quick] [NAME ...].

For each fault a decorated service in a process of its own sends 50 requests a second to a real
`ragotel serve`, quietly at first, then with the fault, then after it. At the end every request has
to stand in the store, or in a loss report that reached the store. Prints one table and writes it to
benchmarks/out/faults.md and .json; exit 1 where a request is missing and nothing explains it.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from injected import FAULTS, Fault, World
from running import Call, MemoryWatch

from served import Served, start_server

HERE = Path(__file__).resolve().parent


class Times(NamedTuple):
    """Seconds of each phase, and the requests in a second."""

    quiet_s: float
    fault_s: float
    after_s: float
    rate: float
    warm_up: int


FULL = Times(8, 16, 4, 50, 250)
QUICK = Times(1.5, 3, 0.5, 20, 20)
SETTLE_S = 120.0
"""How long the store may take until it has everything."""


@dataclass
class Figures:
    """What one fault cost. Latencies are those of the service's own call, in microseconds."""

    fault: str
    spool: bool
    offered: int
    stored: int
    lost: dict[str, int]
    """Told by loss reports in the store, by cause."""
    lost_at_exit: int
    """Counted by a process that ended before the receiver had answered: in its log alone."""
    waiting: int
    """Still in the spool when the run ended."""
    died_with_process: int
    """Neither stored nor told: in the memory of a process that was killed."""
    oldest_s: float
    """How long before its process was killed the oldest of these had ended."""
    missing: int
    """The rest. Anything but 0 is a fault of ours."""
    twice: int
    """Requests that the store received more than once, and counts once."""
    textless: int
    """Passages named in a list whose text never arrived."""
    p50_quiet_us: float
    p99_quiet_us: float
    p50_fault_us: float
    p99_fault_us: float
    growth_mb: float
    """The most memory of the service in the fault and after it, above that before."""
    caught_up_s: float
    """From the end of the fault until its last request was stored."""

    @property
    def is_met(self) -> bool:
        return not self.missing and not self.textless


def run_fault(fault: Fault, times: Times, folder: Path, served: Served | None = None) -> Figures:
    """Let *fault* happen to a new service, which sends to *served*, or to a server of its own."""
    with World(folder, fault, times.rate, times.warm_up, served) as world:
        ready_ns = time.monotonic_ns()
        world.wait(times.quiet_s)
        watch = MemoryWatch(world.service.process.pid)
        before_mb = watch.most_mb
        began_ns, began_at = time.monotonic_ns(), time.time()
        with fault.inject(world):
            world.wait(times.fault_s)
        ended_ns, ended_at = time.monotonic_ns(), time.time()
        world.wait(times.after_s)
        world.end()
        watch.close()
        calls = world.calls()
        settle(world, len(calls))
        return Figures(
            fault=fault.name,
            spool=fault.spool,
            **account(world, calls),
            **latencies(calls, ready_ns, began_ns, ended_ns),
            growth_mb=watch.most_mb - before_mb,
            caught_up_s=caught_up_s(world, calls, began_ns, ended_ns, ended_at - began_at),
        )


def settle(world: World, offered: int) -> None:
    """Wait until all is stored or told, or nothing more comes."""
    until = time.monotonic() + SETTLE_S
    while time.monotonic() < until and not world.has_killed_services:
        if len(world.stored()) + sum(world.told_losses().values()) >= offered:
            return
        time.sleep(0.5)


def account(world: World, calls: list[Call]) -> dict[str, Any]:
    """Find every request again."""
    stored, lost = world.stored(), world.told_losses()
    missing = [call for call in calls if call.number not in stored]
    ages = [world.age_at_kill_s(call) for call in missing]
    died = [age for age in ages if age is not None]
    # Which requests a loss report means is not known: those that no kill explains come first.
    unexplained = len(missing) - len(died)
    told = sum(lost.values())
    at_exit = world.lost_at_exit - lost.get("shutdown", 0)
    waiting = world.waiting() if world.fault.spool else 0
    return {
        "offered": len(calls),
        "stored": len(stored),
        "lost": lost,
        "lost_at_exit": max(0, at_exit),
        "waiting": waiting,
        "died_with_process": max(0, len(died) - max(0, told - unexplained)),
        "oldest_s": max(died, default=0.0),
        "missing": max(0, unexplained - told - max(0, at_exit) - waiting),
        "twice": world.sent_twice(),
        "textless": world.textless(),
    }


def latencies(calls: list[Call], ready_ns: int, began_ns: int, ended_ns: int) -> dict[str, float]:
    """Compare the calls of the quiet time with those amid the fault."""
    phases = {"quiet": (ready_ns, began_ns), "fault": (began_ns, ended_ns)}
    found = {}
    for phase, (first_ns, last_ns) in phases.items():
        times = sorted(c.took_ns / 1e3 for c in calls if first_ns <= c.ended_ns < last_ns)
        for name, share in (("p50", 50), ("p99", 99)):
            found[f"{name}_{phase}_us"] = times[len(times) * share // 100] if times else 0.0
    return found


def caught_up_s(
    world: World, calls: list[Call], began_ns: int, ended_ns: int, took_s: float
) -> float:
    """Ask the store when the last request of the fault's time arrived."""
    amid = {call.number for call in calls if began_ns <= call.ended_ns < ended_ns}
    arrived = [at for number, at in world.stored().items() if number in amid]
    return max(0.0, max(arrived, default=0.0) - (world.started_at(began_ns) + took_s))


HEAD = (
    "| fault | spool | offered | stored | lost | died | missing | twice "
    "| p50, p99 quiet, us | with the fault | added p99 | memory | caught up |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
)


def row(figures: Figures) -> str:
    counted = {
        **figures.lost,
        "at exit": figures.lost_at_exit,
        "still in the spool": figures.waiting,
    }
    lost = ", ".join(f"{cause} {count}" for cause, count in counted.items() if count) or "0"
    died = str(figures.died_with_process)
    if figures.died_with_process:
        died += f" (last {figures.oldest_s:.1f} s)"
    added = figures.p99_fault_us - figures.p99_quiet_us
    ratio = figures.p99_fault_us / figures.p99_quiet_us if figures.p99_quiet_us else 0.0
    return (
        f"| {figures.fault} | {'yes' if figures.spool else 'no'} | {figures.offered} "
        f"| {figures.stored} | {lost} | {died} | {figures.missing} | {figures.twice} "
        f"| {figures.p50_quiet_us:.0f}, {figures.p99_quiet_us:.0f} "
        f"| {figures.p50_fault_us:.0f}, {figures.p99_fault_us:.0f} "
        f"| {added:+.0f} us, {ratio:.1f} x | {figures.growth_mb:+.0f} MB "
        f"| {figures.caught_up_s:.0f} s |"
    )


def run_all(names: list[str], times: Times) -> list[Figures]:
    """Run the faults one after the other, printing each line as soon as it is known."""
    results = []
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory(prefix="ragotel-faults-") as temporary:
        shared = start_server(Path(temporary) / "shared")
        try:
            for number, name in enumerate(names):
                if reason := FAULTS[name].impossible():
                    print(f"{name}: not run, {reason}", file=sys.stderr)
                    continue
                folder = Path(temporary) / str(number)
                folder.mkdir()
                served = None if FAULTS[name].needs_own_server else shared
                results.append(run_fault(FAULTS[name], times, folder, served))
                print(row(results[-1]), flush=True)
        finally:
            shared.kill()
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help=f"default: all of {', '.join(FAULTS)}")
    parser.add_argument("--quick", action="store_true", help="some seconds each: a smoke test")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.names) - set(FAULTS)):
        parser.error(f"there is no fault {unknown[0]!r}; there are {', '.join(FAULTS)}")
    # Else the processes outlive a run that is ended from outside.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    results = run_all(arguments.names or list(FAULTS), QUICK if arguments.quick else FULL)
    out = HERE / "out"
    out.mkdir(exist_ok=True)
    (out / "faults.json").write_text(json.dumps([asdict(one) for one in results], indent=1))
    (out / "faults.md").write_text("\n".join((HEAD, *map(row, results))) + "\n")
    return 0 if all(one.is_met for one in results) else 1


if __name__ == "__main__":
    sys.exit(main())
