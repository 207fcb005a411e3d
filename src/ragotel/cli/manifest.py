"""Manifest: `ragotel manifest load`.

Pipeline: file -> triage.manifest -> store; [cli]
"""

from __future__ import annotations

import click

from ragotel.cli.options import common_options, ready_store
from ragotel.cli.progress import counting, print_report


@click.group("manifest", short_help="Load what an index version holds.")
def manifest() -> None:
    """What an index version holds: without it, "was the passage indexed at all?" stays unknown."""


@manifest.command("load", short_help="Load a manifest (JSON lines).")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--index", "index_name", required=True, metavar="NAME", help="The index.")
@click.option("--version", required=True, metavar="V", help="Its version, as requests name it.")
@click.option("--parent", default="", metavar="V0", help="FILE lists the changes since V0 only.")
@common_options
def load(
    files: tuple[str, ...],
    index_name: str,
    version: str,
    parent: str,
    dsn: str | None,
    as_json: bool,
) -> int:
    """Load FILEs that together list every chunk of one index version.

    One JSON object a line: {"chunk_id", "doc_id", "doc_version", "text", "chars", "superseded",
    "deleted"}; only chunk_id must be there. A refused line leaves the version unmarked: then
    nothing is concluded from a chunk's absence.
    """
    from ragotel.triage.manifest import Version, load_manifest

    if not index_name.strip() or not version.strip():
        raise click.UsageError("--index and --version must not be empty")
    with ready_store(dsn) as store, counting("lines") as progress:
        report = load_manifest(store, files, Version(index_name, version, parent), progress)
    return print_report(report, f"chunks of {index_name} {version}", as_json=as_json)


def register(group: click.Group) -> None:
    """Add `manifest` to *group*."""
    group.add_command(manifest)
