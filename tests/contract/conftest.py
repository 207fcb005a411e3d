"""The package, built once and installed twice: with the extra `local`, and bare."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from installed import Built, Environment
from served import REPOSITORY


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The sdist of this checkout, and the wheel that is built from that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    _check([sys.executable, "-m", "build", "--outdir", str(folder), str(REPOSITORY)])
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    return Built(wheel, sdist)


@pytest.fixture(scope="session")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An empty environment with the wheel and its extra `local`."""
    return _install(f"{built.wheel}[local]", tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="session")
def bare(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An empty environment with the wheel and no extra."""
    return _install(str(built.wheel), tmp_path_factory.mktemp("bare"))


def _install(what: str, folder: Path) -> Environment:
    environment = Environment(folder / "venv", folder / "home")
    environment.home.mkdir()
    _check([sys.executable, "-m", "venv", str(environment.folder)])
    pip = [str(environment.folder / "bin" / "python"), "-m", "pip", "--quiet"]
    _check([*pip, "--disable-pip-version-check", "install", what])
    return environment


def _check(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
