"""Beside the demo's pipeline: plays the fourteen days on the service and writes what people would.

The service records itself through ragotel. Written here is only what comes from outside of a
service: the manifest of each index version, the exact grader's grades, the labels; all are files
that commands load.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from datetime import time as time_of_day
from pathlib import Path
from typing import Any

from ragotel import clock
from ragotel.demo.corpus import Chunk, chunk_pages, parse, reference_site
from ragotel.demo.history import DAYS, STEPS, Step
from ragotel.demo.labels import Label, grade, resolve, shipped_labels
from ragotel.demo.service import DocsBot, IngestRun
from ragotel.demo.traffic import Ask, day_of, day_traffic, first_day

UNGRADED_DAY = DAYS
"""int. The grader has not run yet for the last day."""

_DEPLOYED_AT = timedelta(hours=4)


@dataclass(frozen=True)
class ManifestFile:
    """A manifest to be loaded: *parent* is empty where the file lists the whole version."""

    path: Path
    version: str
    parent: str = ""


@dataclass
class Played:
    """What the fourteen days left beside the record."""

    folder: Path
    start: date
    labels: list[Label]
    requests: int = 0
    runs: list[IngestRun] = field(default_factory=list)
    manifests: list[ManifestFile] = field(default_factory=list)
    versions_by_day: dict[int, str] = field(default_factory=dict)

    @property
    def labels_file(self) -> Path:
        return self.folder / "labels.jsonl"

    @property
    def grades_file(self) -> Path:
        return self.folder / "grades.jsonl"


class Player:
    """Takes the service through its history, one day after the other."""

    def __init__(self, bot: DocsBot, folder: Path, today: date) -> None:
        self._bot = bot
        self._site = reference_site()
        self._steps = {step.day: step for step in STEPS}
        chunks = chunk_pages(parse(document) for document in self._site)
        labels = resolve(shipped_labels(), chunks)
        folder.mkdir(parents=True, exist_ok=True)
        self.played = Played(folder, first_day(today), labels)
        _write_lines(self.played.labels_file, labels)

    def play(self) -> Iterator[tuple[int, Step | None]]:
        """Play the days; each is yielded when it is over, with what was deployed that morning."""
        grades: list[dict[str, Any]] = []
        for day in range(1, DAYS + 1):
            step = self._steps.get(day)
            if step:
                self._deploy(step)
            self.played.versions_by_day[day] = self._bot.release.index.version
            for ask in day_traffic(self.played.start, day, self.played.labels):
                line = self._ask(ask)
                if line and day != UNGRADED_DAY:
                    grades.append(line)
            yield day, step
        _write_lines(self.played.grades_file, grades)

    def _deploy(self, step: Step) -> None:
        release = self._bot.release
        release.template = step.template or release.template
        release.budget = step.budget or release.budget
        if not step.crawl:
            return
        before = release.index
        midnight = datetime.combine(day_of(self.played.start, step.day), time_of_day())
        with at_time(midnight.replace(tzinfo=timezone.utc) + _DEPLOYED_AT):
            version = f"v{len(self.played.runs) + 1}"
            run = self._bot.ingest(step.crawl(self._site), index_version=version)
        self.played.runs.append(run)
        parent = before if step.manifest == "changes" else None
        if step.manifest != "never":
            path = self.played.folder / f"manifest-{version}.jsonl"
            old = parent.chunks if parent else ()
            _write_lines(path, _manifest(old, release.index.chunks))
            self.played.manifests.append(
                ManifestFile(path, version, parent.version if parent else "")
            )

    def _ask(self, ask: Ask) -> dict[str, Any] | None:
        with at_time(ask.at):
            reply = self._bot.answer(ask.question, ask.user, f"{ask.user}-{ask.at:%m%d}")
        self.played.requests += 1
        if ask.label is None:
            return None
        return {
            "request_id": reply.request_id,
            "label_id": ask.label["label_id"],
            "grade": grade(ask.label, reply.answer),
            "source": "exact",
            "by": "demo",
        }


@contextmanager
def at_time(moment: datetime) -> Iterator[None]:
    """Let ragotel record what happens inside as happening at *moment*; durations stay real."""
    before = clock.wall_ns
    behind_ns = time.time_ns() - int(moment.timestamp() * 1_000_000) * 1000
    clock.wall_ns = lambda: time.time_ns() - behind_ns
    try:
        yield
    finally:
        clock.wall_ns = before


def _manifest(old: Sequence[Chunk], new: Sequence[Chunk]) -> Iterator[dict[str, Any]]:
    before = {chunk.chunk_id: chunk for chunk in old}
    after = {chunk.chunk_id for chunk in new}
    for chunk in new:
        if before.get(chunk.chunk_id) != chunk:
            yield {
                "chunk_id": chunk.chunk_id,
                "doc_id": chunk.doc_id,
                "doc_version": chunk.doc_version,
                "text": chunk.text,
                "chars": len(chunk.text),
                "superseded": chunk.superseded,
            }
    for chunk_id in sorted(before.keys() - after):
        yield {"chunk_id": chunk_id, "doc_id": before[chunk_id].doc_id, "deleted": True}


def _write_lines(path: Path, records: Iterator[dict[str, Any]] | Sequence[Any]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
