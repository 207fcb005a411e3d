"""The docs' table of supported libraries is that of the patch tables and of what was tested."""

from __future__ import annotations

import ast
import os
import re
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from ragotel import instrument
from ragotel.instrument.hooks import Library

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "compatibility.md"
BEGIN, END = "<!-- begin: libraries -->", "<!-- end: libraries -->"
NOT_IN_CI = {"sentence_transformers": "needs torch"}
"""Libraries that the gate does not install; a person runs their tests."""
HOW = {
    "flashrank": "its own ranker, the model's session replaced",
    "rerankers": "its own base class and results, a ranker of the test's",
    "sentence_transformers": "a tiny model of random weights",
    "milvus": "its own clients and results, the connection replaced",
    "weaviate": "its own queries and results, the gRPC call replaced",
    "openai": "an HTTP server that speaks its API",
    "anthropic": "an HTTP server that speaks its API",
    "litellm": "an HTTP server that speaks OpenAI's and Cohere's API",
    "cohere": "an HTTP server that speaks its API",
    "voyageai": "an HTTP server that speaks its API",
    "pinecone": "an HTTP server that speaks its API; gRPC not run",
    "opensearch": "an HTTP server that speaks its API",
    "elasticsearch": "an HTTP server that speaks its API",
    "chroma": "its local engine; the async client with the server's calls replaced",
    "qdrant": "its local engine",
    "lancedb": "its local engine",
    "langchain": "core, classic and LangGraph, a fake model",
    "llama_index": "core, a fake model",
}
STAGES = ("request", "retrieve", "fuse", "rerank", "blend", "filter", "assemble", "generate")


def tables() -> list[Library]:
    return [instrument.library(name) for name in instrument.LIBRARIES]


def stages_of(library: Library) -> str:
    """The stages that a library's file makes, in the order of the pipeline."""
    package = REPOSITORY / "src" / "ragotel" / "instrument"
    text = (package / f"{library.name}.py").read_text("utf-8")
    for helper in ("ranked", "hits"):
        if f"ragotel.instrument.{helper}" in text:
            text += (package / f"{helper}.py").read_text("utf-8")
    names = {
        alias.name.lower()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and node.module == "ragotel.spec"
        for alias in node.names
    }
    return ", ".join(stage for stage in STAGES if stage in names)


def known_versions() -> dict[str, str]:
    """What the page says was tested, by library."""
    rows = re.findall(r"^\| `(\w+)` \|(?:[^|]*\|){3} (\S+) \|", PAGE.read_text("utf-8"), re.M)
    return dict(rows)


def make_table() -> str:
    before = known_versions()
    lines = [
        "| name | package | supported | stages | tested with | against |",
        "|---|---|---|---|---|---|",
    ]
    for library in sorted(tables(), key=lambda one: one.name):
        version = library.installed_version() or before.get(library.name, "-")
        lines.append(
            f"| `{library.name}` | {library.package} | `{library.versions}` | "
            f"{stages_of(library)} | {version} | {HOW.get(library.name, 'the library itself')} |"
        )
    return "\n".join(lines)


def test_the_page_lists_every_library() -> None:
    """RAGOTEL_RECORD=1 writes the table anew, with the versions that are installed."""
    text = PAGE.read_text("utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    if os.environ.get("RAGOTEL_RECORD"):
        PAGE.write_text(f"{head}{BEGIN}\n{make_table()}\n{END}{tail}", "utf-8")
        return
    versions = re.compile(r"(\| `\w+` \|(?:[^|]*\|){3}) \S+ \|")
    found = rest.partition(END)[0].strip()
    # Releases move on by themselves: the versions need not be today's.
    assert versions.sub(r"\1 - |", found) == versions.sub(r"\1 - |", make_table())


@pytest.mark.parametrize("name", instrument.LIBRARIES)
def test_every_library_was_tested(name: str) -> None:
    """On the gate nothing is skipped unseen: what must be there is, in a supported version."""
    library = instrument.library(name)
    version = library.installed_version()
    if version is None:
        must_be_there = os.environ.get("CI") and name not in NOT_IN_CI
        assert not must_be_there, f"{library.package} is not installed; see `instrument-tests`"
        pytest.skip(f"{library.package} is not installed")
    assert version in SpecifierSet(library.versions, prereleases=True)
    assert metadata.version(library.package) == version
    assert (Path(__file__).parent / f"test_{name}.py").is_file()
