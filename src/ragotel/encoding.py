"""Encoding: finished stages become spans with scalar attributes; on the worker's thread.

Pipeline: recorder -> delivery's worker -> [encoding] -> OTLP
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ragotel import attributes as at
from ragotel import clock, faults
from ragotel.assembly import Attributes, assemble, describe_prompt
from ragotel.casting import put_value
from ragotel.chunks import ChunkBook
from ragotel.columns import Candidates
from ragotel.content import Content, failures
from ragotel.fields import to_id
from ragotel.inheriting import inherit_index
from ragotel.lists import (
    Dropped,
    Told,
    close_rows,
    distinct_keys,
    dropped_json,
    dump,
    list_json,
    scores_of,
    settle,
    shas_of,
)
from ragotel.messages import prompts_of, put_call, put_exchange
from ragotel.model import STATUS_ERROR, STATUS_UNSET, SpanData
from ragotel.pacing import Pace
from ragotel.privacy import ANSWER, CHUNKS, PROMPT, QUERY, Privacy, bounded
from ragotel.record import ERROR, Stage, Trace
from ragotel.settings import Settings
from ragotel.spec import (
    ASSEMBLE,
    FILTER,
    GENERATE,
    INGEST,
    KINDS,
    RANKINGS,
    REQUEST,
    RERANK,
    RETRIEVE,
)

_INFERRED = {"fuse": "limit", "rerank": "top_n", "blend": "limit"}
_MAX_LISTED = 1000
MODEL_CALL = "model_call"
"""The stage of a model's call that did not give the answer."""


