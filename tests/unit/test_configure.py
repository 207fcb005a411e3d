"""When recording starts and stops, and with which settings."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from typing import Any

import pytest

import ragotel
from ragotel import attributes as at
from ragotel import recorder
from ragotel.errors import ConfigurationError
from ragotel.model import Pending
from ragotel.settings import resolve_settings
from ragotel.testing import recording


class CountingSink:
    """A sink that only counts."""

    def __init__(self) -> None:
        self.submitted = self.flushed = self.stopped = 0

    def submit(self, pending: Pending) -> bool:
        self.submitted += pending.span_count
        return True

    def flush(self, timeout_s: float = 0.0) -> bool:
        self.flushed += 1
        return True

    def shutdown(self, timeout_s: float | None = None) -> None:
        self.stopped += 1


@pytest.fixture
def sink() -> Any:
    yield (counting := CountingSink())
    if recorder.active is not None and recorder.active.sink is counting:
        ragotel.shutdown()


def test_configuring_twice_is_harmless(sink: CountingSink) -> None:
    """The same settings again change nothing; other settings replace the first ones."""
    recorder.configure(resolve_settings(service_name="a"), sink)
    first = recorder.active
    ragotel.configure("a")
    assert recorder.active is first
    other = CountingSink()
    recorder.configure(resolve_settings(service_name="b"), other)
    assert sink.stopped == 1
    ragotel.shutdown()
    assert other.stopped == 1
    assert recorder.active is None


def test_a_wrong_setting_is_said_at_once() -> None:
    """Configuring raises; nothing else ever does."""
    with pytest.raises(ConfigurationError, match="content_mode"):
        ragotel.configure(content_mode="loud")
    with pytest.raises(ConfigurationError, match="no setting 'endpont'"):
        ragotel.configure(endpont="x")
    with pytest.raises(ConfigurationError, match="'sort' is no stage"):
        ragotel.stage("sort")


def test_disabled_means_nothing_happens(sink: CountingSink) -> None:
    """Disabled: functions run, nothing is recorded."""
    recorder.configure(resolve_settings(disabled=True), sink)
    assert ragotel.request(lambda question: question)("q") == "q"
    assert recorder.active is None
    assert sink.submitted == 0


def test_flush_on_return(sink: CountingSink) -> None:
    """Where asked for, a request is delivered before its function returns, also on a loop."""
    recorder.configure(resolve_settings(flush_on_return=True), sink)
    ragotel.request(lambda question: question)("q")
    assert (sink.submitted, sink.flushed) == (1, 1)

    @ragotel.request
    async def answer(question: str) -> str:
        return question

    assert asyncio.run(answer("q")) == "q"
    assert (sink.submitted, sink.flushed) == (2, 2)


def test_no_request_waits_for_delivery_by_default(sink: CountingSink) -> None:
    """Nothing is flushed within a request unless asked for."""
    recorder.configure(resolve_settings(), sink)
    ragotel.request(lambda question: question)("q")
    assert sink.flushed == 0


@pytest.mark.parametrize(("variable", "is_active"), [("RAGOTEL_ENDPOINT", True), ("OTHER", False)])
def test_a_variable_that_names_a_receiver_is_enough(variable: str, is_active: bool) -> None:
    """Without `configure` the first decorated call looks for a receiver, and else sends nothing."""
    code = textwrap.dedent(
        """
        import ragotel
        from ragotel import recorder
        assert ragotel.request(lambda question: question)("q") == "q"
        print(recorder.active is not None)
        """
    )
    env = {variable: "http://127.0.0.1:9", "RAGOTEL_EXIT_TIMEOUT_S": "0.1", "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(is_active)


def test_a_recording_inside_of_a_recording_leaves_the_outer_as_it_was() -> None:
    """The fixture restores what was configured before it."""
    with recording() as outer:
        with recording(content_mode="off") as inner:
            ragotel.request(lambda question: "x")("inner")
        ragotel.request(lambda question: "x")("outer")
        assert at.QUERY not in inner.stage("request")
        assert outer.stage("request")[at.QUERY] == "outer"
