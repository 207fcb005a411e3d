"""Canary: one small decorated service that asks one question, for `ragotel doctor`.

Pipeline: [call site] -> recorder -> delivery -> OTLP. Run as `python -m ragotel.canary`; it prints
one JSON line with what was sent, where to, and whether the receiver took it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import ragotel
from ragotel import recorder
from ragotel.model import CANARY_SERVICE

QUESTION = "How long may a canary sing?"
CLAIM = "21 minutes"
_PASSAGES = (
    ("canary.md#song", 0.9, f"A canary may sing for {CLAIM}."),
    ("canary.md#food", 0.5, "A canary eats seeds."),
)
_WAIT_S = 10.0


@ragotel.retrieve(leg="canary", index="canary", index_version="1")
def search(question: str, k: int = 2) -> list[dict[str, Any]]:
    return [{"id": name, "score": score, "text": text} for name, score, text in _PASSAGES[:k]]


@ragotel.assemble(template="canary", budget=1000)
def build_prompt(question: str, passages: list[dict[str, Any]]) -> str:
    return "\n".join([*(passage["text"] for passage in passages), question])


@ragotel.generate(model="canary")
def complete(prompt: str) -> str:
    return CLAIM


@ragotel.request
def answer(question: str, user_id: str) -> str:
    _request_ids.append(ragotel.current_request_id())
    return complete(build_prompt(question, search(question)))


_request_ids: list[str | None] = []


def main() -> None:
    """Ask once, wait for the delivery, print what happened."""
    ragotel.configure(service=CANARY_SERVICE, retry_s=_WAIT_S / 2, exit_timeout_s=1.0)
    answer(QUESTION, user_id=CANARY_SERVICE)
    active = recorder.active
    is_delivered = ragotel.flush(_WAIT_S)
    facts: dict[str, Any] = {"request_id": _request_ids[-1], "is_delivered": is_delivered}
    facts["is_recording"] = active is not None
    if active is not None:
        settings = active.settings
        for name in ("endpoint", "protocol", "compression", "content_mode"):
            facts[name] = getattr(settings, name)
        facts["exporter"] = type(settings.exporter).__name__ if settings.exporter else None
    facts["provider"] = _provider_owner()
    json.dump(facts, sys.stdout)


def _provider_owner() -> str | None:
    """The class of the global tracer provider, where the application has set one."""
    from opentelemetry import trace

    kind = type(trace.get_tracer_provider())
    if kind.__name__ == "ProxyTracerProvider":
        return None
    return f"{kind.__module__}.{kind.__qualname__}"


if __name__ == "__main__":
    main()