class Encoder:
    """Turns the records of one process into spans; used by one thread at a time."""

    def __init__(self, privacy: Privacy, max_candidates: int, tells_messages: bool = False) -> None:
        self.privacy = privacy
        self.content = Content(privacy)
        self.max_candidates = max_candidates
        self.chunks = ChunkBook()
        self._tells_messages = tells_messages
        self._prompts: dict[Stage, str] = {}
        self._by_kind = dict.fromkeys(KINDS, ("list", self._put_list))
        self._by_kind[ASSEMBLE] = ("prompt", self._put_prompt)
        self._by_kind[GENERATE] = ("reply", self._put_reply)
        self._by_kind[REQUEST] = ("question and answer", self._put_request)

    @classmethod
    def from_settings(cls, settings: Settings) -> Encoder:
        privacy = Privacy(
            settings.content_mode, settings.max_text_chars, settings.content, settings.redact
        )
        return cls(privacy, settings.max_candidates, settings.gen_ai_messages)

    def encode_trace(self, trace: Trace) -> Iterator[SpanData]:
        """Encode what has ended, in the order of ending; each step is one span."""
        stages = []
        while trace.finished:
            try:
                stages.append(trace.finished.popleft())
            except IndexError:
                break
        self._withhold(trace, stages)
        _set_aside(trace, stages)
        self._prompts = prompts_of(stages) if self._tells_messages else {}
        for stage in stages:
            yield self.encode_stage(stage)

    def _withhold(self, trace: Trace, stages: list[Stage]) -> None:
        """Learn which texts the user had no right to see, before any text is sent."""
        for stage in stages:
            try:
                if stage.kind == FILTER or stage.dropped:
                    trace.withheld |= self._forbidden(stage)
            except Exception:
                stage.faults += 1
                faults.note("withhold the texts of a permission filter")

    def _forbidden(self, stage: Stage) -> set[str]:
        lists = list(stage.inputs or ())
        if stage.output is not None:
            lists.append(stage.output)
        for found in lists:
            settle(found, self.chunks)
        reasons = {key: reason for key, reason, _ in self._dropped(stage)}
        return {
            self.chunks.sha(text)
            for found in lists
            for key, text in zip(found.keys or (), found.texts, strict=True)
            if text and reasons.get(key) == "permission"
        }

    def encode_stage(self, stage: Stage) -> SpanData:
        """Encode one stage; a part that fails is counted on the span and left out."""
        made: Attributes = dict(stage.spec.static)
        if stage.is_aside:
            made[at.STAGE] = MODEL_CALL
        made[at.STAGE_NAME] = bounded(stage.name or stage.spec.name)
        made[at.OUTCOME] = stage.outcome or "ok"
        request_id = stage.trace.request_id
        if request_id is not None:
            made[at.REQUEST_ID] = request_id
        if stage.is_late:
            made[at.LATE] = True
        if stage.error_type is not None:
            made[at.ERROR_TYPE] = bounded(stage.error_type, 200)
        for part, encode in (("values", self._put_values), self._by_kind[stage.kind]):
            try:
                encode(stage, made)
            except Exception:
                stage.faults += 1
                faults.note(f"encode the {part} of {stage.kind}")
        stage.faults += failures(made)
        if stage.faults:
            made[at.CAPTURE_ERRORS] = stage.faults
        return self._span(stage, made)

    def _span(self, stage: Stage, made: Attributes) -> SpanData:
        trace = stage.trace
        parent = stage.parent
        parent_id = span_id_of(parent) if parent is not None else trace.foreign_parent_id
        is_error = stage.outcome == ERROR
        return SpanData(
            trace_id=trace.trace_id,
            span_id=span_id_of(stage),
            parent_span_id=parent_id,
            name=_name(stage, made),
            kind=stage.spec.otlp_kind,
            start_ns=stage.start_ns + trace.offset_ns,
            end_ns=max(stage.end_ns, stage.start_ns) + trace.offset_ns,
            attributes=made,
            status_code=STATUS_ERROR if is_error else STATUS_UNSET,
            status_message=(stage.error_type or "") if is_error else "",
        )

    def _put_values(self, stage: Stage, made: Attributes) -> None:
        for source in (stage.values, stage.reply):
            for key, value in (source or {}).items():
                if source is not stage.reply or key not in made:
                    put_value(made, key, value)
        self.content.guard_values(made)
        if at.CITATIONS in made:
            self.content.guard_citations(made, lambda: _told(stage).ids())

    def _put_request(self, stage: Stage, made: Attributes) -> None:
        if isinstance(stage.query, str):
            self.content.put_text(made, at.QUERY, stage.query, QUERY)
        answer = _answer(stage)
        if answer is not None:
            self.content.put_text(made, at.ANSWER, answer, ANSWER)
            made[at.ANSWER_CHARS] = len(answer)
        if self._tells_messages:
            put_exchange(made)
        made.setdefault(at.CONTENT_MODE, self.privacy.mode(QUERY))

    def _put_list(self, stage: Stage, made: Attributes) -> None:
        if stage.kind == RETRIEVE and isinstance(stage.query, str):
            self.content.put_text(made, at.RETRIEVAL_QUERY, stage.query, QUERY)
        if stage.kind == RETRIEVE:
            inherit_index(stage, made)
        made.setdefault(at.CONTENT_MODE, self.privacy.mode(CHUNKS))
        inputs, entered = stage.inputs or [], None
        for found in inputs:
            settle(found, self.chunks)
        if stage.inputs is not None:
            entered = distinct_keys(inputs)
            made[at.IN_COUNT] = len(entered) + sum(found.unread for found in inputs)
        output = stage.output
        if output is not None:
            settle(output, self.chunks, inputs)
            told = _told(stage)
            is_known = stage.kind != INGEST and told.recall(output)
            shas = None if is_known else self._shas_to_tell(stage, output, told)
            key = at.DOCUMENTS if stage.kind == RETRIEVE else at.CANDIDATES
            made[key] = list_json(output, shas, self.max_candidates)
            made[at.COUNT] = len(output) + output.unread
            if output.higher_is_better is not None:
                made.setdefault(at.HIGHER_IS_BETTER, output.higher_is_better)
            if is_known:
                told.add(output)
            else:
                self._put_chunks(stage, made, output)
        dropped = self._dropped(stage, entered)
        if dropped:
            made[at.DROPPED] = dropped_json(dropped[:_MAX_LISTED])
        if stage.kind == RERANK and output is not None and inputs:
            is_same = _is_identity(inputs, output)
            made[at.RERANK_EFFECT] = "identity" if is_same else "reordered"

    def _shas_to_tell(self, stage: Stage, found: Candidates, told: Told) -> list[str | None] | None:
        shas = shas_of(found, self.chunks)
        # An ingest run makes a manifest by itself.
        return shas if stage.kind == INGEST else told.unsaid(found, self.max_candidates)

    def _put_chunks(self, stage: Stage, made: Attributes, found: Candidates) -> None:
        """Send the texts that this process had not sent before."""
        told = _told(stage)
        if self.privacy.keeps_text(CHUNKS) and not told.has(found):
            shas = shas_of(found, self.chunks)
            may_leave = self.content.chunk_filter(made)
            new = self.chunks.take_new(shas, found.texts, stage.trace.withheld, may_leave)
            if new:
                made[at.CHUNKS] = dump(new)
            told.is_certain = told.is_certain and not self.chunks.has_more
            told.add(found)

    def _put_prompt(self, stage: Stage, made: Attributes) -> None:
        inputs = stage.inputs or []
        asked = stage.trace.root.query if stage.trace.root is not None else None
        query = asked if isinstance(asked, str) else None
        assembled = assemble(stage, self.chunks, Pace(), query)
        made.update(describe_prompt(stage, assembled, query))
        if inputs:
            made[at.IN_COUNT] = assembled.in_count
        if assembled.rows is not None:
            made[at.CANDIDATES] = close_rows(assembled.rows[: self.max_candidates])
            made[at.COUNT] = len(assembled.rows)
        dropped = _told_first(stage, assembled.dropped)
        if dropped:
            made[at.DROPPED] = dropped_json(dropped[:_MAX_LISTED])
        for found in inputs:
            if at.CHUNKS not in made:
                self._put_chunks(stage, made, found)
        if stage.prompt is not None:
            # Last: the ids then stand near those of the lists before, which is what gzip looks for.
            self.content.put_text(made, at.PROMPT_TEXT, stage.prompt, PROMPT)
        made.setdefault(at.CONTENT_MODE, self.privacy.mode(PROMPT))

    def _put_reply(self, stage: Stage, made: Attributes) -> None:
        if stage.first_chunk_ns:
            made[at.TIME_TO_FIRST_TOKEN] = (stage.first_chunk_ns - stage.start_ns) / 1e6
        if self._tells_messages:
            put_call(made, self.content, self._prompts.get(stage), _answer(stage))

    def _dropped(self, stage: Stage, entered: Sequence[str | None] | None = None) -> list[Dropped]:
        """Name what went in and not out; what the service said itself comes first."""
        inferred: list[Dropped] = []
        if stage.kind in RANKINGS and stage.output is not None and stage.inputs:
            reason = _INFERRED.get(stage.kind) or stage.spec.options.get("reason") or "other"
            keys = distinct_keys(stage.inputs) if entered is None else entered
            gone = set(keys).difference(stage.output.keys or ())
            gone.discard(None)
            if gone:
                inferred = [(key, str(reason), True) for key in keys if key in gone]
        return _told_first(stage, inferred)


