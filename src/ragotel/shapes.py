"""Shapes: elements of one class are read column by column, along a plan made once per class.

Pipeline: result of a stage -> candidates -> [shapes] -> encoding

A plan asks for the attributes or keys named in `fields` that the class has, and for no others: a
property may do anything, so none is touched that is not a candidate's own part.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, TypeAlias

from ragotel.columns import Candidates, Column
from ragotel.fields import (
    DISTANCE_NAMES,
    EXTRA_NAMES,
    ID_NAMES,
    INNER_NAMES,
    META_NAMES,
    SCORE_NAMES,
    TEXT_NAMES,
)

Get: TypeAlias = Callable[[Column, str], Column]

_MAX_PLANS = 512
_MAX_DEPTH = 4
"""Of objects inside of objects: one that holds itself has no end."""
_META_FIELDS = frozenset(
    (*ID_NAMES, *SCORE_NAMES, *TEXT_NAMES, *(n for names in EXTRA_NAMES.values() for n in names))
)
_ALL_NAMES = (
    *ID_NAMES, *SCORE_NAMES, *DISTANCE_NAMES, *TEXT_NAMES, *META_NAMES, *INNER_NAMES,
    *(n for names in EXTRA_NAMES.values() for n in names),
)  # fmt: skip


class Plan:
    """Which names of one class, or of one set of dict keys, hold which part of a candidate."""

    __slots__ = (
        "distance", "extras", "ids", "inner", "is_candidate", "metas", "read", "scores", "texts",
    )  # fmt: skip

    def __init__(self, names: Iterable[str]) -> None:
        known = set(names)
        self.ids = [n for n in ID_NAMES if n in known]
        self.scores = [n for n in SCORE_NAMES if n in known]
        self.distance = next((n for n in DISTANCE_NAMES if n in known), None)
        self.texts = [n for n in TEXT_NAMES if n in known]
        self.metas = [n for n in META_NAMES if n in known]
        self.inner = [n for n in INNER_NAMES if n in known]
        self.extras = {
            field: [n for n in options if n in known] for field, options in EXTRA_NAMES.items()
        }
        self.extras = {field: options for field, options in self.extras.items() if options}
        self.is_candidate = bool(
            self.ids or self.scores or self.texts or self.inner or self.metas or self.distance
        )
        self.read: Callable[[Column], tuple[Column, ...]] | None = None
        """For classes of the usual form: reads all columns in one go."""

    def compile(self, form: str) -> None:
        """Make `read` where id, score and text each have one place, and the rest at most one.

        *form* is how an element is asked for a name: ``x.{}`` or ``x['{}']``.
        """
        names = (self.ids[:1], self.scores[:1], self.texts[:1], self.metas[:1])
        is_usual = all(len(part) == 1 for part in (self.ids, self.scores, self.texts))
        if is_usual and len(self.metas) <= 1 and not self.inner and not self.extras:
            # As namedtuple does: an attribute written out is read twice as fast as one by name.
            columns = ", ".join(
                f"[{form.format(part[0])} for x in items]" for part in names if part
            )
            self.read = eval(f"lambda items: ({columns},)", {"__builtins__": {}})  # noqa: S307


_class_plans: dict[object, Plan] = {}
_class_names: dict[type, frozenset[str]] = {}
_key_plans: dict[frozenset[str], Plan] = {}


def read_uniform(items: Column, kind: type, depth: int = 0) -> Candidates | None:
    """Read *items*, whose first element is of class *kind*; None if they are no candidates.

    *depth* counts the objects that they stand inside of.

    Raises:
        Exception: whatever an element of another class raises; the caller reads them one by one.
    """
    if kind is dict:
        return _read_dicts(items, depth)
    plan = _class_plans.get(kind)
    if plan is None:
        if issubclass(kind, Mapping):
            return _read_dicts(items, depth)
        plan = _plan_class(items, kind)
    if not plan.is_candidate:
        return None
    if plan.read is not None:
        try:
            return _read_simple(items, plan)
        except (AttributeError, TypeError):
            # Some element is of another class; attribute by attribute will do.
            pass
    return _read_columns(items, plan, _attribute_column, depth)


def _read_simple(items: Column, plan: Plan) -> Candidates:
    columns = plan.read(items) if plan.read is not None else ()
    found = Candidates(columns[0], columns[1], columns[2])
    if len(columns) == 4:
        fill_from_metadata(found, columns[3])
    return found


def _read_dicts(items: Column, depth: int) -> Candidates | None:
    if not _are_mappings(items):
        raise TypeError("elements of another class stand among them")
    names = set().union(*items)
    try:
        plan = _key_plans.get(frozenset(names))
    except TypeError:
        return None
    if plan is None:
        plan = Plan(n for n in names if isinstance(n, str))
        plan.compile("x['{}']")
        if len(_key_plans) >= _MAX_PLANS:
            _key_plans.clear()
        _key_plans[frozenset(names)] = plan
    if not plan.is_candidate:
        return None
    if plan.read is not None:
        try:
            return _read_simple(items, plan)
        except (KeyError, TypeError):
            # Some element lacks a key that others have.
            pass
    return _read_columns(items, plan, _key_column, depth)


def _are_mappings(values: Column) -> bool:
    """Whether each has keys: the names in a text would be its characters, however many."""
    kinds = set(map(type, values))
    return kinds == {dict} or all(issubclass(kind, Mapping) for kind in kinds)


def _plan_class(items: Column, kind: type) -> Plan:
    """Find the named attributes of *kind*, without calling a property that is none of them."""
    if _is_fixed(items[0], kind):
        plan = Plan(name for name in _ALL_NAMES if _has_part(items[0], kind, name))
        plan.compile("x.{}")
        if len(_class_plans) >= _MAX_PLANS:
            _class_plans.clear()
        _class_plans[kind] = plan
        return plan
    # Plain objects may each have attributes of their own.
    own: set[str] = set().union(*(getattr(item, "__dict__", ()) for item in items))
    return Plan(
        name
        for name in _ALL_NAMES
        if name in own or (name in _names_of(kind) and _has_part(items[0], kind, name))
    )


def _names_of(kind: type) -> frozenset[str]:
    """The names that instances may have by their class, looked up once per class."""
    names = _class_names.get(kind)
    if names is None:
        can_have_any = hasattr(kind, "__getattr__")
        names = frozenset(n for n in _ALL_NAMES if can_have_any or hasattr(kind, n))
        if len(_class_names) >= _MAX_PLANS:
            _class_names.clear()
        _class_names[kind] = names
    return names


def _is_fixed(item: Any, kind: type) -> bool:
    """Tell whether the class declares its attributes, so that one plan serves all instances."""
    return (
        dataclasses.is_dataclass(kind)
        or hasattr(kind, "model_fields")
        or hasattr(kind, "_fields")
        or not hasattr(item, "__dict__")
    )


def _has_part(item: Any, kind: type, name: str) -> bool:
    in_instance = name in getattr(item, "__dict__", ())
    on_class = hasattr(kind, name)
    if not in_instance and not on_class and not hasattr(kind, "__getattr__"):
        return False
    try:
        return not callable(getattr(item, name))
    except Exception:
        return False


def _attribute_column(items: Column, name: str) -> Column:
    try:
        return list(map(attrgetter(name), items))
    except Exception:
        return [_attribute(item, name) for item in items]


def _attribute(item: Any, name: str) -> Any:
    try:
        return getattr(item, name, None)
    except Exception:
        return None


def _key_column(items: Column, name: str) -> Column:
    return [item.get(name) for item in items]


def _read_columns(items: Column, plan: Plan, get: Get, depth: int) -> Candidates:
    nothing: Column = [None] * len(items)
    ids = _coalesce(items, plan.ids, get) or nothing
    scores = _coalesce(items, plan.scores, get) or nothing
    texts = _coalesce(items, plan.texts, get) or nothing
    found = Candidates(ids, scores, texts)
    for field, names in plan.extras.items():
        found.extras[field] = _coalesce(items, names, get) or nothing
    if plan.distance and not plan.scores:
        found.scores = get(items, plan.distance)
        found.higher_is_better = False
    for name in plan.metas:
        fill_from_metadata(found, get(items, name))
    if depth == _MAX_DEPTH or not plan.inner:
        return found
    if None in found.ids or None in found.texts or plan.texts == ["document"]:
        _fill_from_inner(found, items, plan, get, depth)
    return found


def _coalesce(items: Column, names: list[str], get: Get) -> Column | None:
    """Read the first of *names*; where it is None in some element, fill in from the next ones."""
    if not names:
        return None
    column = get(items, names[0])
    for name in names[1:]:
        if not _has_gap(column):
            break
        column = [b if a is None else a for a, b in zip(column, get(items, name), strict=True)]
    return column


def _has_gap(column: Column) -> bool:
    """Tell whether an element is None, without comparing elements: `==` of an array is an array."""
    return any(value is None for value in column)


def fill_from_metadata(found: Candidates, metas: Column) -> None:
    """Take from the metadata what the elements themselves did not say."""
    if not _are_mappings(metas):
        metas = [meta if isinstance(meta, Mapping) else {} for meta in metas]
    names: Any = _META_FIELDS & set().union(*metas)
    if not names:
        return
    for field, options in EXTRA_NAMES.items():
        present = [n for n in options if n in names]
        if present:
            _merge(found.extras, field, _coalesce(metas, present, _key_column) or [])
    found.ids = _filled(found.ids, metas, [n for n in ID_NAMES if n in names])
    found.scores = _filled(found.scores, metas, [n for n in SCORE_NAMES if n in names])
    found.texts = _filled(found.texts, metas, [n for n in TEXT_NAMES if n in names])


def _filled(column: Column, metas: Column, names: list[str]) -> Column:
    if not names or not _has_gap(column):
        return column
    other = _coalesce(metas, names, _key_column) or column
    return [b if a is None else a for a, b in zip(column, other, strict=True)]


def _merge(extras: dict[str, Column], field: str, column: Column) -> None:
    old = extras.get(field)
    if old is None:
        extras[field] = column
    else:
        extras[field] = [b if a is None else a for a, b in zip(old, column, strict=True)]


def _fill_from_inner(found: Candidates, items: Column, plan: Plan, get: Get, depth: int) -> None:
    """Read the object inside, as in ``NodeWithScore(node, score)``; the outer score wins."""
    for name in plan.inner:
        inner = get(items, name)
        if all(value is None or isinstance(value, str) for value in inner):
            continue
        below = read_uniform(inner, type(inner[0]), depth + 1)
        if below is None:
            continue
        for field in ("ids", "scores", "texts"):
            ours = getattr(found, field)
            if field == "texts":
                ours = [value if isinstance(value, str) else None for value in ours]
            theirs = getattr(below, field)
            merged = [b if a is None else a for a, b in zip(ours, theirs, strict=True)]
            setattr(found, field, merged)
        for field, column in below.extras.items():
            _merge(found.extras, field, column)
        return
