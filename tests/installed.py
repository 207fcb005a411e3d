"""The package as a stranger gets it: built, and installed in environments of its own."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Built:
    """The two files of a release."""

    wheel: Path
    sdist: Path


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the wheel in it, and a home folder that nobody else uses."""

    folder: Path
    home: Path

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a shell that has it activated; nothing of ragotel's is set."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("RAGOTEL_", "OTEL_", "PYTHON", "VIRTUAL_ENV"))
        }
        path = f"{self.folder / 'bin'}{os.pathsep}{kept['PATH']}"
        return {**kept, "PATH": path, "HOME": str(self.home), "VIRTUAL_ENV": str(self.folder)}

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, in its home."""
        return subprocess.run(
            [str(self.folder / "bin" / command[0]), *command[1:]],
            env=self.variables,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
