"""Arguments: what a call's arguments say: the question, who asks, which candidates came in.

Pipeline: decorators -> [arguments] -> recorder
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from operator import is_
from typing import Any

from ragotel import attributes as at
from ragotel.candidates import read
from ragotel.columns import Candidates
from ragotel.fields import is_number
from ragotel.record import Trace
from ragotel.spec import NOTHING, QUERY_PARAMETERS, RETRIEVE, WHO_PARAMETERS, Spec

_PLAIN = frozenset((str, int, float, bool, type(None), bytes))
_LISTS = frozenset((list, tuple, dict))

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]


def find_query(spec: Spec, args: Args, kwargs: Kwargs) -> Any:
    """Find the question: by the parameter's name, in a request object, else the first text."""
    if spec.ask_query is not None:
        return spec.ask_query(args, kwargs)
    for name in spec.query_names:
        value = spec.parameters.value(name, args, kwargs)
        if type(value) is str:
            return value
        if value is not NOTHING and value is not None:
            text = _text_inside(value)
            if text is not None:
                return text
    return _first_text(spec, args, kwargs)


def _first_text(spec: Spec, args: Args, kwargs: Kwargs) -> str | None:
    rest = args[1:] if spec.parameters.has_self else args
    if spec.kind == RETRIEVE:
        # Further texts of a search are rather names of collections and the like.
        return rest[0] if rest and isinstance(rest[0], str) else None
    values = (*rest, *kwargs.values())
    for value in values:
        if isinstance(value, str):
            return value
    for value in values:
        text = None if type(value) in _PLAIN else _text_inside(value)
        if text is not None:
            return text
    return None


def _text_inside(value: Any) -> str | None:
    """Find the question in a request's body or in the last message of a conversation."""
    if isinstance(value, (list, tuple)):
        if not value or type(value[-1]) in _PLAIN:
            return None
        content = part_of(value[-1], ("content",))
        return content if isinstance(content, str) else None
    text = part_of(value, QUERY_PARAMETERS)
    if isinstance(text, str):
        return text
    messages = part_of(value, ("messages",))
    return _text_inside(messages) if isinstance(messages, list) else None


def part_of(value: Any, names: tuple[str, ...]) -> Any:
    """Read the first of *names* that a dict or an object's own attributes have."""
    parts = value if isinstance(value, Mapping) else getattr(value, "__dict__", None)
    if not isinstance(parts, Mapping):
        return None
    for name in names:
        if name in parts:
            return parts[name]
    return None


def find_who(spec: Spec, args: Args, kwargs: Kwargs) -> dict[str, Any]:
    """Find user, session, tenant, principal and tags among the parameters of these names."""
    found: dict[str, Any] = {}
    for key, names in spec.who:
        for name in names:
            value = spec.parameters.value(name, args, kwargs)
            if value is not NOTHING and value is not None and _is_name(key, value):
                found[key] = value
                break
    return found or _who_inside(spec, args, kwargs)


def _who_inside(spec: Spec, args: Args, kwargs: Kwargs) -> dict[str, Any]:
    """Look into a request's body, where the parameters themselves name nobody."""
    found: dict[str, Any] = {}
    rest = args[1:] if spec.parameters.has_self else args
    for value in (*rest, *kwargs.values()):
        if type(value) in _PLAIN or isinstance(value, (list, tuple)):
            continue
        for key, names in WHO_PARAMETERS.items():
            inside = part_of(value, names)
            if inside is not None and key not in found and _is_name(key, inside):
                found[key] = inside
    return found


def _is_name(key: str, value: Any) -> bool:
    """Refuse objects: a user given as a whole record is not recorded."""
    if key == at.TAGS:
        return isinstance(value, (str, list, tuple, set, frozenset, dict))
    return isinstance(value, (str, int)) or type(value).__name__ == "UUID"


def find_top_k(spec: Spec, args: Args, kwargs: Kwargs) -> int | None:
    for name in spec.top_k_names:
        value = spec.parameters.value(name, args, kwargs)
        if type(value) is int:
            return value
    return None


def find_inputs(trace: Trace, spec: Spec, args: Args, kwargs: Kwargs) -> list[Candidates]:
    """Find the candidates that go into a stage; they are looked at before it may change them.

    Lists that earlier stages returned are known by identity. Where there is none, any argument
    that reads as candidates counts; where there is none of these either, whatever no stage has
    taken yet.
    """
    known: list[Candidates] = []
    unknown: list[Any] = []
    values = (*args, *kwargs.values()) if kwargs else args
    for value in values:
        if type(value) not in _PLAIN:
            _sort_in(trace, value, known, unknown)
    if not known:
        for value in unknown:
            try:
                found = _read_argument(spec, value)
            except Exception:  # noqa: S112 - what cannot be looked at holds no candidates
                continue
            if found is not None:
                known.append(found)
    if not known:
        known = list(trace.frontier)
    if known:
        _take(trace, known)
    return known


def _sort_in(trace: Trace, value: Any, known: list[Candidates], unknown: list[Any]) -> None:
    seen = trace.seen.get(id(value))
    if seen is not None and seen.source is value and _is_unchanged(seen, value):
        known.append(seen)
        return
    if type(value) not in _LISTS:
        if _may_hold_candidates(type(value)):  # type: ignore[arg-type]
            unknown.append(value)
        return
    # Fusion gets its legs as a list or dict of lists.
    parts = value.values() if isinstance(value, dict) else value
    inner = [trace.seen.get(id(part)) for part in parts] if len(value) <= 16 else []
    if inner and all(inner):
        known.extend(part for part in inner if part is not None)
    else:
        unknown.append(value)


def _is_unchanged(seen: Candidates, value: Any) -> bool:
    """Tell whether the service still holds the very elements that were read."""
    if type(value) is not list:
        return True
    items = seen.items
    if not items:
        return len(value) == len(seen)
    return len(items) == len(value) and all(map(is_, items, value))


@lru_cache(maxsize=256)
def _may_hold_candidates(kind: type) -> bool:
    """Tell containers from the services and settings that are passed along with them.

    Asked once per class: a name that is not there takes half a microsecond to be missed.
    """
    if hasattr(kind, "__ragotel__") or hasattr(kind, "__next__"):
        return False
    return any(hasattr(kind, name) for name in ("__iter__", "__getitem__", "model_fields"))


def _read_argument(spec: Spec, value: Any) -> Candidates | None:
    if isinstance(value, (list, tuple)):
        if not value:
            return None
        if all(isinstance(part, (str, type(None))) or is_number(part) for part in value):
            # Bare texts are passages only where a stage of ours returned them.
            return read(value) if all(isinstance(part, str) for part in value) else None
        if part_of(value[0], ("role",)) is not None:
            return None
    found = read(value, spec.readers)
    if found is None or not len(found):
        return None
    has_part = any(i is not None for i in found.ids) or any(t is not None for t in found.texts)
    return found if has_part else None


def _take(trace: Trace, inputs: list[Candidates]) -> None:
    """Mark as used what the inputs are, or what they were cut from."""
    waiting_lists = trace.frontier
    if not waiting_lists:
        return
    if len(waiting_lists) == 1 and waiting_lists[0] is inputs[0]:
        trace.frontier = []
        return
    first_ids = [found.ids[0] for found in inputs if len(found)]
    trace.frontier = [
        waiting
        for waiting in waiting_lists
        if not any(waiting is taken for taken in inputs)
        and not any(type(i) in _PLAIN and i is not None and i in waiting.ids for i in first_ids)
    ]
