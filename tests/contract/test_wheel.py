"""The wheel and the sdist: what is in them, and what they do in an empty environment."""

from __future__ import annotations

import json
import sys
import tarfile
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from installed import Built, Environment
from served import REPOSITORY

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SOURCE = REPOSITORY / "src"
_MIB = 1 << 20
_HEAVY = {
    *("chdb", "numpy", "pandas", "pyarrow", "polars", "scipy", "torch", "onnxruntime"),
    *("starlette", "uvicorn", "fastapi", "pytest", "bm25s"),
}


def _packaged() -> set[str]:
    """Every file of the package in the checkout, but what Python makes by itself."""
    return {
        str(path.relative_to(SOURCE))
        for path in SOURCE.glob("ragotel/**/*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def _ask(environment: Environment, code: str) -> Any:
    done = environment.run("python", "-c", code)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_wheel_holds_every_file_of_the_package(built: Built) -> None:
    """SQL, templates, labels and the type marker travel with the code; nothing else does."""
    with zipfile.ZipFile(built.wheel) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == _packaged()


def test_the_sdist_builds_the_same(built: Built) -> None:
    """The sdist holds the package and what a reader needs, and no test, data or cache."""
    with tarfile.open(built.sdist) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames() if "/" in name}
    assert {name.partition("src/")[2] for name in names if name.startswith("src/")} == _packaged()
    assert {name for name in names if not name.startswith("src/")} == {
        *(".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"),
    }


def test_both_are_small(built: Built) -> None:
    """A release stays far below the size at which an image notices it."""
    sizes = [built.wheel.stat().st_size, built.sdist.stat().st_size]
    assert max(sizes) < _MIB


def test_the_installed_program_answers(installed: Environment) -> None:
    """`--help` and `--version` work; the version is the one of the project's file."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    helped, versioned = installed.run("ragotel", "--help"), installed.run("ragotel", "--version")
    assert (helped.returncode, helped.stderr) == (0, "")
    assert "Why a RAG service answered wrongly, as a look-up." in helped.stdout
    assert versioned.stdout == f"ragotel {project['version']}\n"
    assert project["version"] == version("ragotel")


def test_init_makes_a_store(installed: Environment, tmp_path: Path) -> None:
    """`ragotel init` brings an empty folder to the schema; a second run finds nothing to do."""
    dsn = f"chdb://{tmp_path / 'store'}"
    first = installed.run("ragotel", "init", "--store", dsn, "--json")
    assert first.returncode == 0, first.stderr
    made = json.loads(first.stdout)
    second = installed.run("ragotel", "init", "--store", dsn, "--json")
    assert json.loads(second.stdout) == {**made, "new": []}
    tables = {path.stem for path in (SOURCE / "ragotel/sql/tables").glob("*.sql")}
    assert set(made["new"]) == tables
    asked = installed.run(
        "ragotel", "sql", "--store", dsn, "select count() from triage_requests", "--format", "TSV"
    )
    assert asked.stdout == "0\n", asked.stderr


def test_init_prints_every_statement(installed: Environment) -> None:
    """`ragotel init --print` prints the text of each SQL file of the package."""
    printed = installed.run("ragotel", "init", "--print")
    assert printed.returncode == 0, printed.stderr
    missing = [
        path.name
        for path in sorted((SOURCE / "ragotel/sql").glob("**/*.sql"))
        if path.read_text("utf-8").strip() not in printed.stdout
    ]
    assert missing == []


def test_without_extras_nothing_heavy_is_installed(bare: Environment) -> None:
    """A service that only records gets OpenTelemetry, pydantic and clients, and no engine."""
    code = (
        "import importlib.metadata as m, json; "
        "print(json.dumps(sorted(d.name.lower() for d in m.distributions())))"
    )
    names = set(_ask(bare, code))
    assert names & _HEAVY == set()
    megabytes = sum(path.stat().st_size for path in bare.folder.rglob("*") if path.is_file()) / _MIB
    assert megabytes < 150


def test_without_extras_the_emit_half_records(bare: Environment) -> None:
    """Decorated functions run and are recorded with the base install alone."""
    code = (
        "import json, ragotel, ragotel.testing\n"
        "answer = ragotel.request(lambda question: 'yes')\n"
        "with ragotel.testing.recording() as recorded:\n"
        "    answer('does it work?')\n"
        "    print(json.dumps(recorded.stage('request')['rag.query']))\n"
    )
    assert _ask(bare, code) == "does it work?"


def test_importing_loads_neither_engine_nor_clients(bare: Environment) -> None:
    """`import ragotel` reads only what recording needs: exporters and clients wait to be asked."""
    code = (
        "import json, sys, ragotel\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))\n"
    )
    late = {"chdb", "click", "clickhouse_connect", "google", "grpc", "requests", "rich"}
    assert set(_ask(bare, code)) & late == set()


@pytest.mark.parametrize(
    ("command", "extra"), [("init", "local"), ("serve", "local"), ("demo", "demo")]
)
def test_without_extras_a_command_names_the_one_it_needs(
    bare: Environment, command: str, extra: str
) -> None:
    """One line says what is missing and how to get it; `--help` works all the same."""
    helped = bare.run("ragotel", command, "--help")
    assert helped.returncode == 0, helped.stderr
    refused = bare.run("ragotel", command)
    assert (refused.returncode, refused.stdout) == (1, "")
    (line,) = refused.stderr.splitlines()
    assert line.endswith(f"pip install 'ragotel[{extra}]'")
