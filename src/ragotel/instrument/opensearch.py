"""OpenSearch: searches of the client, sync and async.

Pipeline: opensearch-py's own call -> [instrument.opensearch] -> calls -> recorder
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragotel.instrument.calls import Call, argument, recorded
from ragotel.instrument.hits import search_call
from ragotel.instrument.hooks import Hook, Library


def _search(instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call | None:
    body = argument(args, kwargs, 0, "body")
    asked = dict(body) if isinstance(body, Mapping) else {}
    if "size" in kwargs:
        asked["size"] = kwargs["size"]
    return search_call("opensearch", argument(args, kwargs, 1, "index"), asked)


LIBRARY = Library(
    name="opensearch",
    package="opensearch-py",
    versions=">=2,<4",
    hooks=(
        Hook("opensearchpy.client", "OpenSearch.search", recorded(_search)),
        Hook("opensearchpy._async.client", "AsyncOpenSearch.search", recorded(_search)),
    ),
)
