"""Decorators: one per kind of stage, with or without arguments; thin over the recorder.

Pipeline: call site -> [decorators] -> recorder

Every decorator returns a function with the same signature, hints and pickle name; awaits, yields
and raises pass through. Options that are callables are asked at each call, with those of the call's
arguments that their own parameters name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, overload

from ragotel import spec as kinds
from ragotel.spec import Spec
from ragotel.wrapping import wrap

F = TypeVar("F")
Text: TypeAlias = "str | Callable[..., str | None] | None"
Number: TypeAlias = "int | Callable[..., int | None] | None"
Flag: TypeAlias = "bool | None"
Ask: TypeAlias = "Callable[..., Any] | None"
"""An extractor: called with one item of the list."""


def _decorate(kind: str, target: Any, options: dict[str, Any]) -> Any:
    def make_spec(function: Any) -> Spec:
        return Spec(kind, function, options)

    if target is not None:
        return wrap(target, make_spec)
    return lambda function: wrap(function, make_spec)


@overload
def request(function: F, /) -> F: ...
@overload
def request(
    *,
    query: str | Ask = None,
    user_id: Text = None,
    session_id: Text = None,
    tenant: Text = None,
    principal: Text = None,
    tags: Any = None,
    run_id: Text = None,
    arm: Text = None,
    label_id: Text = None,
    index: Text = None,
    index_version: Text = None,
    name: str | None = None,
) -> Callable[[F], F]: ...
def request(function: Any = None, /, **options: Any) -> Any:
    """Record a function as one request: one question answered.

    The question is the parameter that *query* names, else one called question, query, q, text,
    message, ..., else the first text. User, session, tenant, principal and tags come from
    parameters of these names, also inside of a request's body. A text given for one of them names
    a parameter if there is one so called, else it is the value itself.

    *index* and *index_version* hold for the searches inside that do not say theirs, such as those
    of a framework.

    Inside of a running request the decorator records nothing of its own, and only adds what the
    outer one does not know: one question has one request.
    """
    return _decorate(kinds.REQUEST, function, options)


@overload
def retrieve(function: F, /) -> F: ...
@overload
def retrieve(
    *,
    leg: str | None = None,
    name: str | None = None,
    index: Text = None,
    index_version: Text = None,
    query: str | Ask = None,
    top_k: Number = None,
    where: Text = None,
    excluded: Number = None,
    score_kind: str | None = None,
    higher_is_better: Flag = None,
    id_of: Ask = None,
    score_of: Ask = None,
    text_of: Ask = None,
    doc_id_of: Ask = None,
    doc_version_of: Ask = None,
) -> Callable[[F], F]: ...
def retrieve(function: Any = None, /, **options: Any) -> Any:
    """Record a search leg: the candidates that it returns, best first.

    Args:
        leg: name of the leg, such as dense or bm25; else the function's name.
        index: name of the index; *index_version* is its version, best asked: ``lambda: index.v``.
        where: the condition that the search was restricted by; *excluded* how many it excluded.
        id_of, score_of, text_of, doc_id_of, doc_version_of: called with one item of the list.
    """
    return _decorate(kinds.RETRIEVE, function, options)


@overload
def fuse(function: F, /) -> F: ...
@overload
def fuse(
    *,
    method: str | None = None,
    limit: Number = None,
    name: str | None = None,
    score_kind: str | None = None,
    id_of: Ask = None,
    score_of: Ask = None,
    text_of: Ask = None,
) -> Callable[[F], F]: ...
def fuse(function: Any = None, /, **options: Any) -> Any:
    """Record the fusion of several legs; what goes in and not out was dropped by the *limit*."""
    return _decorate(kinds.FUSE, function, options)


@overload
def rerank(function: F, /) -> F: ...
@overload
def rerank(
    *,
    model: Text = None,
    limit: Number = None,
    window_chars: Number = None,
    name: str | None = None,
    score_kind: str | None = None,
    server_side: Flag = None,
    id_of: Ask = None,
    score_of: Ask = None,
    text_of: Ask = None,
) -> Callable[[F], F]: ...
def rerank(function: Any = None, /, **options: Any) -> Any:
    """Record a reranker; *window_chars* is how much of each text it reads."""
    return _decorate(kinds.RERANK, function, options)


@overload
def blend(function: F, /) -> F: ...
@overload
def blend(
    *,
    limit: Number = None,
    name: str | None = None,
    score_kind: str | None = None,
    id_of: Ask = None,
    score_of: Ask = None,
    text_of: Ask = None,
) -> Callable[[F], F]: ...
def blend(function: Any = None, /, **options: Any) -> Any:
    """Record any ranking after the first rerank: boosts, recency, diversity."""
    return _decorate(kinds.BLEND, function, options)


@overload
def filter(function: F, /) -> F: ...
@overload
def filter(
    *,
    reason: str | None = None,
    limit: Number = None,
    name: str | None = None,
    id_of: Ask = None,
    score_of: Ask = None,
    text_of: Ask = None,
) -> Callable[[F], F]: ...
def filter(function: Any = None, /, **options: Any) -> Any:
    """Record a filter: list in, list out.

    *reason* is permission, threshold, dedupe, per_document_cap or other. Texts dropped for
    permission are not sent.
    """
    return _decorate(kinds.FILTER, function, options)


@overload
def assemble(function: F, /) -> F: ...
@overload
def assemble(
    *,
    template: Text = None,
    template_version: Text = None,
    template_text: Text = None,
    budget: Number = None,
    tokens: Callable[[Any], int] | None = None,
    count_tokens: Callable[[str], int] | None = None,
    used: Callable[[Any], Any] | None = None,
    name: str | None = None,
    id_of: Ask = None,
    text_of: Ask = None,
) -> Callable[[F], F]: ...
def assemble(function: Any = None, /, **options: Any) -> Any:
    """Record a prompt builder: the exact prompt, and which candidates stand in it.

    Args:
        template: name of the template.
        template_version: its version; None: a hash of *template_text*, or of what remains of the
            prompt without the question and the passages.
        budget: tokens that the passages may take.
        tokens: called with what the function returned, tells the prompt's length in tokens.
        count_tokens: the tokeniser: called with a text, on ragotel's own thread. Without either,
            four characters are taken for one token, and marked as an estimate.
        used: called with what the function returned, tells the passages used in prompt order.
            Without it they are found by their texts in the prompt.
    """
    return _decorate(kinds.ASSEMBLE, function, options)


@overload
def generate(function: F, /) -> F: ...
@overload
def generate(
    *,
    model: Text = None,
    provider: Text = None,
    temperature: float | None = None,
    operation: str | None = None,
    name: str | None = None,
) -> Callable[[F], F]: ...
def generate(function: Any = None, /, **options: Any) -> Any:
    """Record a model's reply: usage, finish reasons, citations, time to the first token."""
    return _decorate(kinds.GENERATE, function, options)


@overload
def ingest(function: F, /) -> F: ...
@overload
def ingest(
    *,
    index: Text = None,
    index_version: Text = None,
    parent_version: Text = None,
    chunker: Text = None,
    name: str | None = None,
    id_of: Ask = None,
    text_of: Ask = None,
    doc_id_of: Ask = None,
    doc_version_of: Ask = None,
) -> Callable[[F], F]: ...
def ingest(function: Any = None, /, **options: Any) -> Any:
    """Record an ingest run by the summary that it returns.

    The summary is a dict or object with docs_listed, docs_parsed, docs_empty, mean_chars_per_doc,
    chunks_written, chunks_deleted, index_version, parent_version, chunker, and, for a manifest of
    the version, a list `chunks`.
    """
    return _decorate(kinds.INGEST, function, options)