def _told(stage: Stage) -> Told:
    """Give the memory of the stage's request; only the worker asks."""
    trace = stage.trace
    if trace.told is None:
        trace.told = Told()
    return trace.told


def _told_first(stage: Stage, inferred: list[Dropped]) -> list[Dropped]:
    if not stage.dropped:
        return inferred
    told: list[Dropped] = []
    for value, reason in stage.dropped:
        key = to_id(value)
        told.append((None if key is None else bounded(key), bounded(str(reason), 64), False))
    named = {key for key, _, _ in told}
    return told + [entry for entry in inferred if entry[0] not in named]


def _is_identity(inputs: list[Candidates], output: Candidates) -> bool:
    """Tell a reranker that only passed its input through: same order, same scores."""
    if len(inputs) != 1:
        return False
    before = inputs[0]
    if list(before.keys or ()) != list(output.keys or ()):
        return False
    scores = scores_of(output)
    # Frameworks keep no scores beside documents: without any, the order alone tells.
    return scores == scores_of(before) or all(score is None for score in scores)


def _answer(stage: Stage) -> str | None:
    if stage.answer is not None:
        return stage.answer
    if stage.parts is None:
        return None
    texts = [part for part in stage.parts if isinstance(part, str)]
    return "".join(texts) if texts or not stage.parts else None


def _set_aside(trace: Trace, stages: list[Stage]) -> None:
    """Mark calls of a model that came after the one that gave the answer: a judge, a title.

    Else the last of them would be taken for the generation, and its prompt for the prompt.
    """
    calls = [stage for stage in stages if stage.kind == GENERATE]
    if len(calls) < 2 or trace.root is None:
        return
    try:
        answer = (_answer(trace.root) or "").strip()
        shared = [_shared_chars((_answer(call) or "").strip(), answer) for call in calls]
        gave = [call for call, chars in zip(calls, shared, strict=True) if 2 * chars >= max(shared)]
        if not max(shared):
            return
        last_ns = max(call.start_ns for call in gave)
        for call in calls:
            call.is_aside = call not in gave and call.start_ns > last_ns and bool(_answer(call))
    except Exception:
        trace.root.faults += 1
        faults.note("tell the generation of the answer from other calls")


def _shared_chars(reply: str, answer: str) -> int:
    """How much of an answer a model's reply gave: one of them holds the other, else 0."""
    if reply in answer or answer in reply:
        return min(len(reply), len(answer))
    return 0


def _name(stage: Stage, made: Attributes) -> str:
    if stage.kind == RETRIEVE:
        return f"retrieval {made.get(at.DATA_SOURCE, '')}".strip()
    if stage.kind == GENERATE:
        return f"chat {made.get(at.REQUEST_MODEL, '')}".strip()
    return f"rag.{stage.kind}"


def span_id_of(stage: Stage) -> int:
    """Give the stage its id when it is first asked for; only the worker asks."""
    if not stage.span_id:
        stage.span_id = clock.new_id(64)
    return stage.span_id
