"""Nesting: a decorator, a framework and a client that do one step give one stage, not three.

Pipeline: calls -> [nesting] -> recorder

The outermost stage stays; each inner one of the same kind hands it, at its end, what it alone
knows: ids, scores and their kind, texts, index, usage. Where inner calls are several searches, they
are legs and stay stages of their own inside of the outer one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ragotel import attributes as at
from ragotel import faults, running
from ragotel.candidates import read
from ragotel.columns import Candidates
from ragotel.fields import to_id, to_score
from ragotel.instrument.reading import Positions
from ragotel.record import OK, Stage
from ragotel.spec import ASSEMBLE, BLEND, FILTER, GENERATE, RERANK, RETRIEVE, Spec
from ragotel.text import chunk_sha

_OF_SCORES = (at.SCORE_KIND, at.HIGHER_IS_BETTER)
_MAX_ANCESTORS = 64


def running_stage() -> Stage | None:
    """The stage that runs here; None outside of any, and where its request has ended."""
    stage = running.current.get()
    return None if stage is None or stage.trace.is_closed else stage


def is_inside(stage: Stage | None, kinds: Iterable[str]) -> bool:
    """Whether *stage* or one around it is of one of *kinds*."""
    for _ in range(_MAX_ANCESTORS):
        if stage is None:
            return False
        if stage.kind in kinds:
            return True
        stage = stage.parent
    return False


def is_same_step(outer: str, inner: str) -> bool:
    """Whether a call of kind *inner* directly inside of a stage of kind *outer* is that stage."""
    return outer == inner or (outer in (BLEND, FILTER) and inner == RERANK)


def is_ranked_again(stage: Stage) -> bool:
    """Whether a reranker gets the list of an earlier one: by name, that is a blend."""
    if stage.on_close is not None:
        return False
    ranked = [one.output for one in stage.trace.finished if one.kind in (RERANK, BLEND)]
    return any(found is one for found in stage.inputs or () for one in ranked)


def open_nested(spec: Spec, parent: Stage) -> Stage:
    """Begin the record of a step that *parent* is already the stage of."""
    stage = Stage(spec, parent.trace, parent)
    stage.on_close = _hand_over
    if parent.nested is None:
        parent.nested = []
        if parent.on_close is None:
            parent.on_close = _take_in
    parent.nested.append(stage)
    return stage


def _hand_over(stage: Stage, outcome: str) -> bool:
    """Leave the record to the stage around, unless that has ended before."""
    _take_in(stage, outcome)
    parent = stage.parent
    if parent is None or parent.outcome is not None or parent.trace.is_closed:
        return False
    stage.outcome = outcome
    return True


def _take_in(stage: Stage, outcome: str) -> bool:
    """Merge into *stage* what ran inside; True if a stream still runs that is to stand for it."""
    nested, stage.nested = stage.nested, None
    if not nested:
        return False
    try:
        streaming = [one for one in nested if one.outcome is None and one.kind == GENERATE]
        if streaming and outcome == OK and stage.reply is None and stage.first_chunk_ns == 0:
            _promote(streaming[-1], stage)
            return stage.on_close is _take_in
        _merge_all(stage, [one for one in nested if one.outcome is not None], outcome)
    except Exception:
        stage.faults += 1
        faults.note(f"merge what ran inside of {stage.kind}")
    return False


def _promote(inner: Stage, outer: Stage) -> None:
    """Let a stream that outlives its function stand for it: usage comes with its last chunk."""
    inner.on_close = None if outer.on_close is _take_in else outer.on_close
    inner.parent, inner.start_ns = outer.parent, outer.start_ns
    inner.name = outer.name or outer.spec.name
    _fill_values(inner, {**outer.spec.static, **(outer.values or {})}, is_stronger=True)
    outer.outcome = OK
    if outer.trace.root is outer:
        outer.trace.root = inner


def _merge_all(outer: Stage, nested: list[Stage], outcome: str) -> None:
    if outer.kind in (GENERATE, ASSEMBLE):
        # Of several prompts inside of one none is the whole one's template.
        if outer.kind == GENERATE or len(nested) == 1:
            _merge_replies(outer, nested)
        return
    good = [one for one in nested if one.outcome == OK and one.output is not None]
    named = [one for one in good if not isinstance(one.output, Positions)]
    if len(good) > 1 and outer.output is not None:
        # Places in several indexes that the outer list has long translated.
        good = named
    if len(good) == 1:
        _merge_list(outer, good[0])
        # A leg that failed beside the one that did not is a fact of its own.
        _release([one for one in nested if one is not good[0] and one.outcome != OK])
    elif outer.kind in (RERANK, BLEND, FILTER) and good:
        _merge_batches(outer, good)
    elif len(nested) == 1 and outcome != OK:
        _fill_values(outer, nested[0].values or {})
    else:
        _release(nested)


def _release(stages: list[Stage]) -> None:
    """Record inner stages as they are; their lists are not handed on by themselves."""
    for stage in stages:
        stage.trace.finished.append(stage)


def _merge_replies(outer: Stage, nested: list[Stage]) -> None:
    """Take usage and finish reasons; several calls in one, as an agent makes, add up."""
    told: dict[str, Any] = {}
    for inner in nested:
        _fill_values(outer, inner.values or {})
        reply = inner.reply or {}
        for key in (at.INPUT_TOKENS, at.OUTPUT_TOKENS):
            if key in reply and key in told:
                reply = {**reply, key: reply[key] + told[key]}
        told.update(reply)
        if inner.first_chunk_ns and not outer.first_chunk_ns:
            outer.first_chunk_ns = inner.first_chunk_ns
        if outer.prompt is None:
            outer.prompt = inner.prompt
    if told:
        outer.reply = {**told, **(outer.reply or {})}


def _fill_values(
    stage: Stage, values: Mapping[str, Any], *, is_stronger: bool = False, but: Any = ()
) -> None:
    known = {} if is_stronger else {**stage.spec.static, **(stage.values or {})}
    for key, value in values.items():
        if key not in known and key not in but:
            stage.put(key, value)


def _merge_list(outer: Stage, inner: Stage) -> None:
    theirs, values = inner.output, inner.values or {}
    if theirs is None:
        return
    if outer.query is None:
        outer.query = inner.query
    if outer.inputs is None or (not outer.inputs and inner.inputs):
        outer.inputs = inner.inputs
    ours = outer.output
    if ours is None:
        outer.output = theirs
        _fill_values(outer, values)
        return
    if isinstance(theirs, Positions):
        _merge_positions(outer, ours, theirs, values)
        return
    places = _places(ours, theirs)
    if len(theirs) and all(place is None for place in places):
        # Other documents than those found inside, such as the parents of small chunks.
        _release([inner])
        return
    took_scores = _fill_list(ours, theirs, places)
    _fill_values(outer, values, but=() if took_scores else _OF_SCORES)


def _merge_positions(
    outer: Stage, ours: Candidates, theirs: Positions, values: Mapping[str, Any]
) -> None:
    """Places in an index name nothing; their scores tell whether it is the same list."""
    is_same = len(ours) == len(theirs) and any(score is not None for score in ours.scores)
    if is_same and list(map(to_score, ours.scores)) == list(map(to_score, theirs.scores)):
        _fill_values(outer, values)
        if ours.higher_is_better is None:
            ours.higher_is_better = theirs.higher_is_better


def _merge_batches(outer: Stage, good: list[Stage]) -> None:
    """A reranker that is asked in batches gives the scores of one list."""
    if outer.output is None:
        _release(good)
        return
    whole = Candidates([], [], [])
    for inner in good:
        if inner.output is not None:
            whole.ids = whole.ids + inner.output.ids
            whole.scores = whole.scores + inner.output.scores
            whole.texts = whole.texts + inner.output.texts
    took_scores = _fill_list(outer.output, whole, _places(outer.output, whole))
    _fill_values(outer, good[0].values or {}, but=() if took_scores else _OF_SCORES)


def _fill_list(ours: Candidates, theirs: Candidates, places: list[int | None]) -> bool:
    """Take from *theirs* what *ours* lacks; tell whether their kind of score holds for ours."""

    def filled(mine: list[Any], other: list[Any]) -> list[Any]:
        return [
            other[place] if value is None and place is not None else value
            for value, place in zip(mine, places, strict=True)
        ]

    ours.ids, ours.texts = filled(ours.ids, theirs.ids), filled(ours.texts, theirs.texts)
    for name, column in theirs.extras.items():
        if len(column) == len(theirs):
            ours.extras[name] = filled(ours.extras.get(name) or [None] * len(ours), column)
    if all(score is None for score in ours.scores):
        ours.scores = filled(ours.scores, theirs.scores)
    elif any(
        place is not None and to_score(score) != to_score(theirs.scores[place])
        for score, place in zip(ours.scores, places, strict=True)
    ):
        return False
    if ours.higher_is_better is None:
        ours.higher_is_better = theirs.higher_is_better
    return any(score is not None for score in ours.scores)


def _places(ours: Candidates, theirs: Candidates) -> list[int | None]:
    """Where each of ours stands in theirs: by id, else by text, else by the text's hash."""
    by_id = _first_places([to_id(value) for value in theirs.ids])
    by_text = _first_places(theirs.texts)
    places = [
        by_id.get(to_id(value), by_text.get(text) if isinstance(text, str) else None)
        for value, text in zip(ours.ids, ours.texts, strict=True)
    ]
    if None in places and any(theirs.texts):
        by_sha = _first_places([_sha(text) for text in theirs.texts])
        places = [
            by_sha.get(_sha(text)) if place is None else place
            for place, text in zip(places, ours.texts, strict=True)
        ]
    return places


