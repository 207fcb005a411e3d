"""Probe targets: which gold passages of which requests are worth a deep search.

Pipeline: triage views -> [triage] -> probing
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragotel.errors import NotFoundError
from ragotel.store import Store

MISSED = ("retrieval_miss", "unknown")


@dataclass(frozen=True)
class Target:
    """A gold passage of a request; *served* are the index versions that the request searched."""

    trace_id: str
    request_id: str
    label_id: str
    passage: int
    question: str
    principal: str
    served: tuple[str, ...]
    has_ids: bool
    chunk_ids: frozenset[str]
    doc_ids: frozenset[str]
    claims: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str, str, int]:
        return (self.trace_id, self.request_id, self.label_id, self.passage)


def find_targets(
    store: Store, label_set: str, *, is_all: bool = False, limit: int | None = None
) -> list[Target]:
    """Passages of the set's requests, the newest request first; those without gold are left out.

    Args:
        is_all: Every passage, not only those that retrieval missed or of which nothing is known.
        limit: So many requests at most.

    Raises:
        NotFoundError: There is no such label set.
    """
    labels = _labels(store, label_set)
    rows = store.rows(
        "select trace_id, request_id, label_id, passage, question, index_version\n"
        "from triage_passages\n"
        "where label_set = {label_set:String}\n"
        "    and bucket != 'not_answerable'\n"
        "    and ({is_all:UInt8} or bucket in {missed:Array(String)})\n"
        "order by started_at desc, trace_id, request_id, label_id, passage",
        {"label_set": label_set, "is_all": int(is_all), "missed": list(MISSED)},
    )
    requests: dict[tuple[str, str], None] = {}
    targets = []
    for row in rows:
        requests[row["trace_id"], row["request_id"]] = None
        if limit is not None and len(requests) > limit:
            break
        label = labels.get((row["label_id"], row["passage"]))
        if label is not None and (label["has_ids"] or label["claims"]):
            targets.append(_target(row, label))
    return targets


def _labels(store: Store, label_set: str) -> dict[tuple[str, int], dict[str, Any]]:
    rows = store.rows(
        "select label_id, passage, question, principal, has_ids, known_chunk_ids, doc_ids, claims\n"
        "from rag_label_passages where label_set = {label_set:String}",
        {"label_set": label_set},
    )
    if not rows:
        require_set(store, label_set)
    return {(row["label_id"], row["passage"]): row for row in rows}


def require_set(store: Store, label_set: str) -> None:
    """See that there is a label set of this name.

    Raises:
        NotFoundError: There is none; the message names those that there are.
    """
    known = [
        row[0]
        for row in store.query("select distinct label_set from rag_labels order by 1").result_rows
    ]
    if label_set not in known:
        names = f"there are {', '.join(map(repr, known))}" if known else "no label is loaded"
        raise NotFoundError(f"There is no label set {label_set!r}; {names}.")


def has_runs(store: Store, table: str, label_set: str, modes: Sequence[str] = ()) -> bool:
    """Whether *table* (rag_probes, rag_ablations) has rows of the set's labels, of these modes."""
    return bool(
        store.scalar(
            f"select count() from {table}\n"  # noqa: S608 (one of our tables)
            "where label_id in (\n"
            "        select label_id from rag_labels where label_set = {label_set:String}\n"
            "    )" + ("\n    and mode in {modes:Array(String)}" if modes else ""),
            {"label_set": label_set, "modes": list(modes)},
        )
    )


def _target(row: dict[str, Any], label: dict[str, Any]) -> Target:
    return Target(
        trace_id=row["trace_id"],
        request_id=row["request_id"],
        label_id=row["label_id"],
        passage=row["passage"],
        # Where the question's text was withheld, the label's is the same by its hash or its id.
        question=row["question"] or label["question"],
        principal=label["principal"],
        served=tuple(version for version in row["index_version"].split(", ") if version),
        has_ids=bool(label["has_ids"]),
        chunk_ids=frozenset(label["known_chunk_ids"]),
        doc_ids=frozenset(label["doc_ids"]),
        claims=tuple(label["claims"]),
    )


def probed_before(store: Store, targets: Sequence[Target]) -> dict[tuple[Any, ...], int]:
    """The depth that is known already, by request, label, passage, leg and version.

    A passage that was found needs no deeper search: its depth counts as endless.
    """
    labels = sorted({target.label_id for target in targets})
    found: dict[tuple[Any, ...], int] = {}
    for start in range(0, len(labels), 300):
        rows = store.query(
            "select trace_id, request_id, label_id, passage, leg, index_version,\n"
            "    if(deep_rank is null, k, 4294967295)\n"
            "from rag_request_probes where label_id in {labels:Array(String)}",
            {"labels": labels[start : start + 300]},
        ).result_rows
        found.update((tuple(row[:6]), row[6]) for row in rows)
    return found
