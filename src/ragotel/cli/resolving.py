"""Resolving: `ragotel labels resolve`, from claims to the chunks that state them.

Pipeline: rag_chunks, rag_labels -> triage.resolve -> rag_labels_in; [cli]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ragotel.cli.options import Whole, common_options, ready_store
from ragotel.cli.output import Column, counted, one_line, print_json, print_rows, say
from ragotel.cli.progress import counting

if TYPE_CHECKING:
    from ragotel.triage.resolve import Resolved

_SHOWN_LABELS = 10


@click.command("resolve", short_help="Find the chunks that state a claim.")
@click.option("--label", "label_id", metavar="ID", help="Look for the claims of this label.")
@click.option("--set", "label_set", metavar="NAME", help="Look for the claims of all its labels.")
@click.option("--claim", metavar="TEXT", help="Look for this text, such as '25%'.")
@click.option("--index", "index_name", metavar="NAME", help="Only chunks of this index.")
@click.option("--version", metavar="V", help="As it stood at this version; needs --index.")
@click.option(
    "--all-versions",
    is_flag=True,
    help="A row for each index version: what was cut anew has other ids.",
)
@click.option("--under", metavar="PREFIX", help="Only chunks or documents whose id begins so.")
@click.option("--write", is_flag=True, help="Add the chunks found to the label's gold chunks.")
@click.option(
    "--limit",
    type=Whole(1, 10_000),
    default=50,
    show_default=True,
    metavar="N",
    help="Chunks listed (and written) for each claim.",
)
@common_options
def resolve(
    label_id: str | None,
    label_set: str | None,
    claim: str | None,
    index_name: str | None,
    version: str | None,
    all_versions: bool,
    under: str | None,
    write: bool,
    limit: int,
    dsn: str | None,
    as_json: bool,
) -> int:
    """Search the chunk texts for a claim: which chunk is gold?

    \b
    ragotel labels resolve --claim "25%" --under policies/

    With --label ID --all-versions --write (or --set NAME, for all its labels) a label names the
    chunk of every index version, so it judges the requests before and after the corpus was cut
    anew. What is written stands in the list: read it, as the same words may mean something else.

    Exit code 1: no chunk states it. Then look at the ingest: is the document in the manifest? With
    --set also where that is so of one label, or one has no claim to look for; the others are
    written.
    """
    from ragotel.triage.resolve import Place, resolve_label, resolve_set, search_claim

    if sum(given is not None for given in (label_id, label_set, claim)) != 1:
        raise click.UsageError("give --label, --set or --claim, one of them")
    if write and claim is not None:
        raise click.UsageError("--write needs --label or --set")
    if version and not index_name:
        raise click.UsageError("--version needs --index")
    if version and all_versions:
        raise click.UsageError("give either --version or --all-versions")
    place = Place(index_name, version, under or "", limit, all_versions)
    with ready_store(dsn) as store, counting("labels") as progress:
        if label_set is not None:
            found = resolve_set(store, label_set, place, progress, write=write)
        elif label_id is not None:
            found = resolve_label(store, label_id, place, write=write)
        else:
            found = search_claim(store, claim or "", place)
    if as_json:
        print_json(found.rows)
    elif found.rows:
        _print_places(found.rows, is_set=label_set is not None)
    for line in _about_places(found, under, limit, label_set=label_set):
        say(one_line(line), err=True)
    is_bad = label_set is not None and (found.nowhere or found.claimless)
    return 1 if is_bad or not found.rows else 0


def _about_places(
    found: Resolved, under: str | None, limit: int, *, label_set: str | None
) -> list[str]:
    """What to say beside the list: what was written, and what was not found."""
    where = f" under {under}" if under else ""
    nothing = f"None of {counted(found.searched_texts, 'chunk text')}{where} states"
    if not found.searched_texts:
        return [
            f"No chunk text is known{where}: load the manifest of the index "
            "(ragotel manifest load), with its texts."
        ]
    lines = []
    if found.is_cut:
        lines.append(f"A claim stands in more places than the {limit:,} listed: raise --limit.")
    if label_set is None:
        if found.written_ids:
            lines.append(f"Written to the label: {', '.join(found.written_ids)}.")
        if not found.rows:
            lines.append(
                f"{nothing} it: the corpus may not hold it. Look at the ingest manifest next."
            )
        return lines
    if found.nowhere:
        lines.append(f"{nothing} the claim of: {_some(found.nowhere)}.")
    if found.claimless:
        lines.append(f"No span and no text to look for: {_some(found.claimless)}.")
    good = found.labels - len({*found.nowhere, *found.claimless})
    written = ""
    if found.written_ids:
        ids = counted(len(found.written_ids), "chunk id")
        written = f"; {ids} written to {found.written_labels:,} of them"
    lines.append(
        f"Set {label_set}: {good:,} of {found.labels:,} labels have a chunk for each passage"
        f"{written}."
    )
    return lines


def _some(label_ids: list[str]) -> str:
    """Up to ten ids and how many more there are."""
    more = len(label_ids) - _SHOWN_LABELS
    shown = ", ".join(label_ids[:_SHOWN_LABELS])
    return f"{shown} and {more:,} more" if more > 0 else shown


def _print_places(rows: list[dict[str, Any]], *, is_set: bool) -> None:
    labels = (Column("label_id", "label"), Column("passage", is_number=True))
    versions = (Column("index_name", "index"), Column("version"))
    print_rows(
        rows,
        (
            *(labels if is_set else ()),
            *(versions if "version" in rows[0] else ()),
            Column("chunk_id", "chunk"),
            Column("doc_id", "document"),
            Column("claim", is_text=True),
            Column("sentence", is_text=True),
        ),
    )
