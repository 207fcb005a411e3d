"""Reading: what the files of several libraries read alike: usage, filters, who asks.

Pipeline: library's own call -> [reading] -> calls
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ragotel import attributes as at
from ragotel.candidates import read
from ragotel.columns import Candidates
from ragotel.spec import WHO_PARAMETERS


def reply_of(
    *,
    model: Any = None,
    input_tokens: Any = None,
    output_tokens: Any = None,
    finish_reason: Any = None,
) -> dict[str, Any]:
    """Put what a model's reply says under the attributes' keys; what it does not say is left out.

    *finish_reason* may be a list, one for each choice; *input_tokens* counts cached ones too.
    """
    found: dict[str, Any] = {}
    if isinstance(model, str) and model:
        found[at.REQUEST_MODEL] = model
    for key, value in ((at.INPUT_TOKENS, input_tokens), (at.OUTPUT_TOKENS, output_tokens)):
        if isinstance(value, int) and not isinstance(value, bool):
            found[key] = value
    reasons = finish_reason if isinstance(finish_reason, (list, tuple)) else [finish_reason]
    named = [str(getattr(one, "value", one)) for one in reasons if one]
    if named:
        found[at.FINISH_REASONS] = named
    return found


def columns(
    ids: Iterable[Any],
    scores: Iterable[Any] | None = None,
    texts: Iterable[Any] | None = None,
    *,
    source: Any = None,
    higher_is_better: bool | None = None,
    **extras: Iterable[Any],
) -> Candidates:
    """Build a list of candidates; *source* is the service's own list, if it is one."""
    known = list(ids)
    nothing: list[Any] = [None] * len(known)
    found = Candidates(
        known,
        nothing if scores is None else list(scores),
        nothing if texts is None else list(texts),
    )
    for name, column in extras.items():
        values = list(column)
        if any(value is not None for value in values):
            found.extras[name] = values
    found.higher_is_better = higher_is_better
    if isinstance(source, list):
        found.source, found.items = source, source[:]
    return found


def read_with(value: Any, higher_is_better: bool | None = None) -> Candidates | None:
    """Read a list by the names of its elements' fields, and say which direction its scores have."""
    found = read(value)
    if found is not None:
        found.higher_is_better = higher_is_better
    return found


def direction_of(scores: Sequence[Any]) -> bool | None:
    """Tell from a list that is best first whether higher scores are better; None: not told."""
    known = [float(score) for score in scores if score is not None]
    if len(known) < 2 or known[0] == known[-1]:
        return None
    return known[0] > known[-1]


class Positions(Candidates):
    """A list whose ids are places in an index, as a library without documents returns them."""


def positions(ids: Iterable[Any], scores: Iterable[Any] | None = None) -> Positions:
    """Build a list of places in an index."""
    known = list(ids)
    return Positions(
        known, [None] * len(known) if scores is None else list(scores), [None] * len(known)
    )


MAX_QUERIES = 16
"""A call with more queries than this is a batch job, not a search of a request."""


def interleave(lists: Sequence[Candidates | None]) -> Candidates | None:
    """Join the lists of one call's several queries: each candidate once, at its best rank."""
    known = [one for one in lists if one is not None]
    if len(known) < 2:
        return known[0] if known else None
    places = [
        (rank, one) for rank in range(max(map(len, known))) for one in known if rank < len(one)
    ]
    seen: set[Any] = set()
    kept = []
    for rank, one in places:
        key = one.ids[rank] if one.ids[rank] is not None else one.texts[rank]
        if key is None or str(key) not in seen:
            seen.add(str(key))
            kept.append((rank, one))
    whole = type(known[0])(
        [one.ids[rank] for rank, one in kept],
        [one.scores[rank] for rank, one in kept],
        [one.texts[rank] for rank, one in kept],
    )
    for name in set().union(*(one.extras for one in known)):
        whole.extras[name] = [
            one.extras[name][rank] if name in one.extras else None for rank, one in kept
        ]
    whole.higher_is_better = known[0].higher_is_better
    return whole


def texts_of(messages: Any) -> Any:
    """The texts of chat messages whose content is a property; anything else as it is."""
    if isinstance(messages, (list, tuple)):
        return [
            text
            for one in messages
            if isinstance(text := getattr(one, "content", None) or getattr(one, "text", None), str)
        ]
    return messages


def filter_of(condition: Any) -> Any:
    """What restricted a search, as far as it can be shown: no callables."""
    if condition is None or condition == {} or callable(condition):
        return None
    if hasattr(condition, "model_dump"):
        return condition.model_dump(mode="json", exclude_none=True)
    if isinstance(condition, (str, Mapping, list, tuple)):
        return condition
    return str(condition)


def first_text_of(value: Any, names: tuple[str, ...]) -> str | None:
    """The first of *names* that the object has as a text."""
    for name in names:
        found = getattr(value, name, None)
        if isinstance(found, str) and found:
            return found
    return None


def who_in(around: Any) -> dict[str, Any]:
    """Find user, session and tenant in what a framework passes along with a call."""
    if not isinstance(around, Mapping):
        return {}
    found = {}
    for key, names in WHO_PARAMETERS.items():
        for name in names:
            if isinstance(value := around.get(name), (str, int)) and key != at.TAGS:
                found[key] = value
                break
    return found
