"""Voyage: its real clients against a server on this machine that speaks its API."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("voyageai")

import voyageai
from corpus import QUESTION, TEXTS
from laws import Patched, assert_cancels, assert_fails, same_result
from reranking import ask, assert_reranked

from ragotel.testing import Recorded


def rerank(server: str, client: Any, question: str, texts: list[str], model: str = "rr-2") -> Any:
    made = client(api_key="none", base_url=f"{server}/v1")
    return made.rerank(question, texts, model, top_k=2)


def test_a_call_is_a_rerank(recorded: Recorded, server: str) -> None:
    """Sync and async."""
    ask(lambda question, texts: rerank(server, voyageai.Client, question, texts))
    assert_reranked(recorded, model="rr-2")
    recorded.clear()
    ask(lambda question, texts: asyncio.run(rerank(server, voyageai.AsyncClient, question, texts)))
    assert_reranked(recorded, model="rr-2")


def test_failures_and_cancellations_pass_on(recorded: Recorded, server: str) -> None:
    """The client's own exception is raised."""
    texts = list(TEXTS.values())
    assert_fails(
        recorded,
        "rerank",
        lambda: rerank(server, voyageai.Client, QUESTION, texts, "broken"),
        Exception,
    )
    assert_cancels(
        recorded,
        "rerank",
        lambda: rerank(server, voyageai.AsyncClient, QUESTION, texts, "hanging"),
    )


def test_results_are_the_same_with_and_without(server: str) -> None:
    """What the client returns is byte-identical."""
    same_result(lambda: rerank(server, voyageai.Client, QUESTION, list(TEXTS.values())).results)


def test_uninstrumented_is_untouched(patched: Patched) -> None:
    """Every patched object is what it was."""
    patched.assert_reverted("voyageai")


def test_targets_are_there(patched: Patched) -> None:
    """The installed release has all that the patch table names."""
    patched.assert_targets("voyageai")
