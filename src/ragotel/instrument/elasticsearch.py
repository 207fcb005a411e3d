"""Elasticsearch: searches of the client, sync and async.

Pipeline: elasticsearch's own call -> [instrument.elasticsearch] -> calls -> recorder
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragotel.instrument.calls import Call, recorded
from ragotel.instrument.hits import search_call
from ragotel.instrument.hooks import Hook, Library


def _search(instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call | None:
    body = kwargs.get("body")
    asked = {**(body if isinstance(body, Mapping) else {}), **kwargs}
    return search_call("elasticsearch", kwargs.get("index"), asked)


LIBRARY = Library(
    name="elasticsearch",
    package="elasticsearch",
    versions=">=8,<10",
    hooks=(
        Hook("elasticsearch._sync.client", "Elasticsearch.search", recorded(_search)),
        Hook("elasticsearch._async.client", "AsyncElasticsearch.search", recorded(_search)),
    ),
)
