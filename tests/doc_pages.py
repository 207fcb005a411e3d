"""Pages of the documentation as programs: their code blocks, and a shell that runs them in order.

A `console` block holds commands (``$ ``, continued by ``> ``) and lines of their output, which must
come in this order; lines may be left out, but in the README only where a line of ``…`` alone stands
for them. ``…`` stands for anything, times and ports for any others, and an id for the one that this
run gave in its place.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from installed import Environment
from served import Served, start_server

_FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S)
_FILE = re.compile(r"\b[Ss]ave (?:this service |this |it )?as `([\w./-]+)`")
_NOT_RUN = re.compile(r"<!-- not run: .+ -->")
_STOPPED = "<!-- the server is stopped here -->"
_ID = re.compile(r"\b(?:[0-9a-f]{32}|[0-9a-f]{16})\b")
_LOOSE = re.compile(
    r"(?P<any>…)|(?P<id>\b(?:[0-9a-f]{32}|[0-9a-f]{16})\b)"
    r"|(?P<time>\b20\d\d-\d\d-\d\d(?: \d\d:\d\d(?::\d\d)?)?\b)"
    r"|(?P<address>127\.0\.0\.1:\d+)|(?P<blank>\s+)"
)
_COVERED = ("python3 -m venv ", ". .venv/bin/activate", "pip install ")
"""Commands that the fixtures have run already, in an environment of the test's own."""


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    text: str
    file_name: str
    is_run: bool
    ends_server: bool


@dataclass(frozen=True)
class Step:
    """One command of a console block and the lines that the page shows of its output."""

    command: str
    shown: list[str]


def blocks(page: str, text: str) -> Iterator[Block]:
    """All fenced blocks of *text*, in order."""
    for found in _FENCE.finditer(text):
        before = _lines_before(text, found.start())
        name = _FILE.search(before)
        yield Block(
            page=page,
            line=text.count("\n", 0, found.start()) + 1,
            language=found["language"],
            text=found["text"],
            file_name=name[1] if name else "",
            is_run=not _NOT_RUN.search(before),
            ends_server=_STOPPED in before,
        )


def _lines_before(text: str, position: int) -> str:
    """The paragraph above a fence, with a comment above or below it."""
    lines: list[str] = []
    for line in reversed(text[:position].splitlines()):
        if line.startswith("```") or len(lines) == 5:
            break
        lines.append(line)
    return "\n".join(lines)


def steps(block: Block) -> Iterator[Step]:
    """The commands of a console block."""
    command, shown = "", []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if command:
                yield Step(command, shown)
            command, shown = line[2:], []
        elif line.startswith("> ") and not shown:
            command += "\n" + line[2:]
        else:
            shown.append(line)
    if command:
        yield Step(command, shown)


@dataclass
class Shell:
    """A shell in an empty folder: an environment with ragotel, and a home of its own."""

    environment: Environment
    folder: Path
    server: Served | None = None
    ids: dict[str, str] = field(default_factory=dict)
    """Ids that a page shows, to the ones of this run."""

    def run(self, block: Block) -> None:
        """Write the block's file, or run its commands and compare what they print."""
        if block.ends_server:
            self.stop()
        if block.file_name:
            (self.folder / block.file_name).write_text(block.text, "utf-8")
        elif block.language == "console" and block.is_run:
            for step in steps(block):
                self._run_step(block, step)

    def _run_step(self, block: Block, step: Step) -> None:
        where = f"{block.page}, line {block.line}: $ {step.command}"
        is_whole = block.page == "README.md"
        if step.command == "ragotel serve":
            self.compare(where, step.shown, self.serve(), is_whole=is_whole)
        elif not step.command.startswith(_COVERED):
            command = _ID.sub(lambda found: self.ids.get(found[0], found[0]), step.command)
            done = subprocess.run(
                ["bash", "-c", command],
                env=self._variables(),
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=120,
                check=False,
            )
            is_refusal = any(line.startswith("ragotel: ") for line in step.shown)
            assert (done.returncode != 0) == is_refusal, f"{where}\n{done.stdout}"
            self.compare(where, step.shown, done.stdout, is_whole=is_whole)

    def serve(self) -> str:
        """Start `ragotel serve` on free ports, unless it runs; what it printed."""
        if self.server is None:
            program = self.environment.folder / "bin" / "python"
            self.server = start_server(
                self.environment.home / ".ragotel" / "store", program=str(program)
            )
        return "".join(self.server.output)

    def stop(self) -> None:
        """End the server, if a page has started one."""
        if self.server is not None:
            self.server.stop()
            self.server = None

    def _variables(self) -> dict[str, str]:
        variables = dict(self.environment.variables)
        if self.server is not None:
            variables["RAGOTEL_ENDPOINT"] = self.server.otlp_http
        return variables

    def compare(
        self, where: str, shown: list[str], printed: str, *, is_whole: bool = False
    ) -> None:
        """See that the lines of the page stand in what was printed, in their order.

        With *is_whole* nothing may be left out but where the page says ``…``, unless it shows
        nothing at all.
        """
        rest, may_skip = list(filter(str.strip, printed.splitlines())), not is_whole
        told = f"{where}\nprinted was\n{printed}"
        for line in filter(str.strip, shown):
            if line.strip() == "…":
                may_skip = True
                continue
            pattern = re.compile(_LOOSE.sub(self._loosely, _escaped(line)) + r"\s*")
            while not (found := pattern.fullmatch(rest[0].strip()) if rest else None):
                if not rest or not may_skip:
                    break
                rest.pop(0)
            assert found, f"{told}\nthe page shows in this place\n  {line}"
            del rest[0]
            self._learn(line, found)
            may_skip = not is_whole
        assert may_skip or not rest or not shown, f"{told}\nthe page leaves out\n  {rest[0]}"

    def _learn(self, line: str, found: re.Match[str]) -> None:
        for told, real in zip(_ID.findall(line), found.groups(), strict=True):
            self.ids.setdefault(told, real)

    def _loosely(self, found: re.Match[str]) -> str:
        if found["id"]:
            known = self.ids.get(found["id"])
            return f"({known})" if known else rf"([0-9a-f]{{{len(found['id'])}}})"
        if found["any"]:
            return ".*"
        if found["time"]:
            return r"20\d\d-\d\d-\d\d(?: \d\d:\d\d(?::\d\d)?)?"
        return r"127\.0\.0\.1:\d+" if found["address"] else r"\s+"


def _escaped(line: str) -> str:
    """Escape what a pattern would obey, but nothing that `_LOOSE` looks for."""
    return re.sub(r"([\\^$*+?{}\[\]()|])", r"\\\1", line.strip())


def snippets(page: str, text: str) -> str:
    """The page's Python that belongs in no file, as one program."""
    return "\n\n".join(
        block.text
        for block in blocks(page, text)
        if block.language == "python" and not block.file_name and block.is_run
    )
