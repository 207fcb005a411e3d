"""Inheriting: the index that a request names holds for those of its searches that name none.

Pipeline: encoding -> [inheriting] -> span attributes

A library's hook knows neither which index a retriever searches nor in which version; the decorator
of the request can say both.
"""

from __future__ import annotations

from typing import Any

from ragotel import attributes as at
from ragotel.casting import put_value
from ragotel.content import Attributes
from ragotel.record import Stage


def inherit_index(stage: Stage, made: Attributes) -> None:
    """Fill in a search's index, and its version unless the search is in another index."""
    root = stage.trace.root
    if root is None or root is stage:
        return
    index, version = _told(root, at.DATA_SOURCE), _told(root, at.INDEX_VERSION)
    if index is not None and at.DATA_SOURCE not in made:
        put_value(made, at.DATA_SOURCE, index)
    is_this = index is None or made.get(at.DATA_SOURCE) == index
    if version is not None and at.INDEX_VERSION not in made and is_this:
        put_value(made, at.INDEX_VERSION, version)


def _told(stage: Stage, key: str) -> Any:
    value = (stage.values or {}).get(key)
    return stage.spec.static.get(key) if value is None else value
