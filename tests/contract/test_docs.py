"""The documentation: every command is run as it stands, in order, against a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from doc_pages import Shell, blocks
from installed import Environment
from served import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PAGES = ["getting-started.md", "instrumenting.md", "triage.md", "operating.md", "delivery.md"]


def _follow(shell: Shell, name: str) -> None:
    path = REPOSITORY / name
    for block in blocks(name, path.read_text("utf-8")):
        shell.run(block)


@pytest.fixture(scope="module")
def reader(installed: Environment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Somebody who has followed the README to its end."""
    shell = Shell(installed, tmp_path_factory.mktemp("reader"))
    try:
        _follow(shell, "README.md")
        yield shell
    finally:
        shell.stop()


def test_the_readme_leads_to_the_first_verdict(reader: Shell) -> None:
    """From an empty environment to a verdict and its mend, with nothing but the README."""
    assert len(reader.ids) > 2
