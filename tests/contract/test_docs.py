"""The documentation as a program: every command runs as it stands, in order, on a real server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from doc_pages import Shell, blocks, snippets
from installed import Environment
from served import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PAGES = [
    "docs/getting-started.md",
    "docs/instrumenting.md",
    "docs/triage.md",
    "docs/alerts.md",
    "docs/recall.md",
    "docs/probing.md",
    "docs/operating.md",
    "docs/delivery.md",
    "docs/privacy.md",
    "docs/comparing.md",
    "docs/conventions.md",
]
NOT_RUN = {"docs/performance.md": "the benchmarks have tests and a time of their own"}
WITH_EXAMPLES = {
    f"docs/{name}.md"
    for name in ("fastapi", "haystack", "langchain", "llama-index", "plain-python")
}
"""Followed by tests/examples, where their libraries are."""


def _read(page: str) -> str:
    return (REPOSITORY / page).read_text("utf-8")


def _follow(shell: Shell, page: str) -> None:
    for block in blocks(page, _read(page)):
        shell.run(block)


@pytest.fixture(scope="module")
def reader(installed: Environment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Somebody who has followed the README to its end, in an environment that holds the wheel."""
    shell = Shell(installed, tmp_path_factory.mktemp("reader"))
    try:
        _follow(shell, "README.md")
        yield shell
    finally:
        shell.stop()


def test_the_readme_leads_to_the_first_verdict(reader: Shell) -> None:
    """From an empty environment to a verdict and its mend, with nothing but the README."""
    wrong, right = list(reader.ids.values())[:2]
    verdicts = reader.environment.run(
        *("ragotel", "sql", "--format", "CSV"),
        "select request_id, bucket from triage_requests where label_id = 'hardware-returns' "
        "order by started_at",
    )
    assert verdicts.stdout == f'"{wrong}","context_problem"\n"{right}","passed"\n'


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_prints_what_the_page_shows(reader: Shell, page: str) -> None:
    """Who has followed the README can follow any other page."""
    reader.serve()
    _follow(reader, page)


def test_every_page_with_commands_is_followed() -> None:
    """No console block stands on a page that nothing runs."""
    with_commands = {
        page
        for path in (REPOSITORY / "docs").glob("**/*.md")
        for page in [str(path.relative_to(REPOSITORY))]
        if any(block.language == "console" for block in blocks(page, _read(page)))
    }
    assert with_commands == {*PAGES, *NOT_RUN, *WITH_EXAMPLES}


@pytest.mark.parametrize("page", ["docs/getting-started.md", "docs/instrumenting.md"])
def test_the_snippets_of_a_page_are_right(page: str, tmp_path: Path) -> None:
    """They run from top to bottom, and name only options that exist."""
    program = tmp_path / "snippets.py"
    program.write_text(snippets(page, _read(page)), "utf-8")
    ran = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    checked = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--config-file=", "--check-untyped-defs"),
            # The reader's own names are not there: an index, a client.
            *("--disable-error-code", "name-defined", "--disable-error-code", "no-redef"),
            *("--disable-error-code", "empty-body", "--cache-dir", str(tmp_path / "cache")),
            str(program),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=REPOSITORY,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
