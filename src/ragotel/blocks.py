"""Blocks: `with ragotel.stage(...)` and `with ragotel.context(...)`, sync and async.

Pipeline: call site -> [blocks] -> recorder
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import Token
from types import TracebackType
from typing import Any

from ragotel import attributes as at
from ragotel import faults
from ragotel import running as around
from ragotel.candidates import read
from ragotel.errors import ConfigurationError
from ragotel.prompts import text_of_prompt
from ragotel.record import OK, Stage
from ragotel.recorder import close_stage, fail_stage, open_stage
from ragotel.results import look_at_result, take_candidates
from ragotel.spec import KINDS, REQUEST, Spec

_AMBIENT = {
    "user_id": at.USER_ID,
    "session_id": at.CONVERSATION_ID,
    "tenant": at.TENANT,
    "principal": at.PRINCIPAL,
    "tags": at.TAGS,
    "run_id": at.RUN_ID,
    "arm": at.ARM,
    "label_id": at.LABEL_ID,
}


class StageBlock:
    """One stage as a block of code; its methods record and never raise.

    The names that each method takes are those of the decorators' options.
    """

    __slots__ = ("_before", "_spec", "_stage")

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._stage: Stage | None = None
        self._before: Stage | None = None

    def __enter__(self) -> StageBlock:
        stage = self._stage = open_stage(self._spec, (), {})
        if stage is not None:
            query = self._spec.options.get("query")
            if isinstance(query, str):
                stage.query = query
            self._before = around.current.get()
            around.current.set(stage)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        stage = self._stage
        if stage is None:
            return
        around.leave(stage, self._before)
        if error is None:
            close_stage(stage, OK)
        else:
            fail_stage(stage, error)

    async def __aenter__(self) -> StageBlock:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)

    def query(self, text: str) -> None:
        """Say what was asked or searched for."""
        if self._stage is not None:
            self._stage.query = text

    def inputs(self, *lists: Any) -> None:
        """Say which candidates go in, of any shape; else those that no stage has taken yet."""
        self._read_into("inputs", lists)

    def candidates(self, found: Any) -> None:
        """Say what came out, best first, of any shape."""
        stage = self._stage
        if stage is None:
            return
        try:
            take_candidates(stage, found)
        except Exception:
            stage.faults += 1
            faults.note(f"read the candidates of {stage.kind}")

    def dropped(self, ids: Iterable[Any], reason: str) -> None:
        """Say which candidates went in and not out, and why; *ids* may be candidates too.

        reason: limit, top_n, threshold, permission, dedupe, per_document_cap, budget or other.
        """
        stage = self._stage
        if stage is None:
            return
        try:
            listed = [ids] if isinstance(ids, str) else list(ids)
            entries = [(value, reason) for value in map(_id_of, listed)]
            stage.dropped = (stage.dropped or []) + entries
        except Exception:
            stage.faults += 1
            faults.note(f"read what {stage.kind} dropped")

    def prompt(self, text: Any, *, tokens: int | None = None) -> None:
        """Say the exact prompt: a text or messages; *tokens* is its length, if known."""
        stage = self._stage
        if stage is None:
            return
        try:
            stage.prompt = text_of_prompt(text)
            if tokens is not None:
                stage.put(at.PROMPT_TOKENS, tokens)
        except Exception:
            stage.faults += 1
            faults.note("read the prompt")

    def sent(self, passages: Any) -> None:
        """Say which candidates stand in the prompt, in its order."""
        stage = self._stage
        if stage is None:
            return
        try:
            stage.sent = read(list(map(_as_pair, passages)), self._spec.readers)
        except Exception:
            stage.faults += 1
            faults.note("read the passages sent")

    def answer(self, text: str) -> None:
        """Say what was answered."""
        if self._stage is not None:
            self._stage.answer = text

    def result(self, value: Any) -> None:
        """Hand over what a decorated function would have returned: a reply, a summary, a list."""
        stage = self._stage
        if stage is None:
            return
        try:
            look_at_result(stage, value)
        except Exception:
            stage.faults += 1
            faults.note(f"read the result of {stage.kind}")

    def set(self, **options: Any) -> None:
        """Say what is known only now: any option of the decorator, such as index_version."""
        stage = self._stage
        if stage is None:
            return
        try:
            spec = Spec(stage.kind, None, options)
            for key, value in spec.static.items():
                if key not in (at.SCHEMA, at.STAGE, at.OPERATION):
                    stage.put(key, value)
            for key, find in spec.volatile:
                stage.put(key, find((), {}))
        except Exception:
            stage.faults += 1
            faults.note(f"set options of {stage.kind}")

    def _read_into(self, name: str, lists: tuple[Any, ...]) -> None:
        stage = self._stage
        if stage is None:
            return
        try:
            found = [
                stage.trace.seen.get(id(one)) or read(one, self._spec.readers) for one in lists
            ]
            setattr(stage, name, [one for one in found if one is not None])
        except Exception:
            stage.faults += 1
            faults.note(f"read the {name} of {stage.kind}")


def _id_of(value: Any) -> Any:
    if isinstance(value, (str, int)) or value is None:
        return value
    found = read([value])
    return found.ids[0] if found is not None and len(found) == 1 else str(value)


def _as_pair(passage: Any) -> Any:
    """Take a bare text for an id where the service lists what it sent."""
    return (passage, None) if isinstance(passage, str) else passage


def stage(kind: str, **options: Any) -> StageBlock:
    """Record a block of code as one stage, or as a request: ``with ragotel.stage("rerank") as s:``.

    Raises:
        ConfigurationError: *kind* is no stage.
    """
    if kind not in KINDS:
        raise ConfigurationError(f"{kind!r} is no stage; it can be {', '.join(KINDS)}.")
    return StageBlock(Spec(kind, None, options))


class context:  # noqa: N801 - used like a function
    """Say who asks and which run, arm or label this is, for the requests in a block of code.

    ``with ragotel.context(user_id="u1", run_id="nightly", label_id="L7"): bot.answer(question)``.
    Inside of a running request it speaks of that one.
    """

    __slots__ = ("_given", "_token")

    def __init__(
        self,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        tenant: str | None = None,
        principal: str | None = None,
        tags: Iterable[str] | Mapping[str, str] | None = None,
        run_id: str | None = None,
        arm: str | None = None,
        label_id: str | None = None,
    ) -> None:
        given = {
            "user_id": user_id, "session_id": session_id, "tenant": tenant,
            "principal": principal, "tags": tags, "run_id": run_id, "arm": arm,
            "label_id": label_id,
        }  # fmt: skip
        self._given = {_AMBIENT[name]: v for name, v in given.items() if v is not None}
        self._token: Token[dict[str, Any] | None] | None = None

    def __enter__(self) -> None:
        running = around.current.get()
        if running is not None and not running.trace.is_closed:
            root = running.trace.root
            if root is not None and root.kind == REQUEST:
                for key, value in self._given.items():
                    root.put(key, value)
        self._token = around.ambient.set({**(around.ambient.get() or {}), **self._given})

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            try:
                around.ambient.reset(self._token)
            except ValueError:
                # Left in another task than it was entered in: nothing of ours is to be undone here.
                faults.log.debug("ragotel.context was left in another context")

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()
