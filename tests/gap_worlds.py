"""Indexes that lost a passage, each in its own way: two ingest runs, manifests, a question."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ragotel
from ragotel.store import Store
from ragotel.triage.labels import load_labels
from ragotel.triage.manifest import Version, load_manifest
from seed_service import serving, write

CLAIM = "21 calendar days"
DOCS = tuple(f"d{number}" for number in range(10))
HEALTHY = {
    "docs_listed": 10,
    "docs_parsed": 10,
    "docs_empty": 0,
    "mean_chars_per_doc": 4000.0,
    "chunks_written": 20,
    "chunks_deleted": 0,
}
Line = dict[str, Any]


@dataclass(frozen=True)
class World:
    """One index: the summaries and manifests of v1 and v2, and what the labels ask for."""

    name: str
    before: list[Line]
    after: list[Line]
    first_run: dict[str, Any] | None = field(default_factory=lambda: HEALTHY)
    second_run: dict[str, Any] | None = field(default_factory=lambda: HEALTHY)
    gold: tuple[str, ...] = ("d3#1",)
    gold_doc: str = ""
    is_change_list: bool = False


def chunks(*without: str) -> list[Line]:
    """Two chunks of every document but those of *without*."""
    return [
        {
            "chunk_id": f"{doc}#{part}",
            "doc_id": doc,
            "text": f"Page {doc}, part {part}, says that {CLAIM} hold for {doc} alone, no more.",
        }
        for doc in DOCS
        if doc not in without
        for part in (0, 1)
    ]


def nameless(lines: list[Line]) -> list[Line]:
    """The same without documents."""
    return [{key: value for key, value in line.items() if key != "doc_id"} for line in lines]


def run(**other: Any) -> dict[str, Any]:
    """A healthy summary but for *other*."""
    return {**HEALTHY, **other}


def deletion(*ids: str) -> list[Line]:
    return [{"chunk_id": chunk_id, "deleted": True} for chunk_id in ids]


SPLIT = [
    {"chunk_id": "d3#a", "doc_id": "d3", "text": "Hardware goes back within 21"},
    {"chunk_id": "d3#b", "doc_id": "d3", "text": "calendar days of delivery."},
]
WORLDS = (
    World(
        "half-the-source",
        chunks(),
        chunks("d3", "d4", "d5", "d6"),
        second_run=run(docs_listed=6, docs_parsed=6, chunks_written=12),
        gold=("d3#1", "d4#0"),
    ),
    World("another-bucket", chunks(), chunks(), gold=("vault#0",), gold_doc="vault"),
    World(
        "scans",
        chunks(),
        chunks("d3", "d4", "d5"),
        second_run=run(docs_parsed=7, docs_empty=3, mean_chars_per_doc=2800.0, chunks_written=14),
    ),
    World(
        "title-only",
        chunks(),
        [*chunks("d3"), {"chunk_id": "d3#0", "doc_id": "d3", "text": "d3"}],
        second_run=run(mean_chars_per_doc=3500.0, chunks_written=19),
    ),
    World(
        "emptied-in-place",
        chunks(),
        deletion("d3#0", "d3#1", "d4#0", "d4#1"),
        second_run=run(docs_parsed=8, docs_empty=2, mean_chars_per_doc=3200.0, chunks_deleted=4),
        is_change_list=True,
    ),
    World("cut-in-two", chunks(), [*chunks("d3"), *SPLIT]),
    World("no-documents-named", nameless(chunks()), nameless(chunks("d3"))),
    World(
        "taken-down",
        chunks(),
        deletion("d3#0", "d3#1"),
        second_run=run(chunks_written=0, chunks_deleted=2),
        is_change_list=True,
    ),
    World(
        "truncated-crawl",
        chunks(),
        chunks("d3", "d4", "d5", "d6", "d7"),
        second_run=run(docs_listed=5, docs_parsed=5, chunks_written=0, chunks_deleted=10),
    ),
    World("nobody-recorded-it", chunks(), chunks("d3"), first_run=None, second_run=None),
    World(
        "two-faults-at-once",
        chunks(),
        chunks("d3", "d4"),
        second_run=run(docs_listed=9, docs_parsed=8, docs_empty=1, chunks_written=16),
    ),
)


def live(store: Store, folder: Path) -> None:
    """Ingest twice, ask each question, write the manifests and the labels: all worlds at once."""
    with serving(store, folder):
        for world in WORLDS:
            for version, summary in (("v1", world.first_run), ("v2", world.second_run)):
                if summary is not None:
                    ingest(world.name, version)(summary)
            for label_id, _ in labels_of(world):
                ask(world.name, label_id)
    for world in WORLDS:
        parent = "v1" if world.is_change_list else ""
        for lines, version in (
            (world.before, Version(world.name, "v1")),
            (world.after, Version(world.name, "v2", parent)),
        ):
            assert not load_manifest(store, [write(folder, "manifest", *lines)], version).refused
    labels = [label for world in WORLDS for _, label in labels_of(world)]
    assert not load_labels(store, [write(folder, "labels", *labels)]).refused


def ingest(index: str, version: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    @ragotel.ingest(index=index, index_version=version)
    def reindex(summary: dict[str, Any]) -> dict[str, Any]:
        return summary

    return reindex


def ask(index: str, label_id: str) -> None:
    @ragotel.retrieve(index=index, index_version="v2")
    def search(question: str, k: int) -> list[dict[str, Any]]:
        return [{"id": "d0#0", "score": 0.5, "text": "Nothing of the kind."}]

    @ragotel.request(label_id=label_id)
    def answer(question: str) -> str:
        return f"Perhaps {search(question, 5)[0]['text']}"

    answer(f"What holds for {label_id}?")


def labels_of(world: World) -> Iterator[tuple[str, Line]]:
    for chunk_id in world.gold:
        label_id = f"{world.name}:{chunk_id}"
        docs = {"doc_ids": [world.gold_doc]} if world.gold_doc else {}
        passage = {"chunk_ids": [chunk_id], "spans": [CLAIM], **docs}
        yield (
            label_id,
            {
                "label_id": label_id,
                "question": f"What holds for {label_id}?",
                "passages": [passage],
            },
        )
