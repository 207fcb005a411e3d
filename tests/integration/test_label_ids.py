"""Labels that name chunks no manifest has are told of when they are loaded."""

from __future__ import annotations

import json
from pathlib import Path

from ragotel.store import Store
from ragotel.triage.labels import load_labels
from ragotel.triage.manifest import Version, load_manifest


def test_a_misspelt_chunk_id_is_told_with_the_nearest_one(store: Store, tmp_path: Path) -> None:
    """It would give a confident corpus gap later; the label loads all the same."""
    manifest, labels = tmp_path / "manifest.jsonl", tmp_path / "labels.jsonl"
    manifest.write_text('{"chunk_id": "tickets#price", "text": "14 euros"}\n')
    label = {"label_id": "price", "question": "how much?", "gold_chunk_ids": ["ticket#price"]}
    labels.write_text(json.dumps(label) + "\n")
    load_manifest(store, [str(manifest)], Version("museum", "v1"))
    report = load_labels(store, [str(labels)])
    assert report.loaded == 1
    assert report.notes == [
        "Label price names the chunk 'ticket#price', which no manifest has "
        "(the nearest is 'tickets#price')"
    ]
