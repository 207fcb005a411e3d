"""Recorded traces of other instrumentations, beside the checkout: rows as read off by hand.

RAGOTEL_RECORD=1 rewrites expected/<sample>.json: read the sample before you keep it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from foreign_rows import picture

from own_database import own_database, step_into
from ragotel.store import Store
from ragotel.store.backfill import backfill
from ragotel.store.load import load_files
from ragotel.text import chunk_sha

EXPECTED = Path(__file__).resolve().parent / "expected"
SAMPLES = sorted(path.stem for path in EXPECTED.glob("*.json"))
TABLES = ("otel_traces", "rag_requests", "rag_stages", "rag_prompts", "rag_chunks")


@pytest.fixture(scope="module")
def database(engine: Store) -> Iterator[str]:
    with own_database(engine) as name:
        yield name


@pytest.fixture
def emptied(engine: Store, database: str) -> Store:
    step_into(engine, database)
    for table in TABLES:
        engine.command(f"truncate table {table}")
    return engine


def _sample(shared_dir: Path, name: str) -> Path:
    path = shared_dir / "cases" / "foreign_traces" / f"{name}.json"
    if not path.exists():
        pytest.skip(f"the sample {name} is not beside the checkout")
    return path


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_gives_what_a_reader_lists(emptied: Store, shared_dir: Path, name: str) -> None:
    """Requests, stages, ids, scores, hashes, prompts, tokens and evidence, value by value."""
    load_files(emptied, [str(_sample(shared_dir, name))])
    found = picture(emptied)
    path = EXPECTED / f"{name}.json"
    if os.environ.get("RAGOTEL_RECORD"):
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    assert found == json.loads(path.read_text("utf-8"))
    assert {sha: chunk_sha(text) for sha, text in found["texts"].items()} == {
        sha: sha for sha in found["texts"]
    }


def test_all_samples_together_and_read_again_give_the_same(
    emptied: Store, shared_dir: Path
) -> None:
    """Many traces in one batch, delivered twice, their rows taken away and derived anew."""
    names = ("langchain_oi", "nesting_oi", "langfuse_observe", "mlflow_native", "llamaindex_tl")
    paths = [str(_sample(shared_dir, name)) for name in names]
    expected = [json.loads((EXPECTED / f"{name}.json").read_text("utf-8")) for name in names]
    load_files(emptied, paths)
    load_files(emptied, paths)
    first = picture(emptied)
    for table in TABLES[1:]:
        emptied.command(f"truncate table {table}")
    assert backfill(emptied).rewritten_count == len(names)
    again = picture(emptied)
    assert again == first
    for part in ("requests", "stages", "prompts"):
        key = json.dumps
        assert sorted(first[part], key=key) == sorted(
            (row for sample in expected for row in sample[part]), key=key
        )
    assert backfill(emptied).rewritten_count == 0
