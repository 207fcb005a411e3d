"""Results: what a stage returned, read by its kind on the service's thread, as little as will do.

Pipeline: decorators -> recorder -> [results] -> encoding
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ragotel import attributes as at
from ragotel import faults
from ragotel.answers import read_reply, text_of_answer
from ragotel.arguments import Args, Kwargs
from ragotel.candidates import read
from ragotel.columns import Candidates
from ragotel.prompts import text_of_prompt, used_in
from ragotel.record import Stage
from ragotel.spec import ASSEMBLE, GENERATE, INGEST, NOTHING, RANKINGS, REQUEST, RETRIEVE

_INGEST_NAMES = {
    "docs_listed": at.DOCS_LISTED,
    "docs_parsed": at.DOCS_PARSED,
    "docs_empty": at.DOCS_EMPTY,
    "mean_chars_per_doc": at.MEAN_CHARS_PER_DOC,
    "chunks_written": at.CHUNKS_WRITTEN,
    "chunks_deleted": at.CHUNKS_DELETED,
    "index_version": at.INDEX_VERSION,
    "parent_version": at.PARENT_VERSION,
    "chunker": at.CHUNKER,
}


def look_at_arguments(stage: Stage, args: Args, kwargs: Kwargs) -> None:
    """Keep what the arguments of a generation say: model and temperature."""
    parameters = stage.spec.parameters
    for name, key in (("temperature", at.TEMPERATURE), ("model", at.REQUEST_MODEL)):
        if name in kwargs or name in parameters.positions:
            value = parameters.value(name, args, kwargs)
            if value is not NOTHING and isinstance(value, (str, int, float)):
                stage.put(key, value)


def look_at_result(stage: Stage, result: Any) -> None:
    """Read *result* as the kind of stage has it."""
    READERS[stage.kind](stage, result)


def _look_at_list(stage: Stage, result: Any) -> None:
    if stage.output is None:
        take_candidates(stage, result)


def take_candidates(stage: Stage, result: Any) -> None:
    """Keep the list that a stage returned."""
    found = read(result, stage.spec.readers)
    if found is None:
        return
    inputs = stage.inputs
    if inputs:
        before = inputs[0]
        # Texts that an earlier list holds take no further memory.
        found.shared_texts = (
            bool(found.texts and before.texts and type(found.texts[0]) is str)
            and found.texts[0] in before.texts
        )
        if found.ids and found.ids[0] is None:
            _name_by_index(found, inputs, result)
    stage.faults += found.faults
    stage.output = found


def _name_by_index(found: Candidates, inputs: list[Candidates], result: Any) -> None:
    """Name the results of a reranker that answers with positions in the list it was given."""
    if len(inputs) != 1 or any(value is not None for value in found.ids):
        return
    if any(text is not None for text in found.texts):
        return
    before = inputs[0]
    positions = [_index_of(item) for item in found.items]
    if len(positions) != len(found) or not all(
        position is not None and 0 <= position < len(before) for position in positions
    ):
        return
    found.ids = [before.ids[p] for p in positions if p is not None]
    found.texts = [before.texts[p] for p in positions if p is not None]


def _index_of(item: Any) -> int | None:
    value = item.get("index") if isinstance(item, Mapping) else getattr(item, "index", None)
    return value if type(value) is int else None


def _look_at_prompt(stage: Stage, result: Any) -> None:
    if stage.prompt is None:
        stage.prompt = text_of_prompt(result)
    count = stage.spec.options.get("tokens")
    if callable(count):
        try:
            stage.put(at.PROMPT_TOKENS, count(result))
        except Exception:
            stage.faults += 1
            faults.note("ask for the prompt's tokens")
    if stage.sent is None:
        used = used_in(stage.spec, result)
        if used is not None:
            stage.sent = read(used, stage.spec.readers)


def _look_at_reply(stage: Stage, result: Any) -> None:
    if stage.answer is None and stage.parts is None:
        # Not sent: it tells whether this call gave the request's answer.
        stage.answer = text_of_answer(result)
    if isinstance(result, str):
        return
    if stage.reply is None:
        stage.reply = read_reply(result)


def _look_at_answer(stage: Stage, result: Any) -> None:
    if stage.answer is None and stage.parts is None:
        if type(result) is tuple:
            # Services return the request's id beside the answer, so that a complaint can name it.
            own = stage.trace.request_id
            result = tuple(one for one in result if not (isinstance(one, str) and one == own))
        stage.answer = text_of_answer(result)


def _look_at_ingest(stage: Stage, result: Any) -> None:
    for name, key in _INGEST_NAMES.items():
        value = _part(result, name)
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            stage.put(key, value)
    chunks = _part(result, "chunks")
    listed = chunks if chunks is not None else result
    if stage.output is None and isinstance(listed, (list, tuple)):
        take_candidates(stage, listed)


def _part(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name)
    return None if isinstance(value, (list, tuple)) else getattr(value, name, None)


READERS: dict[str, Callable[[Stage, Any], None]] = {
    REQUEST: _look_at_answer,
    RETRIEVE: _look_at_list,
    ASSEMBLE: _look_at_prompt,
    GENERATE: _look_at_reply,
    INGEST: _look_at_ingest,
    **dict.fromkeys(RANKINGS, _look_at_list),
}


def text_bytes(stage: Stage) -> int:
    """Estimate what a stage's texts take, for the queue's limit."""
    size = 0
    for text in (stage.prompt, stage.answer, stage.query):
        if type(text) is str:
            size += len(text)
    if stage.parts:
        size += sum(len(part) for part in stage.parts if isinstance(part, str))
    return size
