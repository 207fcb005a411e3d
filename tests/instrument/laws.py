"""The laws that hold for every library: nothing left behind, no target gone, nothing changed."""

from __future__ import annotations

import asyncio
import gc
import importlib
import sys
from collections.abc import Callable
from typing import Any

import pytest

from ragotel import instrument
from ragotel.instrument.hooks import check_targets
from ragotel.testing import recording

_MISSING = object()


def is_known(name: str) -> bool:
    return name in instrument.LIBRARIES


class Patched:
    """What one library's classes and modules held before, while and after it was hooked."""

    def assert_reverted(self, name: str) -> None:
        """Every patched object is what it was, by identity, and at least one was patched."""
        instrument.uninstrument()
        library = instrument.library(name)
        for module in {h.module for h in library.hooks} | {f.module for f in library.families}:
            try:
                importlib.import_module(module)
            except ImportError:
                continue
        instrument.instrument(name)
        switch = instrument._switches[name]
        patches = list(switch.patches)
        assert patches, f"nothing of {name} was patched"
        held = [(p.owner, p.name, p.before) for p in patches]
        instrument.instrument(name)
        assert switch.patches == patches, "hooking twice is hooking once"
        assert all(vars(p.owner)[p.name] is p.ours for p in patches)
        instrument.uninstrument(name)
        for owner, attribute, before in held:
            now = vars(owner).get(attribute, _MISSING)
            if repr(before).startswith("<object object"):
                assert now is _MISSING, f"{owner}.{attribute} was inherited"
            else:
                assert now is before, f"{owner}.{attribute}"
        assert switch.patches == []

    def assert_targets(self, name: str) -> None:
        """The installed version has everything that the patch table names."""
        assert check_targets(instrument.library(name)) == []


def same_result(run: Callable[[], Any], show: Callable[[Any], Any] = repr) -> Any:
    """Run a service without and with hooks: what it returns is the same; give that back."""
    instrument.uninstrument()
    bare = show(run())
    assert " object at 0x" not in str(bare), "shown by its address, not by its content"
    with recording():
        hooked = show(run())
        # A stream that was thrown away ends its stage when it is collected: here, not elsewhere.
        gc.collect()
    instrument.uninstrument()
    assert hooked == bare
    return bare


def ids(stage: dict[str, Any]) -> list[Any]:
    """The ids of a recorded list, best first."""
    return [row["id"] for row in rows(stage)]


def scores(stage: dict[str, Any]) -> list[Any]:
    """The scores of a recorded list, best first."""
    return [row["score"] for row in rows(stage)]


def rows(stage: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = stage.get("gen_ai.retrieval.documents") or stage.get(
        "rag.candidates", []
    )
    return found


def dropped(stage: dict[str, Any]) -> dict[Any, Any]:
    return {row["id"]: row["reason"] for row in stage.get("rag.dropped", [])}


def kinds(sink: Any) -> list[str]:
    """The kinds of what was recorded, in the order of starting."""
    return [span["attributes"]["rag.stage"] for span in sink.spans]


def was_imported(module: str) -> bool:
    return module in sys.modules


def assert_fails(sink: Any, kind: str, call: Callable[[], Any], error: type[BaseException]) -> None:
    """A call that fails raises the library's own exception, and its stage has ended with it."""
    sink.clear()
    with pytest.raises(error) as raised:
        call()
    assert sink.stage(kind)["rag.outcome"] == "error"
    assert sink.stage(kind)["error.type"] == raised.type.__qualname__


def assert_cancels(sink: Any, kind: str, call: Callable[[], Any]) -> None:
    """A call that is cancelled raises CancelledError, and its stage has ended with it."""
    sink.clear()

    async def hang_up() -> None:
        task = asyncio.ensure_future(call())
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(hang_up())
    assert sink.stage(kind)["rag.outcome"] == "cancelled"
