"""LangChain (core, classic, LangGraph): retrievers, vector stores, compressors, prompts, models.

Pipeline: langchain's own call -> [instrument.langchain] -> calls -> recorder
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ragotel import attributes as at
from ragotel.candidates import read
from ragotel.columns import Candidates
from ragotel.instrument import graphs
from ragotel.instrument.batches import each, recorded_within, through, within
from ragotel.instrument.calls import Call, argument, recorded
from ragotel.instrument.hooks import Family, Hook, Library
from ragotel.instrument.reading import filter_of, first_text_of, reply_of, who_in
from ragotel.spec import ASSEMBLE, BLEND, FILTER, FUSE, GENERATE, REQUEST, RERANK, RETRIEVE

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]

_COMPOSED = frozenset(
    ("ContextualCompressionRetriever", "EnsembleRetriever", "DocumentCompressorPipeline")
)
"""They do nothing but call others, each of which is a stage."""
_FILTERS = {
    "EmbeddingsFilter": (FILTER, "threshold"),
    "LLMChainFilter": (FILTER, "other"),
    "LLMChainExtractor": (FILTER, "other"),
    "EmbeddingsRedundantFilter": (FILTER, "dedupe"),
    "EmbeddingsClusteringFilter": (FILTER, "other"),
    "LongContextReorder": (BLEND, None),
}
"""Compressors and transformers that are no rerankers; of transformers only these are stages."""
_SCORES: dict[str, tuple[str, bool]] = {"InMemoryVectorStore": ("cosine", True)}
_INDEX_NAMES = ("collection_name", "_collection_name", "index_name", "_index_name")


def _classes(instance: Any) -> list[str]:
    return [cls.__name__ for cls in type(instance).__mro__]


def _documents(result: Any) -> Any:
    return result if isinstance(result, list) else list(result)


# Retrieve.


def _retriever(instance: Any, args: Args, kwargs: Kwargs) -> Call | None:
    if not _COMPOSED.isdisjoint(_classes(instance)):
        return None
    store = getattr(instance, "vectorstore", None)
    given = getattr(instance, "search_kwargs", None)
    given = {**given, **kwargs} if isinstance(given, Mapping) else kwargs
    named = getattr(instance, "name", None)
    return Call(
        RETRIEVE,
        named or type(instance if store is None else store).__name__,
        query=argument(args, kwargs, 0, "input"),
        values={
            at.TOP_K: given.get("k") or _int(getattr(instance, "k", None)),
            at.DATA_SOURCE: _index_of(store),
            at.FILTER: filter_of(given.get("filter")),
        },
    )


def _index_of(store: Any) -> str | None:
    own = {} if store is None else getattr(store, "__dict__", {})
    return next((own[name] for name in _INDEX_NAMES if isinstance(own.get(name), str)), None)


def _int(value: Any) -> int | None:
    return value if type(value) is int else None


def _store(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    kind, is_higher = next(
        (_SCORES[name] for name in _classes(instance) if name in _SCORES), (None, None)
    )
    query = argument(args, kwargs, 0, "query")
    return Call(
        RETRIEVE,
        type(instance).__name__,
        query=query if isinstance(query, str) else None,
        values={
            at.TOP_K: _int(argument(args, kwargs, 1, "k")),
            at.DATA_SOURCE: _index_of(instance),
            at.FILTER: filter_of(kwargs.get("filter")),
            at.SCORE_KIND: kind,
            at.HIGHER_IS_BETTER: is_higher,
        },
        read=_pairs,
    )


def _store_documents(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    call = _store(instance, args, kwargs)
    call.values.update({at.SCORE_KIND: None, at.HIGHER_IS_BETTER: None})
    call.read = None
    return call


def _store_relevance(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    call = _store(instance, args, kwargs)
    # By LangChain's own contract: 0 is dissimilar, 1 is the most similar.
    call.values.update({at.SCORE_KIND: "relevance", at.HIGHER_IS_BETTER: True})
    return call


def _pairs(result: Any) -> Any:
    # A pair of a document and whatever the store calls its score, even a text.
    rows = [(row[0], row[1]) for row in result]
    found = read([document for document, _ in rows]) if rows else None
    if found is None or len(found) != len(rows):
        return rows
    found.scores = [score for _, score in rows]
    found.source = None
    return found


# Fuse, rerank, filter.


def _fusion(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    return Call(
        FUSE,
        type(instance).__name__,
        values={at.FUSE_METHOD: "rrf"},
        inputs=argument(args, kwargs, 0, "doc_lists"),
    )


def _compressor(instance: Any, args: Args, kwargs: Kwargs) -> Call | None:
    classes = _classes(instance)
    if not _COMPOSED.isdisjoint(classes):
        return None
    kind, reason = next((_FILTERS[name] for name in classes if name in _FILTERS), (RERANK, None))
    model = getattr(instance, "model", None) or getattr(instance, "model_name", None)
    return Call(
        kind,
        type(instance).__name__,
        query=argument(args, kwargs, 1, "query"),
        values={
            at.LIMIT: _int(getattr(instance, "top_n", None)),
            at.REQUEST_MODEL: model if isinstance(model, str) else None,
        },
        inputs=argument(args, kwargs, 0, "documents"),
        read=_documents,
        reason=reason,
    )


def _transformer(instance: Any, args: Args, kwargs: Kwargs) -> Call | None:
    if _FILTERS.keys().isdisjoint(_classes(instance)):
        return None
    return _compressor(instance, args, kwargs)


def _cross_encoder(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    pairs = list(argument(args, kwargs, 0, "text_pairs"))
    texts = [pair[1] for pair in pairs]
    model = getattr(instance, "model_name", None)

    def read(result: Any) -> Candidates:
        # Best first, as the reranker above will sort them.
        ranked = sorted(
            zip(texts, (float(s) for s in result), strict=True), key=lambda row: -row[1]
        )
        found = [row[0] for row in ranked], [row[1] for row in ranked]
        return Candidates([None] * len(texts), found[1], found[0])

    return Call(
        RERANK,
        type(instance).__name__,
        query=pairs[0][0] if pairs else None,
        values={
            at.SCORE_KIND: "cross_encoder",
            at.HIGHER_IS_BETTER: True,
            at.REQUEST_MODEL: model if isinstance(model, str) else None,
        },
        inputs=texts,
        read=read,
    )


# Assemble.


def _prompt(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    about = getattr(instance, "metadata", None) or {}
    owner, repo = about.get("lc_hub_owner"), about.get("lc_hub_repo")
    hub = "/".join(part for part in (owner, repo) if part) or None
    return Call(
        ASSEMBLE,
        type(instance).__name__,
        values={
            at.PROMPT_NAME: hub or getattr(instance, "name", None),
            at.PROMPT_VERSION: about.get("lc_hub_commit_hash"),
        }
        if hub
        else {at.PROMPT_NAME: getattr(instance, "name", None)},
        template=_template_of(instance),
    )


def _template_of(prompt: Any) -> str | None:
    """Join the texts of a template and of its parts; None where it has none of its own."""
    text = getattr(prompt, "template", None)
    if isinstance(text, str):
        return text
    parts = getattr(prompt, "messages", None)
    if isinstance(parts, list):
        texts = [_template_of(part) for part in parts]
        return "\n\n".join(text for text in texts if text) or None
    if (inner := getattr(prompt, "prompt", None)) is not None:
        many = inner if isinstance(inner, list) else [inner]
        return "\n".join(filter(None, map(_template_of, many))) or None
    if isinstance(name := getattr(prompt, "variable_name", None), str):
        return f"{{{name}}}"
    content = getattr(prompt, "content", None)
    return content if isinstance(content, str) else None


# Generate.


def _model(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    model = kwargs.get("model") or first_text_of(instance, ("model_name", "model", "model_id"))
    try:
        provider = instance._get_ls_params().get("ls_provider")
    except Exception:
        provider = None
    return Call(
        GENERATE,
        type(instance).__name__,
        values={
            at.REQUEST_MODEL: model or None,
            at.PROVIDER: provider,
            at.TEMPERATURE: kwargs.get("temperature", getattr(instance, "temperature", None)),
        },
        messages=argument(args, kwargs, 0, "messages", kwargs.get("input")),
        reply=_replies(),
        said=_message,
    )


def _replies() -> Callable[[Any], dict[str, Any]]:
    """Read a result, or the chunks of one stream: their usage is to be added up."""
    total: dict[str, int] = {}

    def read(result: Any) -> dict[str, Any]:
        found = _reply(result)
        if type(result).__name__.endswith("Chunk"):
            for key in (at.INPUT_TOKENS, at.OUTPUT_TOKENS):
                if key in found:
                    found[key] = total[key] = total.get(key, 0) + found[key]
        return found

    return read


def _reply(result: Any) -> dict[str, Any]:
    message = _message(result)
    about = getattr(message, "response_metadata", None) or {}
    usage = getattr(message, "usage_metadata", None) or {}
    reason = about.get("finish_reason") or about.get("stop_reason") or about.get("done_reason")
    return reply_of(
        model=about.get("model_name") or about.get("model"),
        input_tokens=usage.get("input_tokens"),
        output_tokens=usage.get("output_tokens"),
        finish_reason=reason,
    )


def _message(result: Any) -> Any:
    generations = getattr(result, "generations", None)
    return getattr(generations[0], "message", None) if generations else result


# Request.


def _chain(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    asked = argument(args, kwargs, 0, "input")
    config = argument(args, kwargs, 1, "config")
    around = config if isinstance(config, Mapping) else {}
    who = {**who_in(around.get("configurable")), **who_in(around.get("metadata"))}
    return Call(REQUEST, type(instance).__name__, query=asked, values=who, read=_answer)


def _answer(result: Any) -> Any:
    """The last message of a graph's state; any other result is read as of any function."""
    messages = result.get("messages") if isinstance(result, Mapping) else None
    return messages[-1] if isinstance(messages, list) and messages else result


