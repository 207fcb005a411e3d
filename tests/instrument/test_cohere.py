"""Cohere: its real clients against a server on this machine that speaks its API."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("cohere")

import cohere
from corpus import QUESTION, TEXTS
from laws import Patched, assert_cancels, assert_fails, same_result
from reranking import ask, assert_reranked

from ragotel.testing import Recorded


def rerank(server: str, client: Any, question: str, texts: list[str], model: str = "r-3") -> Any:
    made = client(api_key="none", base_url=server)
    return made.rerank(model=model, query=question, documents=texts, top_n=2)


@pytest.mark.parametrize("client", [cohere.ClientV2, cohere.Client])
def test_a_call_is_a_rerank(recorded: Recorded, server: str, client: Any) -> None:
    """Both versions of the client."""
    ask(lambda question, texts: rerank(server, client, question, texts))
    assert_reranked(recorded, model="r-3")


@pytest.mark.parametrize("client", [cohere.AsyncClientV2, cohere.AsyncClient])
def test_an_async_call_is_a_rerank(recorded: Recorded, server: str, client: Any) -> None:
    """Both async clients."""
    ask(lambda question, texts: asyncio.run(rerank(server, client, question, texts)))
    assert_reranked(recorded, model="r-3")


def test_failures_and_cancellations_pass_on(recorded: Recorded, server: str) -> None:
    """The client's own exception is raised."""
    texts = list(TEXTS.values())
    assert_fails(
        recorded,
        "rerank",
        lambda: rerank(server, cohere.ClientV2, QUESTION, texts, "broken"),
        cohere.BadRequestError,
    )
    assert_cancels(
        recorded,
        "rerank",
        lambda: rerank(server, cohere.AsyncClientV2, QUESTION, texts, "hanging"),
    )


def test_results_are_the_same_with_and_without(server: str) -> None:
    """What the client returns is byte-identical."""
    texts = list(TEXTS.values())
    same_result(lambda: rerank(server, cohere.ClientV2, QUESTION, texts).results)
    same_result(lambda: rerank(server, cohere.Client, QUESTION, texts).results)


def test_uninstrumented_is_untouched(patched: Patched) -> None:
    """Every patched object is what it was."""
    patched.assert_reverted("cohere")


def test_targets_are_there(patched: Patched) -> None:
    """The installed release has all that the patch table names."""
    patched.assert_targets("cohere")
