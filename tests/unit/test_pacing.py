"""Pacing: the worker steps aside for threads that may wait, and for nobody else."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ragotel import pacing

SLICE_NS = 300_000


class Clocks:
    """Stands in for `time`: every clock is set by hand, and sleeping is counted."""

    def __init__(self) -> None:
        self.now_ns = self.own_ns = self.others_ns = 1_000_000
        self.sleeps = 0
        self.others_in_sleep_ns = 0

    def sleep(self, _: float) -> None:
        self.sleeps += 1
        self.others_ns += self.others_in_sleep_ns

    def work(self, others_ns: int = 0) -> None:
        """Use one slice of this thread's, while other threads use *others_ns*."""
        self.now_ns += SLICE_NS
        self.own_ns += SLICE_NS
        self.others_ns += others_ns


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    """A slice that has just begun."""
    made = Clocks()
    time = SimpleNamespace(
        sleep=made.sleep,
        perf_counter_ns=lambda: made.now_ns,
        thread_time_ns=lambda: made.own_ns,
        process_time_ns=lambda: made.own_ns + made.others_ns,
    )
    monkeypatch.setattr(pacing, "time", time)
    monkeypatch.setattr(pacing, "is_hurried", False)
    pacing.begin()
    return made


def test_alone_it_steps_aside_once(clocks: Clocks) -> None:
    """Whoever waited when the slice began gets its turn; where nobody runs, nobody waits."""
    for _ in range(5):
        clocks.work()
        pacing.Pace().step()
    assert clocks.sleeps == 1


def test_it_steps_aside_for_every_thread_that_has_run(clocks: Clocks) -> None:
    """A thread that woke up may be waiting for the interpreter."""
    for _ in range(5):
        clocks.work(others_ns=5_000)
        pacing.Pace().step()
    assert clocks.sleeps == 5


def test_who_ran_while_it_stepped_aside_may_wait_again(clocks: Clocks) -> None:
    """What others use of a pause counts for the next step."""
    clocks.others_in_sleep_ns = 5_000
    for _ in range(3):
        clocks.work()
        pacing.Pace().step()
    assert clocks.sleeps == 3


def test_within_a_slice_and_in_a_hurry_it_goes_on(
    clocks: Clocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not before its slice is used up, and never while requests come too fast."""
    pacing.Pace().step()
    monkeypatch.setattr(pacing, "is_hurried", True)
    clocks.work(others_ns=5_000)
    pacing.Pace().step()
    assert clocks.sleeps == 0
