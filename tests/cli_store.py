"""A store with three requests of the hardware-returns story, and the command line as a function."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from ragotel.cli import run
from ragotel.store import Store
from ragotel.text import chunk_sha

ASKED_AT = datetime(2026, 11, 19, 10, 23, 45, 123456, tzinfo=timezone.utc)
TRACES = ("4bf92f3577b34da6a3ce929d0e0e4736", "5bf92f3577b34da6", "6bf92f3577b34da6")
REQUESTS = ("req-4bf92f", "req-5bf92f", "req-6bf92f")
TEXTS = {
    "policies/returns-overview.md#intro": "Most goods can be sent back. Hardware has its own page.",
    "policies/refunds-current.md#window": "Refunds are paid within 14 days of the return.",
    "hardware/rma-process.md#shipping": "Ship the unit in its original box.",
    "hardware/warranty.md#coverage": "The warranty covers two years.",
    "hardware/rma-process.md#timing": (
        "Mind the date. A hardware unit can be returned within 21 calendar days of delivery."
    ),
    "policies/returns-2022.md#window": "In 2022 you had 30 days.",
}
SCORES = (0.412, 0.388, 0.377, 0.361, 0.359, 0.344)
_SPAN_COLUMNS = (
    *("Timestamp", "TraceId", "SpanId", "ParentSpanId", "SpanName", "ServiceName"),
    *("ScopeName", "SpanAttributes", "Duration", "StatusCode"),
)


@dataclass(frozen=True)
class Ran:
    """What one command line did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run_in(store: Store, capsys: Any) -> Callable[..., Ran]:
    """The command line over *store*: ``ragotel("find", "--user", "ana")``."""
    dsn = f"chdb://{store.dsn.path}?database={store.database}"

    def ragotel(*arguments: str) -> Ran:
        capsys.readouterr()
        code = run([*arguments, "--store", dsn])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return ragotel


def write_lines(path: Path, *lines: Any) -> str:
    """Write JSON lines (a text stands as it is); the path as a text."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return str(path)


def insert_spans(store: Store, *spans: tuple[Any, ...]) -> None:
    store.insert("otel_traces", spans, _SPAN_COLUMNS)


def fill(store: Store) -> None:
    """Ana asks about returns on 19 November, Bob a minute later, Ana again 200 days before."""
    asked = (
        ("ana", "How long do I have to return a hardware unit?", "You have 14 days.", ASKED_AT),
        (
            "bob",
            "What does the warranty cover?",
            "Two years.",
            ASKED_AT + timedelta(minutes=1),
        ),
        ("ana", "Hardware unit, return?", "21 calendar days.", ASKED_AT - timedelta(days=200)),
    )
    for number, (user, question, answer, moment) in enumerate(asked):
        insert_spans(store, *request_spans(number, user, question, answer, moment))


def request_spans(
    number: int, user: str, question: str, answer: str, moment: datetime
) -> list[tuple[Any, ...]]:
    """A request that ranked six passages and could afford three."""
    sent = list(TEXTS)[:3]
    lines = ["Answer from the passages.", *(f"[{name}] {TEXTS[name]}" for name in sent), question]
    prompt = "\n".join(lines)
    stages: list[tuple[str, int, int, dict[str, Any]]] = [
        (
            "request",
            0,
            950,
            {"user.id": user, "rag.query": question, "rag.answer": answer, "rag.outcome": "ok"},
        ),
        (
            "retrieve",
            5,
            40,
            {
                "rag.stage.name": "dense",
                "gen_ai.retrieval.documents": _candidates(6),
                "rag.candidates.count": 6,
                "gen_ai.retrieval.top_k": 10,
                "gen_ai.data_source.id": "docs",
                "rag.index.version": "v7",
                "rag.score.kind": "cosine",
                "rag.score.higher_is_better": "true",
                "rag.chunks": {chunk_sha(text): text for text in TEXTS.values()},
            },
        ),
        (
            "assemble",
            60,
            3,
            {
                "rag.stage.name": "build_prompt",
                "rag.candidates": _candidates(3),
                "rag.candidates.count": 3,
                "rag.candidates.in_count": 6,
                "rag.dropped": [
                    {"id": name, "reason": "budget", "inferred": True} for name in list(TEXTS)[3:]
                ],
                "gen_ai.prompt.name": "answer",
                "gen_ai.prompt.version": "a1b2c3",
                "rag.prompt.text": prompt,
                "rag.prompt.chars": len(prompt),
                "rag.budget.tokens": 6000,
                "rag.content_mode": "full",
            },
        ),
        ("generate", 70, 800, {"gen_ai.request.model": "gpt-5-mini", "rag.outcome": "ok"}),
    ]
    return [
        _span(number, at, stage, moment + timedelta(milliseconds=after_ms), took_ms, attributes)
        for at, (stage, after_ms, took_ms, attributes) in enumerate(stages)
    ]


def _candidates(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": name,
            "score": SCORES[at],
            "sha": chunk_sha(TEXTS[name]),
            "tokens": 1900 if at < 3 else 400,
            "chars": len(TEXTS[name]),
        }
        for at, name in enumerate(list(TEXTS)[:count])
    ]


def _span(
    number: int,
    at: int,
    stage: str,
    moment: datetime,
    took_ms: int,
    attributes: dict[str, Any],
) -> tuple[Any, ...]:
    texts = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in attributes.items()
    }
    own = {"rag.schema": "1", "rag.stage": stage, "rag.request.id": REQUESTS[number]}
    parent = f"{number}0" * 8 if at else ""
    return (
        *(moment, TRACES[number], f"{number}{at}" * 8, parent, f"rag.{stage}", "support-bot"),
        *("ragotel", {**own, **texts}, took_ms * 1_000_000, "Ok"),
    )