def _first_places(column: list[Any]) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for place, value in enumerate(column):
        if value is not None and isinstance(value, str):
            found.setdefault(value, place)
    return found


def _sha(text: Any) -> str | None:
    return chunk_sha(text) if isinstance(text, str) and text else None


def name_inputs(stage: Stage, value: Any) -> None:
    """Read what goes into a ranking, and name by their texts those that came without an id.

    A text that several candidates of the request share names none of them.
    """
    found = stage.inputs or []
    if not found and (one := read(value)) is not None and len(one):
        found = stage.inputs = [one]
    lacking = [one for one in found if any(i is None for i in one.ids) and any(one.texts)]
    if not lacking:
        return
    known = _known_texts(stage)
    for one in lacking:
        _name_by_text(one, known)


def name_rebuilt(output: Candidates, inputs: list[Candidates]) -> None:
    """Give rebuilt documents, which lost their ids, those of what went in with the same text."""
    if all(value is not None for value in output.ids) or not any(output.texts):
        return
    known: dict[Any, set[Any]] = {}
    for one in inputs:
        _collect(known, one)
    _name_by_text(output, known)


def _name_by_text(found: Candidates, known: dict[Any, set[Any]]) -> None:
    ids = list(found.ids)
    for rank, (value, text) in enumerate(zip(ids, found.texts, strict=True)):
        if value is None and isinstance(text, str):
            named = known.get(text) or known.get(_sha(text)) or ()
            if len(named) == 1:
                ids[rank] = next(iter(named))
    found.ids = ids


def _known_texts(stage: Stage) -> dict[Any, set[Any]]:
    known: dict[Any, set[Any]] = {}
    for one in list(stage.trace.finished):
        if one.output is not None and one is not stage:
            _collect(known, one.output)
    around = stage.parent
    for _ in range(_MAX_ANCESTORS):
        if around is None:
            break
        for one in around.nested or ():
            if one.output is not None and one is not stage and one.kind == RETRIEVE:
                _collect(known, one.output)
        around = around.parent
    return known


def _collect(known: dict[Any, set[Any]], found: Candidates) -> None:
    for value, text in zip(found.ids, found.texts, strict=True):
        if value is not None and isinstance(text, str) and text:
            known.setdefault(text, set()).add(value)
            sha = _sha(text)
            if sha != text:
                known.setdefault(sha, set()).add(value)
