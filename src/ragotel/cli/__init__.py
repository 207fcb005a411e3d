"""Commands: every question of `ragotel.triage` on a terminal.

Pipeline: views -> triage -> [cli]. One module per group of commands, imported when it is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main", "run"]


def main() -> None:
    """Entry point of the `ragotel` program."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns the exit code and lets no exception out (but with `--debug`).

    0 fine · 1 the answer is no, a limit is broken, or some lines were rejected · 2 wrong use ·
    130 interrupted · 141 the reader of a pipe went away.
    """
    from ragotel.cli.running import run_group

    return run_group(arguments)
