"""One target under atheris: `one.py TARGET [options of libFuzzer] [corpus]`; run.py calls it."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["ragotel"]):
    from targets import TARGETS


def main() -> None:
    """Run until libFuzzer's limits, or until a law is broken."""
    name = sys.argv.pop(1)
    atheris.Setup(sys.argv, TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
