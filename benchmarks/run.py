"""Run the benchmarks: python benchmarks/run.py [--quick] [NAME ...].

Prints what is promised beside what was measured, writes all figures to benchmarks/out/, and ends
with 1 where a promise is broken. NAME is a script of this folder: `overhead`, `store`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = ("overhead", "store")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="overhead, store; default: all that are there")
    parser.add_argument("--quick", action="store_true", help="one short round: a smoke test")
    arguments = parser.parse_args()
    present = [name for name in NAMES if (HERE / f"{name}.py").exists()]
    if unknown := sorted(set(arguments.names) - set(present)):
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(present)}")
    is_met = True
    for name in arguments.names or present:
        benchmark = importlib.import_module(name)
        results = benchmark.measure_all(arguments.quick)
        verdicts = benchmark.judge(results)
        print(f"\n{name}, {platform.python_implementation()} {platform.python_version()}")
        print(benchmark.report(results, verdicts), flush=True)
        out = HERE / "out"
        out.mkdir(exist_ok=True)
        figures = {
            "results": results,
            "verdicts": [{**asdict(verdict), "is_met": verdict.is_met} for verdict in verdicts],
        }
        (out / f"{name}.json").write_text(json.dumps(figures, indent=1))
        is_met = is_met and all(verdict.is_met for verdict in verdicts)
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
