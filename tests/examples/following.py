"""Pages of the examples as programs: commands run in order, code is found in the example's file."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import asking

from cli_store import run_in
from doc_pages import Shell, Step, blocks, steps
from ragotel.store import Store
from served import REPOSITORY

_BY_THE_TEST = ("pip install ", "cd ", "ragotel serve", "uvicorn ")
"""What the test has done already, in its own way."""


def follow(page: str, name: str, store: Store, folder: Path, capsys: Any) -> None:
    """Run a page's commands in the example's folder, over *store*."""
    text = (REPOSITORY / page).read_text("utf-8")
    example = (asking.EXAMPLES / name / "app.py").read_text("utf-8")
    shell: Any = Shell(None, folder)  # type: ignore[arg-type]
    ragotel = run_in(store, capsys)
    for block in blocks(page, text):
        if block.language == "python":
            assert block.text in example, f"{page}, line {block.line}: not in {name}/app.py"
        if block.language != "console" or not block.is_run:
            continue
        with asking.recording_to(store, folder) as endpoint:
            ran = [
                (step, _run_service(name, step, endpoint))
                for step in steps(block)
                if not step.command.startswith(("ragotel ", *_BY_THE_TEST))
            ]
        for step, printed in ran:
            shell.compare(f"{page}: {step.command}", step.shown, printed)
        for step in steps(block):
            if step.command.startswith("ragotel ") and step.command != "ragotel serve":
                words = _words(step.command, name)
                done = ragotel(*words[1:])
                assert done.code == 0, done.err
                shell.compare(f"{page}: {step.command}", step.shown, done.out)


def _words(command: str, name: str) -> list[str]:
    """Split as a shell does, seen from the example's folder."""
    import shlex

    folder = asking.EXAMPLES / name
    return [
        str((folder / word).resolve()) if word.startswith("../data/") else word
        for word in shlex.split(command)
    ]


def _run_service(name: str, step: Step, endpoint: str) -> str:
    words = _words(step.command, name)
    if words[:2] == ["python", "app.py"]:
        return "\n".join(asking.ask(name, endpoint, words[2:]))
    assert words[0] == "curl", step.command
    with asking.serving(name, endpoint) as address:
        command = [word.replace("localhost:8000", address.partition("//")[2]) for word in words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout
