"""Parity: a traced call proves itself equal to the untraced one, question by question.

Pipeline: questions -> [triage] -> rehearsal (the user's function, twice) -> cli. Nothing of it is
recorded as a request.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from ragotel.errors import InputError, NotFoundError
from ragotel.rehearsal import Rehearsal
from ragotel.store import Store
from ragotel.triage.lines import Progress, no_progress

MOST_SHOWN = 5
"""Differences that are told of one question."""
_DEEPEST = 30


@dataclass(frozen=True)
class Difference:
    """A question whose results differ: where, and both values there."""

    question: str
    places: list[str]


@dataclass
class Parity:
    """N of N: *equal* of *asked*; *unstable* questions differ from themselves without tracing."""

    asked: int = 0
    equal: int = 0
    second_attempts: int = 0
    stages: int = 0
    different: list[Difference] = field(default_factory=list)
    unstable: list[Difference] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        return self.equal == self.asked and self.stages > 0


@dataclass(frozen=True)
class _Raised:
    """What a call raised, in place of a result."""

    kind: str
    message: str


def prove(
    rehearsal: Rehearsal,
    target: str,
    questions: Iterable[str],
    *,
    attempts: int = 2,
    progress: Progress = no_progress,
) -> Parity:
    """Call *target* (`module:function`, the question alone) traced and untraced, and compare.

    A question whose results differ is asked again, up to *attempts* times. If they still differ,
    the untraced function is held against itself: where it differs too, it proves nothing.

    Raises:
        InputError: There is no such function, or it does not take one question.
    """
    traced = rehearsal.load(target)
    untraced = _untraced(traced)
    _check_takes_one(untraced, target)
    found = Parity()
    for question in questions:
        found.asked += 1
        _ask(rehearsal, traced, untraced, question, attempts, found)
        progress(found.asked)
    return found


def _ask(
    rehearsal: Rehearsal,
    traced: Callable[..., Any],
    untraced: Callable[..., Any],
    question: str,
    attempts: int,
    found: Parity,
) -> None:
    places: list[str] = []
    for attempt in range(attempts):
        plain = _result(rehearsal.call_untraced, untraced, question)
        recorded = _result(rehearsal.call, traced, question)
        found.stages += rehearsal.stage_count
        places = list(differences(plain, recorded))
        if not places:
            found.equal += 1
            found.second_attempts += attempt > 0
            return
    again = _result(rehearsal.call_untraced, untraced, question)
    is_unstable = any(differences(plain, again))
    (found.unstable if is_unstable else found.different).append(Difference(question, places))


def _result(call: Callable[..., Any], function: Callable[..., Any], question: str) -> Any:
    try:
        return call(function, question)
    except Exception as error:
        return _Raised(type(error).__name__, str(error))


def _untraced(traced: Callable[..., Any]) -> Callable[..., Any]:
    """The function below our decorators; methods stay bound, other decorators stay on."""
    function: Any = traced.__func__ if inspect.ismethod(traced) else traced
    while getattr(function, "__ragotel__", False) and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    if inspect.ismethod(traced):
        function = function.__get__(traced.__self__)
    plain: Callable[..., Any] = function
    return plain


def _check_takes_one(function: Callable[..., Any], target: str) -> None:
    try:
        inspect.signature(function).bind("question")
    except TypeError as error:
        raise InputError(
            f"{target!r} cannot be called with a question alone ({error}): "
            "name a function that can."
        ) from error
    except ValueError:
        return


def differences(plain: Any, traced: Any) -> Iterator[str]:
    """Where two results differ, as `[3].score: 0.5 untraced, 0.4 traced`; at most a few."""
    for count, place in enumerate(_differences(plain, traced, "", 0)):
        if count == MOST_SHOWN:
            yield "..."
            return
        yield place


def _differences(a: Any, b: Any, path: str, depth: int) -> Iterator[str]:
    if a is b or depth > _DEEPEST:
        return
    if type(a) is not type(b):
        yield _told(path, f"a {type(a).__name__} {_shown(a)}", f"a {type(b).__name__} {_shown(b)}")
    elif isinstance(a, float):
        if a != b and not (math.isnan(a) and math.isnan(b)):
            yield _told(path, _shown(a), _shown(b))
    elif isinstance(a, str | bytes | int | complex | type(None) | Set):
        if a != b:
            yield _told(path, _shown(a), _shown(b))
    elif isinstance(a, Mapping):
        yield from _of_mappings(a, b, path, depth)
    elif isinstance(a, Sequence):
        yield from _of_sequences(a, b, path, depth)
    else:
        yield from _of_objects(a, b, path, depth)


def _of_mappings(
    a: Mapping[Any, Any], b: Mapping[Any, Any], path: str, depth: int
) -> Iterator[str]:
    for key in [*a, *(key for key in b if key not in a)]:
        place = f"{path}[{key!r}]"
        if key not in a or key not in b:
            has = ("there", "missing") if key in a else ("missing", "there")
            yield _told(place, *has)
        else:
            yield from _differences(a[key], b[key], place, depth + 1)


def _of_sequences(a: Sequence[Any], b: Sequence[Any], path: str, depth: int) -> Iterator[str]:
    if len(a) != len(b):
        yield _told(path, f"{len(a)} entries", f"{len(b)} entries")
    for at, (one, other) in enumerate(zip(a, b, strict=False)):
        yield from _differences(one, other, f"{path}[{at}]", depth + 1)


def _of_objects(a: Any, b: Any, path: str, depth: int) -> Iterator[str]:
    """Arrays and frames by their values, plain objects by their fields, all others by `==`."""
    for name in ("to_dict", "tolist"):
        if callable(getattr(a, name, None)):
            yield from _differences(getattr(a, name)(), getattr(b, name)(), path, depth + 1)
            return
    if _are_equal(a, b):
        return
    fields = _fields(a), _fields(b)
    if fields[0] or fields[1]:
        for name in dict.fromkeys([*fields[0], *fields[1]]):
            one, other = fields[0].get(name), fields[1].get(name)
            yield from _differences(one, other, f"{path}.{name}", depth + 1)
    else:
        yield _told(path, _shown(a), _shown(b))


def _fields(value: Any) -> dict[str, Any]:
    named = dict(getattr(value, "__dict__", {}))
    slots: list[str] = []
    for kind in type(value).__mro__:
        told = kind.__dict__.get("__slots__", ())
        slots += [told] if isinstance(told, str) else list(told)
    return {**{name: getattr(value, name) for name in slots if hasattr(value, name)}, **named}


def _are_equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except Exception:
        return False


def _told(path: str, plain: str, traced: str) -> str:
    return f"{path or 'the result'}: {plain} untraced, {traced} traced"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"


def label_questions(store: Store, label_set: str) -> list[str]:
    """The distinct questions of a label set.

    Raises:
        NotFoundError: No label is of that set.
    """
    rows = store.query(
        "select question from rag_labels where label_set = {label_set:String}\n"
        "group by question order by min(label_id)",
        {"label_set": label_set},
    ).result_rows
    if not rows:
        raise NotFoundError(
            f"There is no label of the set {label_set!r}; `ragotel labels list` shows the sets."
        )
    return [row[0] for row in rows]


def read_questions(path: str) -> list[str]:
    """The questions of a file: one a line, or JSON objects with a `question`.

    Raises:
        InputError: It cannot be read, or holds no question.
    """
    try:
        with open(path, encoding="utf-8") as stream:
            lines = [line.strip() for line in stream if line.strip()]
    except OSError as error:
        raise InputError(f"The questions {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"The questions {path} are not UTF-8.") from error
    questions = []
    for number, line in enumerate(lines, 1):
        if not line.startswith("{"):
            questions.append(line)
            continue
        try:
            question = json.loads(line)["question"]
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}, line {number}: no JSON object with a question.") from error
        questions.append(str(question))
    if not questions:
        raise InputError(f"The file {path} holds no question.")
    return questions
