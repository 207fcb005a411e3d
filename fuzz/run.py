"""Fuzzing by hand: each target for some minutes, what it finds in fuzz/found/ (`make fuzz`)."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from targets import TARGETS, seeds

HERE = Path(__file__).resolve().parent
SPANS = "spans"
MOST_BYTES = {"protobuf": 4096, "json": 4096, "messages": 512, "objects": 512}
MEMORY_MB = 4096
SLOWEST_S = 30


def main() -> int:
    """Run what the command line names; 1 where something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for each target")
    parser.add_argument(
        "targets", nargs="*", help=f"of {', '.join((*TARGETS, SPANS))}; all of them"
    )
    given = parser.parse_args()
    *rest, last = given.targets or [""]
    if last and Path(last).is_file():
        return fuzz(rest[0], [last])
    found = [one for one in given.targets or (*TARGETS, SPANS) if run(one, given.minutes)]
    print(f"broken: {', '.join(found)}, see fuzz/found/" if found else "no law was broken")
    return 1 if found else 0


def run(target: str, minutes: float) -> int:
    """One target for *minutes*; its exit status."""
    print(f"{target} for {minutes:g} minutes", flush=True)
    if target == SPANS:
        return subprocess.call([sys.executable, HERE / "spans.py", f"--minutes={minutes}"])
    corpus, broken = HERE / "corpus" / target, HERE / "found" / target
    for folder in (corpus, broken):
        folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(target)):
        (corpus / f"seed-{number}").write_bytes(seed)
    options = [
        f"-max_total_time={round(minutes * 60)}",
        f"-artifact_prefix={broken}/",
        f"-max_len={MOST_BYTES[target]}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-timeout={SLOWEST_S}",
        "-print_final_stats=1",
        "-verbosity=0",
    ]
    return fuzz(target, [*options, str(corpus)])


def fuzz(target: str, arguments: list[str]) -> int:
    """libFuzzer on one target."""
    return subprocess.call([sys.executable, HERE / "one.py", target, *arguments])


if __name__ == "__main__":
    sys.exit(main())
