"""Plain data of requests, labels and manifests: the generator makes it, the oracle reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

LIST_STAGES = ("retrieve", "fuse", "rerank", "blend", "filter")


@dataclass
class Hit:
    """One candidate as it stands in a recorded list; None or "" where the key was not recorded."""

    id: str | None
    score: float | None = None
    sha: str = ""
    doc_id: str = ""
    tokens: int | None = None
    chars: int | None = None
    kept_chars: int | None = None


@dataclass
class Stage:
    """One stage run; *hits* is what can be read of its list, *evidence* what that is worth."""

    stage: str
    name: str
    start_ns: int
    end_ns: int
    outcome: str = "ok"
    hits: list[Hit] = field(default_factory=list)
    evidence: str = "not_recorded"
    count: int | None = None
    in_count: int | None = None
    dropped: list[tuple[str | None, str]] | None = None
    top_k: int | None = None
    limit: int | None = None
    index: str = ""
    version: str = ""
    effect: str = ""
    prompt: str | None = None
    prompt_chars: int | None = None
    content_mode: str = ""
    budget_tokens: int | None = None
    list_text: str | None = None
    """The list's text on the wire; None: simply the hits as JSON."""
    chunks: dict[str, str] = field(default_factory=dict)


@dataclass
class Request:
    trace_id: str
    request_id: str
    start_ns: int
    end_ns: int
    question: str = ""
    answer: str = ""
    label_id: str = ""
    user_id: str = ""
    service: str = "svc"
    stages: list[Stage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What the generator did to it, for the reader of a difference."""

    @property
    def key(self) -> tuple[str, str]:
        return (self.trace_id, self.request_id)


@dataclass
class Passage:
    chunk_ids: list[str] = field(default_factory=list)
    doc_ids: list[str] = field(default_factory=list)
    spans: list[str] = field(default_factory=list)
    text: str = ""

    @property
    def has_ids(self) -> bool:
        return bool(self.chunk_ids or self.doc_ids)

    @property
    def claims(self) -> list[str]:
        """The wordings of which one must be found; empty where the label gives ids alone."""
        return self.spans or ([self.text] if self.text else [])


@dataclass
class Label:
    label_id: str
    question: str
    passages: list[Passage]
    answerable: bool = True
    principal: str = ""
    label_set: str = "golden"


@dataclass
class ManifestRow:
    chunk_id: str
    doc_id: str = ""
    sha: str = ""
    text: str | None = None
    deleted: bool = False


@dataclass
class Manifest:
    """One load: all chunks of a version, or with a parent the change list against it."""

    index: str
    version: str
    parent: str
    rows: list[ManifestRow]
    is_whole: bool = True
    """False: the completeness row was never written."""


@dataclass
class Grade:
    trace_id: str
    request_id: str
    label_id: str
    grade: str
    source: str
    by: str
    at_ns: int


@dataclass
class Probe:
    trace_id: str
    request_id: str
    label_id: str
    passage: int
    """Position of the passage in its label, from 0."""
    leg: str
    principal: str
    k: int
    deep_rank: int | None
    index_version: str
    at_ns: int


@dataclass
class Ablation:
    trace_id: str
    request_id: str
    label_id: str
    mode: str
    correct: bool
    at_ns: int
    position: int = 0
    of: int = 0


@dataclass
class World:
    """Everything that one store was given."""

    requests: list[Request] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    manifests: list[Manifest] = field(default_factory=list)
    grades: list[Grade] = field(default_factory=list)
    complaints: list[tuple[str, str, str]] = field(default_factory=list)
    """(trace_id, request_id, label_id), without a grade."""
    attachments: list[tuple[str, str, str]] = field(default_factory=list)
    probes: list[Probe] = field(default_factory=list)
    ablations: list[Ablation] = field(default_factory=list)

    def texts(self) -> dict[str, str]:
        """Every chunk text that the store knows, by content hash."""
        known = {
            row.sha: row.text
            for manifest in self.manifests
            for row in manifest.rows
            if row.text is not None and row.sha
        }
        for request in self.requests:
            for stage in request.stages:
                known.update(stage.chunks)
        return known


Verdict = dict[str, Any]
