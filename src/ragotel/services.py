"""Services: one decorator on an existing class records all of its stages.

Pipeline: call site -> [services] -> wrapping -> recorder
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, TypeVar, overload

from ragotel import faults
from ragotel import spec as kinds
from ragotel.errors import ConfigurationError
from ragotel.spec import Spec
from ragotel.wrapping import wrap

C = TypeVar("C", bound=type)
Names: TypeAlias = "str | Iterable[str] | None"

CONVENTION: dict[str, tuple[str, ...]] = {
    kinds.REQUEST: ("answer", "ask", "query", "chat", "run", "__call__"),
    kinds.RETRIEVE: (
        "retrieve", "search", "dense_search", "sparse_search", "bm25_search", "vector_search",
        "keyword_search", "search_dense", "search_bm25", "search_sparse", "retrieve_dense",
        "retrieve_bm25", "retrieve_sparse", "similarity_search",
    ),
    kinds.FUSE: ("fuse", "merge", "rrf", "reciprocal_rank_fusion", "combine"),
    kinds.RERANK: ("rerank", "re_rank", "rerank_hits", "rerank_documents"),
    kinds.BLEND: ("blend", "boost", "diversify", "mmr"),
    kinds.FILTER: ("filter", "filter_hits", "filter_permissions", "authorize"),
    kinds.ASSEMBLE: ("assemble", "build_prompt", "make_prompt", "render_prompt", "format_prompt",
                     "create_prompt", "build_messages"),
    kinds.GENERATE: ("generate", "complete", "call_llm", "call_model", "llm", "generate_answer"),
    kinds.INGEST: ("ingest", "index_documents", "build_index", "reindex"),
}  # fmt: skip
"""Method names by stage, tried in this order where the decorator names none. A request and an
assembly are the first name that the class has; of the other stages every name that it has."""

_SINGLE = frozenset((kinds.REQUEST,))


@overload
def service(cls: C, /) -> C: ...
@overload
def service(
    *,
    request: Names = None,
    retrieve: Names = None,
    fuse: Names = None,
    rerank: Names = None,
    blend: Names = None,
    filter: Names = None,
    assemble: Names = None,
    generate: Names = None,
    ingest: Names = None,
    **options: Any,
) -> Callable[[C], C]: ...
def service(cls: Any = None, /, **given: Any) -> Any:
    """Record the methods of a class: ``@ragotel.service(request="answer", retrieve="search")``.

    Each stage takes a method's name or a list of names (the legs, named after their methods), also
    of inherited methods; an empty list records none. Stages left out are found by `CONVENTION`.
    Further options go to every stage that knows them: index, index_version, model, template,
    budget, reason, ...

    Raises:
        ConfigurationError: the class has no method of a name that was given.
    """
    if cls is not None:
        return _record_class(cls, given)
    return lambda target: _record_class(target, given)


def _record_class(cls: type, given: dict[str, Any]) -> type:
    options = {name: value for name, value in given.items() if name not in CONVENTION}
    taken: set[str] = set()
    for kind in CONVENTION:
        named = given.get(kind)
        if named is not None:
            for name in [named] if isinstance(named, str) else list(named):
                _record_method(cls, kind, name, options)
                taken.add(name)
    for kind, names in CONVENTION.items():
        if given.get(kind) is None:
            present = [n for n in names if n not in taken and _is_method(cls, n)]
            for name in present[:1] if kind in _SINGLE else present:
                _record_method(cls, kind, name, options)
                taken.add(name)
            if kind == kinds.REQUEST and not present:
                faults.advise(
                    "%s has no method that is a request (%s): its stages will stand alone. "
                    "Name it: @ragotel.service(request=...)",
                    cls.__name__,
                    ", ".join(names),
                )
    return cls


def _find(cls: type, name: str) -> Any:
    """What *name* is in the class or its bases; not what its metaclass has, such as `__call__`."""
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


def _is_method(cls: type, name: str) -> bool:
    found = _find(cls, name)
    if isinstance(found, (staticmethod, classmethod)):
        found = found.__func__
    return inspect.isroutine(found) and not hasattr(found, "__ragotel__")


def _record_method(cls: type, kind: str, name: str, options: dict[str, Any]) -> None:
    found = _find(cls, name)
    if found is None or not (callable(found) or isinstance(found, (staticmethod, classmethod))):
        raise ConfigurationError(
            f"{cls.__name__} has no method {name!r} to record as {kind}; name one that it has, "
            f"or an empty list: {kind}=[]."
        )
    if hasattr(getattr(found, "__func__", found), "__ragotel__"):
        return
    setattr(cls, name, wrap(found, lambda function: Spec(kind, function, options)))
