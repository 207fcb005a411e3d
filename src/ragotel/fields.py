"""Fields: the names under which libraries keep a candidate's parts, and the casts of their values.

Pipeline: result of a stage -> candidates -> [fields] -> encoding
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from itertools import islice

ID_NAMES = (
    "id", "chunk_id", "doc_id", "node_id", "document_id", "passage_id", "point_id", "uuid", "_id",
    "id_", "key", "pk", "docid", "pid",
)  # fmt: skip
SCORE_NAMES = (
    "score", "rerank_score", "relevance_score", "similarity", "relevance", "_score",
    "similarity_score", "_relevance_score", "rrf_score", "certainty", "@search.score",
)  # fmt: skip
DISTANCE_NAMES = ("distance", "_distance", "dist", "vector_distance")
TEXT_NAMES = (
    "text", "page_content", "content", "chunk", "chunk_text", "body", "passage", "document",
    "snippet", "chunk_content", "raw_text", "page_text",
)  # fmt: skip
META_NAMES = (
    "metadata", "meta", "payload", "fields", "_source", "extra_info", "properties", "entity",
)  # fmt: skip
INNER_NAMES = ("node", "document", "doc", "chunk", "record", "item")
"""Objects that hold a candidate beside its score, as LlamaIndex's NodeWithScore does."""
EXTRA_NAMES = {
    "doc_id": ("doc_id", "document_id", "ref_doc_id", "source_id"),
    "doc_version": ("doc_version", "document_version"),
    "superseded": ("superseded", "is_superseded"),
    "tokens": ("tokens", "token_count", "n_tokens", "num_tokens"),
    "leg": ("leg", "retriever"),
}
LIST_NAMES = (
    "hits", "matches", "points", "documents", "docs", "nodes", "source_nodes", "results",
    "candidates", "chunks", "passages", "objects", "data", "result", "items", "value", "rows",
)  # fmt: skip
"""Where clients and frameworks keep the list inside of their result."""
COLUMN_NAMES = {
    "id": ("ids", *ID_NAMES, "indices", "doc_ids", "chunk_ids"),
    "score": ("scores", *SCORE_NAMES, "similarities", "relevance_scores"),
    "distance": ("distances", *DISTANCE_NAMES),
    "text": ("texts", *TEXT_NAMES, "documents", "contents", "chunks", "passages"),
    "meta": ("metadatas", *META_NAMES, "payloads"),
}
"""The parallel lists of a dict of lists or of a data frame."""

NAN, INF, INVALID = "nan", "inf", "invalid"
_HEAVIEST_ID = 4096
"""Of a container that is an id: its characters, and some for each part."""
_A_PART = 512
_MOST_PARTS = _HEAVIEST_ID // _A_PART
_DEEPEST_ID = 5


def to_score(value: object) -> tuple[float | None, str | None]:
    """Cast to a finite float; else None and why: `nan`, `inf` or `invalid`. None stays None."""
    if value is None:
        return None, None
    try:
        score = float(value)  # type: ignore[arg-type]
    except OverflowError:
        return None, INF
    except Exception:
        return None, INVALID
    if math.isfinite(score):
        return score, None
    return None, NAN if score != score else INF


def to_id(value: object) -> str | None:
    """Cast an identity to text; None, empty text and NaN are no identity."""
    if isinstance(value, str):
        return str(value) or None
    if value is None:
        return None
    if not isinstance(value, (int, float)) and callable(item := getattr(value, "item", None)):
        value = item()
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        # A data frame turns whole numbers into floats as soon as one is missing.
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace") or None
    return (str(value) or None) if _weight(value, 0) <= _HEAVIEST_ID else None


def _weight(value: object, depth: int) -> int:
    """How much of an id a container is: lists of lists have texts of gigabytes."""
    if isinstance(value, (str, bytes)):
        return len(value) + _A_PART
    if isinstance(value, Mapping):
        value = [*islice(value, _MOST_PARTS), *islice(value.values(), _MOST_PARTS)]
    if not isinstance(value, (list, tuple, set, frozenset, deque)):
        return _A_PART
    if depth == _DEEPEST_ID:
        return _HEAVIEST_ID + 1
    weight = _A_PART
    for part in islice(value, _MOST_PARTS):
        if weight > _HEAVIEST_ID:
            break
        weight += _weight(part, depth + 1)
    return weight


def to_text(value: object) -> str | None:
    """Accept a text and refuse all else: a text is never made from an object's `str`."""
    return value if isinstance(value, str) else None


def to_count(value: object) -> int | None:
    """Cast to a count of 0 or more; None where *value* is none."""
    if value is None or isinstance(value, bool):
        return None
    try:
        count = int(value)  # type: ignore[call-overload]
    except Exception:
        return None
    return count if 0 <= count < 2**31 else None


def is_number(value: object) -> bool:
    """Tell whether *value* can be a score: a number, also of numpy or torch, but no truth value."""
    if isinstance(value, (float, int)):
        return not isinstance(value, bool)
    if isinstance(value, (str, bytes, dict, list, tuple)) or value is None:
        return False
    shape = getattr(value, "shape", None)
    if shape is not None:
        return len(shape) == 0 and not isinstance(value, (str, bytes))
    return hasattr(type(value), "__float__")


def looks_like_id(value: str) -> bool:
    """Tell an identity from a passage: short, and without any blank."""
    return 0 < len(value) <= 200 and not any(map(str.isspace, value))
