"""Variants of every convention in one store: their rows, and the same rows by the backfill.

Beside those that variant_spans.py builds there are recorded ones, each what an instrumentation
wrote of a small service: content switched off, sent as events, a framework inside of another span.

RAGOTEL_RECORD=1 rewrites variants.json: read what a world's spans say before you keep it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foreign_rows import Foreign, deliver, picture, span_id, trace_id
from variant_spans import VARIANTS

from own_database import own_database
from ragotel.store import Store
from ragotel.store.backfill import backfill
from ragotel.store.load import load_files

GOLDEN = Path(__file__).resolve().parent / "variants.json"
RECORDED = {f"recorded {path.stem}": path for path in sorted(GOLDEN.parent.glob("recorded/*.json"))}
WORLDS = (*VARIANTS, *RECORDED)
PARTS = ("requests", "stages", "prompts")


def spans() -> list[Foreign]:
    """Every world's spans, the worlds' own orders mixed as batches of several services mix them."""
    everything = [
        replace(span, trace=name[:16])
        for name, world in VARIANTS.items()
        for span in reversed(world)
    ]
    return everything[::3] + everything[1::3] + everything[2::3]


@pytest.fixture(scope="module")
def pictures(
    engine: Store, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """What the spans become as they come, and once more from the spans alone."""
    folder = tmp_path_factory.mktemp("variants")
    with own_database(engine):
        several = spans()
        for number in range(2):
            deliver(engine, folder, several[number::2], str(number))
        load_files(engine, [str(path) for path in RECORDED.values()])
        first = picture(engine)
        for table in ("rag_requests", "rag_stages", "rag_prompts", "rag_chunks"):
            engine.command(f"truncate table {table}")
        backfill(engine)
        yield _by_world(first), _by_world(picture(engine))


def _by_world(found: dict[str, Any]) -> dict[str, Any]:
    by_trace: dict[str, dict[str, Any]] = {}
    names = {trace_id(name[:16]): name for name in VARIANTS}
    assert len(names) == len(VARIANTS)
    for name, path in RECORDED.items():
        traces = set(re.findall(r'"traceId":"(\w+)"', path.read_text("utf-8")))
        names.update(dict.fromkeys(traces, name))
    for part in PARTS:
        for row in found[part]:
            shown = {key: value for key, value in row.items() if key != "trace_id"}
            if not any(shown.get("candidate_doc_ids", [])):
                shown.pop("candidate_doc_ids", None)
            by_trace.setdefault(names[row["trace_id"]], {}).setdefault(part, []).append(shown)
    return by_trace


@pytest.fixture(scope="module")
def golden(pictures: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    if os.environ.get("RAGOTEL_RECORD"):
        ordered = {name: pictures[0].get(name, {}) for name in WORLDS}
        GOLDEN.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", "utf-8")
    known: dict[str, Any] = json.loads(GOLDEN.read_text("utf-8"))
    return known


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_gives_what_a_reader_lists(
    pictures: tuple[dict[str, Any], dict[str, Any]], golden: dict[str, Any], name: str
) -> None:
    """Requests, stages, lists, prompts and tokens, whatever came first, and by the backfill too."""
    as_it_came, anew = (picture.get(name, {}) for picture in pictures)
    assert as_it_came == golden[name]
    assert anew == as_it_came


def test_turns_of_a_conversation_are_requests(golden: dict[str, Any]) -> None:
    """A chain that says nothing itself, above two that search and answer, is none of them."""
    turns = golden["w_turns"]["requests"]
    assert [(row["request_id"], row["query"]) for row in turns] == [
        (span_id("a"), "q1?"),
        (span_id("b"), "q2?"),
    ]
