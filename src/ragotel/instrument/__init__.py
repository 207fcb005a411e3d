"""Auto-instrumentation: the calls of well-known libraries become stages, without a decorator.

Pipeline: library's own call -> [instrument] -> recorder

`ragotel.configure` turns it on for every library that is installed; ``instrument=["qdrant"]`` for
those named, ``instrument=False`` for none. A library is patched when it is imported, never before.
"""

from __future__ import annotations

import importlib
import threading
from typing import Any

from ragotel import faults
from ragotel.errors import ConfigurationError
from ragotel.instrument.hooks import Library, Switch

LIBRARIES = (
    "langchain", "llama_index", "haystack", "chroma", "qdrant", "lancedb", "faiss", "bm25s",
    "rank_bm25", "sentence_transformers", "flashrank", "openai", "anthropic", "litellm",
    "cohere", "voyageai", "rerankers", "pinecone", "milvus", "weaviate", "opensearch",
    "elasticsearch",
)  # fmt: skip
"""Every library that has a file here."""

_switches: dict[str, Switch] = {}
_lock = threading.Lock()


def library(name: str) -> Library:
    """Read one library's patch table; the library itself is not imported.

    Raises:
        ConfigurationError: ragotel knows no library of this name.
    """
    if name not in LIBRARIES:
        raise ConfigurationError(
            f"ragotel cannot instrument {name!r}; it knows {', '.join(LIBRARIES)}."
        )
    found: Any = importlib.import_module(f"ragotel.instrument.{name}")
    table: Library = found.LIBRARY
    return table


def instrument(*libraries: str) -> None:
    """Record the calls of *libraries*; of every library known here if none is named.

    Twice is once. A library that is not installed costs nothing, one that is not imported yet is
    patched as soon as it is.

    Raises:
        ConfigurationError: ragotel knows no library of such a name.
    """
    for name in libraries:
        if name not in LIBRARIES:
            library(name)
    with _lock:
        for name in libraries or LIBRARIES:
            try:
                if name not in _switches:
                    _switches[name] = Switch(library(name))
                _switches[name].turn_on()
            except Exception:
                faults.note(f"instrument {name}")


def uninstrument(*libraries: str) -> None:
    """Undo `instrument`: every patched object is again what it was."""
    with _lock:
        for name in libraries or tuple(_switches):
            if name in _switches:
                _switches[name].turn_off()


def instrumented() -> dict[str, list[str]]:
    """Tell what is patched now: the library's name to its patched attributes, sorted."""
    with _lock:
        return {
            name: sorted(f"{_owner_name(patch.owner)}.{patch.name}" for patch in switch.patches)
            for name, switch in _switches.items()
            if switch.is_on and switch.patches
        }


def _owner_name(owner: Any) -> str:
    return str(getattr(owner, "__qualname__", owner.__name__))
