"""The source tree: sizes, docstrings, import contracts, heads of SQL files, nobody's machine."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import ragotel
from ragotel.store import catalog
from served import REPOSITORY

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PACKAGE = REPOSITORY / "src" / "ragotel"
MODULES = sorted(PACKAGE.glob("**/*.py"))
MAX_LINES = 400
_SHARED = {"attributes", "errors", "model", "text"}
_MACHINE = re.compile(rb"/(?:work|root)/|/home/(?!user\b)\w+/|/Users/\w+")
_READ = re.compile(r"\b(?:from|join)\s+([a-z][a-z0-9_]+)\b")


def _name(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_no_module_is_long() -> None:
    """A module fits into a head."""
    lengths = {_name(path): len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


def test_every_module_says_where_it_stands() -> None:
    """The docstring's first line tells what a module is for."""
    assert [_name(p) for p in MODULES if not ast.get_docstring(ast.parse(p.read_text()))] == []


def test_every_public_name_has_a_docstring() -> None:
    """What `import ragotel` offers explains itself in `help()`."""
    assert ragotel.configure.__doc__
    undocumented = [name for name in ragotel.__all__ if not getattr(ragotel, name).__doc__]
    assert undocumented == []


def test_every_public_class_has_a_docstring() -> None:
    """A class's name is not enough to know what it is responsible for."""
    found = [
        f"{_name(path)}: {node.name}"
        for path in MODULES
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]
    assert found == []


def test_every_module_is_in_an_import_contract() -> None:
    """A new module of the emit half cannot escape the arrows by not being listed."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    listed = {
        module.partition(".")[2]
        for contract in contracts
        if contract["name"] in ("Emit never imports read", "Read never imports emit")
        for module in contract["source_modules"]
    }
    names = {
        path.stem if path.is_file() else path.name
        for path in PACKAGE.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert names - listed == {"__init__", "__main__", "demo", *_SHARED}
    assert listed - names == set()


@pytest.mark.parametrize(
    "file",
    [*catalog.functions(), *catalog.tables(), *catalog.views()],
    ids=lambda file: file.name,
)
def test_the_head_of_a_sql_file_tells_the_truth(file: catalog.SqlFile) -> None:
    """Three lines: what it answers, its grain, and exactly what it reads."""
    assert list(file.head) == ["answers", "grain", "reads"]
    known = {view.name for view in catalog.views()}
    known |= {table.name.partition("_")[2] for table in catalog.tables()}
    own = {file.name.partition("_")[2] if file.layer == "tables" else file.name}
    statement = re.sub(r"--[^\n]*", "", file.text)
    read = {name for name in _READ.findall(statement) if name in known} - own
    told = {name for name in re.split(r",\s*", file.head["reads"]) if name != "nothing"}
    assert told == read


def test_modules_of_the_tests_have_names_of_their_own() -> None:
    """Their folders are no packages: of two modules with one name only one can be imported."""
    names = Counter(path.name for path in (REPOSITORY / "tests").glob("**/*.py"))
    assert [n for n, count in names.items() if count > 1 and n != "conftest.py"] == []


def test_no_file_knows_a_machine() -> None:
    """No path of a developer's own stands in what is tracked."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=True
    ).stdout
    names = [name for name in listed.decode().split("\0") if name]
    if not names:
        pytest.skip("not a checkout")
    found = {
        name: hit[0]
        for name in names
        if (REPOSITORY / name).is_file() and name != "tests/contract/test_sources.py"
        for hit in [_MACHINE.search((REPOSITORY / name).read_bytes())]
        if hit
    }
    assert found == {}
