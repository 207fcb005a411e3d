"""Calling: which parameter of a user's own function takes the question, k, the principal, ...

Pipeline: `--retriever`, `--generator`, `--judge` -> [triage] -> rehearsal
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ragotel.errors import InputError

QUESTION = ("query", "question", "q", "text", "query_text", "search_query", "message", "input")
K = ("k", "top_k", "limit", "topk", "n", "n_results", "num_results", "top_n", "size")
PRINCIPAL = ("principal", "user", "user_id", "tenant", "tenant_id", "on_behalf_of")
PROMPT = ("prompt", "messages", "text", "input", "content")
EXPECTED = ("expected_answer", "expected", "reference", "gold_answer", "gold", "truth", "target")
# In (question, answer, prediction) the answer is the expected one, so that word comes last.
ANSWER = ("prediction", "response", "output", "completion", "generated", "actual", "answer")
LABEL = ("label", "case", "record")

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True)
class Role:
    """One thing that a function is given: *names* its parameter may have.

    *is_placed*: where no parameter has such a name, the next free positional one takes it.
    *is_needed*: a function that has no place for it cannot be used.
    """

    key: str
    names: tuple[str, ...]
    is_placed: bool = True
    is_needed: bool = True


@dataclass(frozen=True)
class Caller:
    """A function and where each role goes; *by_name* and *by_position* hold the roles' keys."""

    function: Callable[..., Any]
    target: str
    by_position: tuple[str, ...]
    by_name: Mapping[str, str]
    """Parameter to role."""
    required: frozenset[str]
    """Roles whose parameters have no default."""

    def takes(self, key: str) -> bool:
        return key in self.by_position or key in self.by_name.values()

    def arguments(self, values: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments for *values* by role; a role without one is left out."""
        keywords = {name: values[key] for name, key in self.by_name.items() if key in values}
        return tuple(values[key] for key in self.by_position), keywords


def fit(function: Callable[..., Any], target: str, *roles: Role) -> Caller:
    """Find the place of each of *roles* among the parameters of *function*.

    Raises:
        InputError: It lacks a place for a needed role, or requires something else besides.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        # Some built-in functions tell nothing about themselves.
        parameters = []
    if not parameters:
        raise InputError(_advice(target, roles, "takes nothing that can be seen"))
    places = _named(parameters, roles)
    free = [p for p in parameters if p.kind in _POSITIONAL and p.name not in places.values()]
    for role in roles:
        if role.key not in places and role.is_placed and free:
            places[role.key] = free.pop(0).name
    lacking = [role.key for role in roles if role.is_needed and role.key not in places]
    if lacking:
        raise InputError(_advice(target, roles, f"has no parameter for the {lacking[0]}"))
    taken = {name: key for key, name in places.items()}
    strange = [
        p.name
        for p in parameters
        if p.default is p.empty and p.kind not in _VARIADIC and p.name not in taken
    ]
    if strange:
        raise InputError(_advice(target, roles, f"also requires {strange[0]!r}"))
    only_placed = inspect.Parameter.POSITIONAL_ONLY
    return Caller(
        function=function,
        target=target,
        by_position=tuple(
            taken[p.name] for p in parameters if p.kind is only_placed and p.name in taken
        ),
        by_name={
            p.name: taken[p.name]
            for p in parameters
            if p.name in taken and p.kind is not only_placed
        },
        required=frozenset(
            taken[p.name] for p in parameters if p.name in taken and p.default is p.empty
        ),
    )


def _named(parameters: list[inspect.Parameter], roles: tuple[Role, ...]) -> dict[str, str]:
    known = {p.name for p in parameters if p.kind not in _VARIADIC}
    places: dict[str, str] = {}
    for role in roles:
        found = next((name for name in role.names if name in known), None)
        if found is not None:
            places[role.key] = found
            known.discard(found)
    return places


def _advice(target: str, roles: tuple[Role, ...], fault: str) -> str:
    wanted = ", ".join(role.key for role in roles if role.is_needed)
    return f"{target} {fault}; give a function of ({wanted})."
