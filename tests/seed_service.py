"""A small RAG service, decorated, that finds, packs and answers as a case says; and its files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ragotel
from ragotel.delivery.otlp import Envelope, encode_span
from ragotel.store import Store
from ragotel.store.load import load_files
from ragotel.testing import Recorded, recording
from ragotel.triage.grades import load_grades
from ragotel.triage.labels import load_labels
from ragotel.triage.manifest import Version, load_manifest

INDEX, VERSION, LEG = "docs", "v7", "dense"
TEMPLATE = "Answer from the passages.\n{passages}\nQuestion: {question}"


@dataclass(frozen=True)
class Hit:
    """A passage as the service's own vector client gives it."""

    id: str
    score: float
    text: str
    tokens: int | None = None
    superseded: bool = False


@dataclass(frozen=True)
class Case:
    """One question: what its search finds, which passages fit, and what the label says."""

    name: str
    question: str
    gold_id: str
    span: str
    hits: list[Hit]
    sent_ids: list[str]
    top_k: int
    answer: str = "See the page about it."
    grade: str = "wrong"
    budget: int | None = None
    prompt_tokens: int | None = None
    is_prompt_recorded: bool = True
    is_sent_list_recorded: bool = True
    is_gold_indexed: bool = True
    version: str = VERSION

    @property
    def gold_text(self) -> str:
        found = (hit.text for hit in self.hits if hit.id == self.gold_id)
        return next(found, f"This page states it: {self.span}, and no more.")


def read_case(facts: dict[str, Any]) -> Case:
    """Give the facts of one entry texts, and what it leaves open an ordinary value."""
    span = facts.get("gold_span", "21 calendar days")
    gold_id = facts.get("gold_chunk_ids", [f"{facts['name']}#gold"])[0]
    top_k = facts.get("top_k", 5)
    candidates = facts.get("candidates") or plain_candidates(facts, gold_id, top_k)
    graded = {True: "correct", False: "wrong"}
    return Case(
        name=facts["name"],
        question=facts.get("query", f"What holds for {facts['name']}?"),
        gold_id=gold_id,
        span=span,
        hits=[as_hit(candidate, span) for candidate in candidates],
        sent_ids=[c["id"] for c in candidates if c.get("sent", "budget_tokens" not in facts)],
        top_k=top_k,
        answer=facts.get("answer", "See the page about it."),
        grade=graded[facts.get("graded_correct", False)],
        budget=facts.get("budget_tokens"),
        prompt_tokens=facts.get("prompt_tokens"),
        is_prompt_recorded=facts.get("prompt_recorded", True),
        is_sent_list_recorded=facts.get("sent_list_recorded", True),
        is_gold_indexed=facts.get("gold_in_index", True),
    )


def plain_candidates(facts: dict[str, Any], gold_id: str, top_k: int) -> list[dict[str, Any]]:
    """As many passages as k asks for, the gold one at its rank where the case gives one."""
    at = facts.get("gold_rank")
    is_sent = facts.get("gold_in_sent_list", True)
    return [
        {
            "id": gold_id if rank == at else f"{facts['name']}#{rank}",
            "score": round(0.9 - rank / 100, 3),
            "sent": is_sent if rank == at else True,
            "contains_span": rank == at,
        }
        for rank in range(1, top_k + 1)
    ]


def as_hit(candidate: dict[str, Any], span: str) -> Hit:
    stated = candidate.get("states") or (span if candidate.get("contains_span") else "")
    about = f"The page {candidate['id'].replace('#', ' in part ')} is about its own matter."
    return Hit(
        id=candidate["id"],
        score=candidate["score"],
        text=f"{about} It says: {stated}, no more." if stated else about,
        tokens=candidate.get("tokens"),
        superseded=candidate.get("superseded", False),
    )


@dataclass
class Told:
    """The files that people and jobs write beside the record."""

    labels: list[dict[str, Any]] = field(default_factory=list)
    grades: list[dict[str, Any]] = field(default_factory=list)
    manifest: dict[str, str] = field(default_factory=dict)

    def label(self, case: Case, request_id: str) -> None:
        self.labels.append(
            {
                "label_id": case.name,
                "question": case.question,
                "passages": [{"chunk_ids": [case.gold_id], "spans": [case.span]}],
            }
        )
        self.grades.append(
            {"request_id": request_id, "label_id": case.name, "grade": case.grade, "by": "ana"}
        )
        self.manifest.update({hit.id: hit.text for hit in case.hits})
        if case.is_gold_indexed:
            self.manifest[case.gold_id] = case.gold_text
        else:
            self.manifest.pop(case.gold_id, None)


@dataclass(frozen=True)
class Reply:
    """An answer, and the request that a user can quote."""

    answer: str
    request_id: str


def serve(case: Case) -> Callable[[str, str], Reply]:
    """A RAG service that finds, packs and answers as *case* says."""

    @ragotel.retrieve(
        leg=LEG, index=INDEX, index_version=case.version, score_kind="cosine", higher_is_better=True
    )
    def search(question: str, k: int) -> list[Hit]:
        return case.hits[:k]

    def build_prompt(question: str, hits: list[Hit]) -> str:
        sent = (hit.text for hit in hits if hit.id in case.sent_ids)
        return TEMPLATE.format(passages="\n".join(sent), question=question)

    if case.is_prompt_recorded or case.is_sent_list_recorded:
        build_prompt = ragotel.assemble(
            template="answer",
            template_text=TEMPLATE,
            budget=case.budget,
            tokens=None if case.prompt_tokens is None else lambda prompt: case.prompt_tokens or 0,
        )(build_prompt)

    @ragotel.generate(model="gpt-5-mini")
    def complete(prompt: str) -> str:
        return case.answer

    @ragotel.request
    def answer(question: str, user_id: str) -> Reply:
        completion = complete(build_prompt(question, search(question, case.top_k)))
        return Reply(completion, ragotel.current_request_id() or "")

    return answer


@contextmanager
def serving(store: Store, folder: Path, **settings: Any) -> Iterator[Recorded]:
    """Record what runs inside, then load it as the OTLP bytes that would have been sent."""
    with recording(service_name="support-bot", **{"fixed": False, **settings}) as recorded:
        yield recorded
        spans = [encode_span(span) for span in recorded.raw]
    body = Envelope({"service.name": "support-bot"}, "ragotel", "1").message(spans)
    path = folder / "spans.pb"
    path.write_bytes(body)
    report = load_files(store, [str(path)])
    assert (report.span_count, report.rejected_count) == (len(spans), 0)


def tell(store: Store, folder: Path, told: Told) -> None:
    """Load labels, grades and the manifest of the served version by their files."""
    chunks = [{"chunk_id": chunk_id, "text": text} for chunk_id, text in told.manifest.items()]
    loads = [
        load_manifest(store, [write(folder, "manifest", *chunks)], Version(INDEX, VERSION)),
        load_labels(store, [write(folder, "labels", *told.labels)]),
        load_grades(store, [write(folder, "grades", *told.grades)]),
    ]
    assert not any(report.refused for report in loads)


def write(folder: Path, name: str, *lines: dict[str, Any]) -> str:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return str(path)


def probe_line(case: Case, request_id: str, probe: dict[str, Any]) -> dict[str, Any]:
    return {
        "request_id": request_id,
        "label_id": case.name,
        "leg": LEG,
        "k": 100,
        "deep_rank": probe["deep_rank"],
        "score": probe.get("deep_score"),
        "index_version": VERSION,
    }
