"""Probe and ablate: `ragotel probe load`, `ragotel ablate load`.

Pipeline: file -> triage.probes | triage.ablations -> store; [cli]
"""

from __future__ import annotations

import click

from ragotel.cli.options import common_options, ready_store
from ragotel.cli.progress import counting, print_report


@click.group("probe", short_help="Load deep ranks of gold passages.")
def probe() -> None:
    """Deep ranks: where a search with a large k, in the same index version, finds the gold."""


@probe.command("load", short_help="Load probes (JSON lines).")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@common_options
def load_probe(files: tuple[str, ...], dsn: str | None, as_json: bool) -> int:
    """Load FILEs of {"trace_id" | "request_id", "label_id", "passage", "leg", "principal", "k",
    "deep_rank", "score", "index_version"}; deep_rank null means: not within k."""
    from ragotel.triage.probes import load_probes

    with ready_store(dsn) as store, counting("lines") as progress:
        report = load_probes(store, files, progress)
    return print_report(report, "probes", as_json=as_json)


@click.group("ablate", short_help="Load answers given with gold alone, or at other positions.")
def ablate() -> None:
    """Ablations: they tell distraction (2b) from misuse (3)."""


@ablate.command("load", short_help="Load ablations (JSON lines).")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@common_options
def load_ablation(files: tuple[str, ...], dsn: str | None, as_json: bool) -> int:
    """Load FILEs of {"trace_id" | "request_id", "label_id", "mode", "position", "of", "correct"};
    mode is gold_only, position or full."""
    from ragotel.triage.ablations import load_ablations

    with ready_store(dsn) as store, counting("lines") as progress:
        report = load_ablations(store, files, progress)
    return print_report(report, "ablations", as_json=as_json)


def register(group: click.Group) -> None:
    """Add `probe` and `ablate` to *group*."""
    group.add_command(probe)
    group.add_command(ablate)
