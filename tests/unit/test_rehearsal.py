"""A service's functions called by a command: heard as they are recorded, and never recorded."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import ragotel
from ragotel import recorder
from ragotel.errors import InputError
from ragotel.rehearsal import Heard, Rehearsal
from ragotel.testing import Recorded
from ragotel.text import chunk_sha

ROWS = [{"key": "a", "body": "The first text."}, {"key": "b", "body": "The second text."}]


@pytest.fixture
def rehearsal() -> Iterator[Rehearsal]:
    with Rehearsal() as opened:
        yield opened


def ids(heard: Heard) -> list[str | None]:
    return [hit.id for hit in heard.hits]


def plain(question: str, k: int) -> list[dict[str, Any]]:
    return [{"id": "a", "score": 0.5, "text": "The first text.", "doc_id": "d"}, {"id": "b"}][:k]


async def later(question: str, k: int) -> list[dict[str, Any]]:
    await asyncio.sleep(0)
    return plain(question, k)


async def streamed(question: str, k: int) -> AsyncIterator[dict[str, Any]]:
    for row in plain(question, k):
        yield row


def yielded(question: str, k: int) -> Iterator[dict[str, Any]]:
    yield from plain(question, k)


@ragotel.retrieve(
    leg="dense", index="docs", index_version="v7", id_of=lambda row: row["key"].upper()
)
def decorated(question: str, k: int) -> list[dict[str, Any]]:
    return ROWS[:k]


def of_two_legs(question: str, k: int) -> list[dict[str, Any]]:
    """Undecorated around decorated legs: its own order counts."""
    return list(reversed(decorated(question, k)))


@pytest.mark.parametrize("function", [plain, later, streamed, yielded])
def test_sync_async_and_streams_are_read_alike(function: Any, rehearsal: Rehearsal) -> None:
    """Ids, scores, hashes and documents are those that a recorded list has."""
    heard = rehearsal.search(function, "Q", k=2)
    (first, second) = heard.hits
    assert (first.id, first.score, first.doc_id) == ("a", 0.5, "d")
    assert first.sha == chunk_sha("The first text.")
    assert (second.id, second.score, second.text, second.sha) == ("b", None, None, None)
    assert (heard.index_version, heard.leg) == ("", "")


def test_a_decorated_search_is_heard_as_it_would_be_recorded(rehearsal: Rehearsal) -> None:
    """Its own extractors name the candidates; its span says leg and index version."""
    heard = rehearsal.search(decorated, "Q", k=2)
    assert (ids(heard), heard.index_version, heard.leg) == (["A", "B"], "v7", "dense")


def test_a_function_around_decorated_legs_is_read_by_what_it_returns(rehearsal: Rehearsal) -> None:
    """The order is its own, the version the one on which its legs agree."""
    heard = rehearsal.search(of_two_legs, "Q", k=2)
    assert [hit.text for hit in heard.hits] == ["The second text.", "The first text."]
    assert (heard.index_version, heard.leg) == ("v7", "")


def test_nothing_is_recorded_and_recording_goes_on_afterwards(recorded: Recorded) -> None:
    """Neither a decorated search nor a configure() of the user's sends a probe as a request."""
    before, switch = recorder.active, os.environ.get("RAGOTEL_DISABLED")
    with Rehearsal() as rehearsal:
        rehearsal.search(decorated, "Q", k=2)
        rehearsal.call(lambda: ragotel.configure(service="bot", endpoint="http://127.0.0.1:9"))
        rehearsal.search(decorated, "Q", k=2)
        assert recorder.active is not before
    assert recorder.active is before
    assert os.environ.get("RAGOTEL_DISABLED") == switch
    assert recorded.spans == []
    decorated("Q", 2)
    assert len(recorded.spans) == 1


def test_what_functions_print_is_not_the_commands_output(
    rehearsal: Rehearsal, capsys: pytest.CaptureFixture[str]
) -> None:
    """stdout is the command's own: --json stays JSON."""
    rehearsal.call(lambda: print("hello"))
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "hello\n")


def test_an_answer_that_is_no_list_is_refused(rehearsal: Rehearsal) -> None:
    """What cannot be read is named by its type."""
    with pytest.raises(InputError, match="it returned a int, which cannot be read as a list"):
        rehearsal.search(lambda question, k: 5, "Q", k=2)


@pytest.mark.parametrize(
    ("target", "fault"),
    [
        ("bot", "'bot' names no function; write module:function"),
        ("no_such_module_of_ours:f", "cannot be imported: ModuleNotFoundError"),
        ("rehearsed_module:nothing", "'rehearsed_module:nothing' is no function"),
        ("rehearsed_script:f", "cannot be imported: SystemExit: 3"),
    ],
)
def test_a_target_that_is_no_function_is_refused(
    target: str,
    fault: str,
    rehearsal: Rehearsal,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One line, also where the module itself fails or leaves."""
    (tmp_path / "rehearsed_module.py").write_text("class Bot:\n    search = len\n", "utf-8")
    (tmp_path / "rehearsed_script.py").write_text("import sys\nsys.exit(3)\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InputError, match=fault):
        rehearsal.load(target)
    assert rehearsal.load("rehearsed_module:Bot.search") is len
    sys.modules.pop("rehearsed_module", None)