def _graph(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    call = _chain(instance, args, kwargs)
    call.query = graphs.question_of(call.query)
    call.read = lambda result: graphs.answer_of(result) or _answer(result)
    return call


def _graph_stream(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    call = _graph(instance, args, kwargs)
    call.part = graphs.part_reader(instance, kwargs)
    return call


def _both(
    module: str, owner: str, names: tuple[str, ...], wrapper: Any, *, optional: bool = False
) -> tuple[Hook, ...]:
    return tuple(Hook(module, f"{owner}.{name}", wrapper, optional) for name in names)


_BATCHES = ("batch", "abatch")
_CALLS = ("invoke", "ainvoke", "stream", "astream")
_STORE_METHODS = {
    f"{prefix}{name}": recorded(describe)
    for describe, names in (
        (_store, ("similarity_search_with_score", "similarity_search_with_score_by_vector")),
        (_store_relevance, ("similarity_search_with_relevance_scores",)),
        (
            _store_documents,
            ("similarity_search", "similarity_search_by_vector", "max_marginal_relevance_search"),
        ),
    )
    for name in names
    for prefix in ("", "a")
    if prefix + name != "asimilarity_search_with_score_by_vector"
}
_ENSEMBLE = "langchain_classic.retrievers.ensemble"
_CROSS_ENCODER = "langchain_classic.retrievers.document_compressors.cross_encoder"

LIBRARY = Library(
    name="langchain",
    package="langchain-core",
    versions=">=0.3,<2",
    hooks=(
        *_both(
            "langchain_core.retrievers", "BaseRetriever", _CALLS[:2], recorded_within(_retriever)
        ),
        Hook(_ENSEMBLE, "EnsembleRetriever.weighted_reciprocal_rank", recorded_within(_fusion)),
        *_both(
            "langchain_core.prompts.base",
            "BasePromptTemplate",
            _CALLS[:2],
            recorded_within(_prompt),
        ),
        *_both(
            "langchain_core.language_models.chat_models",
            "BaseChatModel",
            ("_generate_with_cache", "_agenerate_with_cache", "stream", "astream"),
            recorded_within(_model),
        ),
        *_both("langchain_core.language_models.llms", "BaseLLM", _CALLS, recorded_within(_model)),
        *_both(
            "langchain_core.runnables.base", "RunnableSequence", _CALLS, recorded_within(_chain)
        ),
        *_both("langchain_core.runnables.base", "RunnableSequence", _BATCHES, each(_chain)),
        *_both("langchain_core.runnables.base", "RunnableLambda", _CALLS[:2], within(through)),
        *_both("langchain_classic.chains.base", "Chain", _CALLS[:2], recorded(_chain)),
        *_both("langgraph.pregel", "Pregel", _CALLS[:2], recorded(_graph)),
        *_both("langgraph.pregel", "Pregel", _CALLS[2:], recorded(_graph_stream)),
    ),
    families=(
        Family("langchain_core.vectorstores.base", "VectorStore", _STORE_METHODS, with_base=True),
        Family(
            "langchain_core.documents.compressor",
            "BaseDocumentCompressor",
            {
                "compress_documents": recorded_within(_compressor),
                "acompress_documents": recorded_within(_compressor),
            },
        ),
        Family(
            "langchain_core.documents.transformers",
            "BaseDocumentTransformer",
            {"transform_documents": recorded(_transformer)},
        ),
        Family(_CROSS_ENCODER, "BaseCrossEncoder", {"score": recorded(_cross_encoder)}),
    ),
)
