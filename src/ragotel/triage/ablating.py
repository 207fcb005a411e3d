"""Ablating: asks the user's own model again with less beside the gold passage, or elsewhere.

Pipeline: recorded prompts -> [triage] -> rehearsal (the user's model and judge) -> rag_ablations
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from ragotel.errors import InputError
from ragotel.rehearsal import Rehearsal, answer_in
from ragotel.store import Store
from ragotel.triage.ablation_cases import (
    Candidate,
    Case,
    Gold,
    is_gold,
    states_gold,
    with_prompts,
)
from ragotel.triage.ablations import COLUMNS
from ragotel.triage.calling import ANSWER, EXPECTED, LABEL, PROMPT, QUESTION, Caller, Role, fit
from ragotel.triage.grades import GRADES
from ragotel.triage.lines import Progress, no_progress
from ragotel.triage.prompt_parts import Block, Parts, PartsError, take_apart

GENERATOR_ROLES = (Role("prompt", PROMPT),)
JUDGE_ROLES = (
    Role("question", QUESTION),
    Role("expected_answer", EXPECTED),
    Role("answer", ANSWER),
    Role("label", LABEL, is_placed=False, is_needed=False),
)
_WRITE_EVERY = 20


@dataclass(frozen=True)
class Plan:
    """What is asked of each case; *positions* and *lengths* count passages from 1."""

    modes: Sequence[str]
    positions: Sequence[int] = ()
    lengths: Sequence[int] = ()

    def runs(self) -> Iterator[tuple[str, int, int]]:
        """Mode, position and number of passages of each run."""
        for mode in self.modes:
            if mode == "position":
                for length in self.lengths:
                    yield from ((mode, at, length) for at in self.positions if at <= length)
            else:
                yield mode, 0, 0


@dataclass
class Outcome:
    """What a run of ablations did; *skipped* and *failures* name the request and the reason."""

    asked: int = 0
    cases: int = 0
    correct: Counter[str] = field(default_factory=Counter)
    done_before: int = 0
    skipped: list[dict[str, str]] = field(default_factory=list)
    failures: list[dict[str, str]] = field(default_factory=list)


class SkippedError(ValueError):
    """A run cannot be made from what was recorded; the message says why."""


@dataclass
class Ablator:
    """Builds each run's prompt from the recorded one, asks, judges and keeps the result."""

    store: Store
    rehearsal: Rehearsal
    generator: Caller
    judge: Caller
    again: bool = False
    outcome: Outcome = field(default_factory=Outcome)

    def run(self, cases: Sequence[Case], plan: Plan, progress: Progress = no_progress) -> Outcome:
        """Ablate *cases*; what was asked so far is stored also where the run is broken off."""
        before = set() if self.again else ablated_before(self.store, cases)
        runs = list(plan.runs())
        self._rows: list[tuple[Any, ...]] = []
        try:
            for count, case in enumerate(with_prompts(self.store, cases), 1):
                wanted = [run for run in runs if (*case.key, case.label_id, *run) not in before]
                self.outcome.done_before += len(runs) - len(wanted)
                self._ablate(case, wanted)
                progress(count)
                if len(self._rows) >= _WRITE_EVERY:
                    self._write()
        finally:
            self._write()
        return self.outcome

    def _ablate(self, case: Case, runs: Sequence[tuple[str, int, int]]) -> None:
        asked_before = self.outcome.asked
        prompts = Prompts(case)
        for mode, position, length in runs:
            try:
                prompt = prompts.build(mode, position, length)
            except (SkippedError, PartsError) as error:
                self._name(self.outcome.skipped, case, mode, str(error))
                continue
            try:
                answer, is_correct = self._ask(case, prompt)
            except Exception as error:
                reason = f"{type(error).__name__}: {error}".splitlines()[0][:300]
                self._name(self.outcome.failures, case, mode, reason)
                # It costs the case: a model or judge that failed once is not paid for again.
                break
            self._rows.append(
                (*case.key, case.label_id, mode, position, length, is_correct, answer)
            )
            self.outcome.correct[mode] += is_correct
        self.outcome.cases += self.outcome.asked > asked_before

    def _ask(self, case: Case, prompt: str) -> tuple[str, bool]:
        self.outcome.asked += 1
        positional, keywords = self.generator.arguments({"prompt": prompt})
        result = self.rehearsal.call(self.generator.function, *positional, **keywords)
        answer = answer_in(result)
        if answer is None:
            raise InputError(f"the generator returned a {type(result).__name__} without a text")
        positional, keywords = self.judge.arguments(
            {
                "question": case.question,
                "expected_answer": case.label["expected_answer"],
                "answer": answer,
                "label": case.label,
            }
        )
        judged = self.rehearsal.call(self.judge.function, *positional, **keywords)
        return answer, _is_correct(judged)

    @staticmethod
    def _name(into: list[dict[str, str]], case: Case, mode: str, reason: str) -> None:
        name = case.key.request_id or case.key.trace_id
        into.append({"request_id": name, "label_id": case.label_id, "mode": mode, "reason": reason})

    def _write(self) -> None:
        now = datetime.now(timezone.utc)
        self.store.insert(
            "rag_ablations",
            [(*row, now + timedelta(microseconds=at)) for at, row in enumerate(self._rows)],
            COLUMNS,
        )
        self._rows.clear()


class Prompts:
    """The prompts of one case, made from its recorded one."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._parts: Parts | None = None

    def build(self, mode: str, position: int, length: int) -> str:
        """The prompt of one run.

        Raises:
            SkippedError: What was recorded does not suffice.
            PartsError: The passages cannot be told apart in the prompt.
        """
        if self._case.prompt is None:
            raise SkippedError("the whole prompt was not recorded")
        if mode == "full":
            return self._case.prompt
        parts, sent = self._take_apart(self._case.prompt)
        golds = [_gold_at(sent, gold, number) for number, gold in enumerate(self._case.golds, 1)]
        if mode == "gold_only":
            return parts.with_only(sorted({at for found in golds for at in found}))
        if len(golds) != 1:
            raise SkippedError(f"the answer needs {len(golds)} passages: their position is not one")
        others = self._distractors(parts, sent, set(golds[0]))
        if len(others) < length - 1:
            raise SkippedError(
                f"{length - 1} other passages are wanted, {len(others)} are recorded with a text"
            )
        blocks = others[: length - 1]
        blocks.insert(position - 1, parts.blocks[golds[0][0]])
        return parts.with_blocks(blocks)

    def _take_apart(self, prompt: str) -> tuple[Parts, list[Candidate]]:
        sent = self._case.sent
        if sent is None:
            raise SkippedError("which passages were sent was not recorded")
        unknown = [one.id or one.sha for one in sent if not one.text]
        if unknown:
            raise SkippedError(f"the text of {unknown[0]} is not in the store")
        if self._parts is None:
            self._parts = take_apart(prompt, [one.passage for one in sent], self._case.question)
        # In the order in which they stand in the prompt, which the blocks have.
        return self._parts, [sent[number] for number in self._parts.order]

    def _distractors(
        self, parts: Parts, sent: Sequence[Candidate], gold_at: set[int]
    ) -> list[Block]:
        """The other passages: those that were sent, in prompt order, then the other candidates."""
        (gold,) = self._case.golds
        found = {
            one.sha: parts.blocks[at]
            for at, one in enumerate(sent)
            if at not in gold_at and not states_gold(one, gold)
        }
        for one in self._case.ranked:
            if one.text and not is_gold(one, gold) and not states_gold(one, gold):
                found.setdefault(one.sha, Block(one.id or one.sha, one.text))
        return list(found.values())


def _gold_at(sent: Sequence[Candidate], gold: Gold, number: int) -> list[int]:
    """Where the passage stands among *sent*: by its ids, else by its wording."""
    found = [at for at, one in enumerate(sent) if is_gold(one, gold)]
    found = found or [at for at, one in enumerate(sent) if states_gold(one, gold)]
    if not found:
        raise SkippedError(f"passage {number} of the label is none of those that were sent")
    return found


def _is_correct(judged: Any) -> bool:
    """What a judge said, as right or not: a boolean, or a grade."""
    if isinstance(judged, str) and judged in GRADES:
        return judged == "correct"
    if isinstance(judged, bool) or getattr(getattr(judged, "dtype", None), "kind", "") == "b":
        return bool(judged)
    raise InputError(
        f"the judge returned {judged!r:.80}; true, false or one of {', '.join(GRADES)} is wanted"
    )


def ablated_before(store: Store, cases: Sequence[Case]) -> set[tuple[Any, ...]]:
    """The runs that the store has of the labels of *cases*."""
    labels = sorted({case.label_id for case in cases})
    found: set[tuple[Any, ...]] = set()
    for start in range(0, len(labels), 300):
        rows = store.query(
            "select trace_id, request_id, label_id, mode, position, of\n"
            "from rag_request_ablations where label_id in {labels:Array(String)}",
            {"labels": labels[start : start + 300]},
        ).result_rows
        found.update(tuple(row) for row in rows)
    return found


def make_generator(rehearsal: Rehearsal, target: str) -> Caller:
    """The model that *target* names: (prompt) to answer.

    Raises:
        InputError: It cannot be loaded, or takes no prompt.
    """
    return fit(rehearsal.load(target), target, *GENERATOR_ROLES)


def make_judge(rehearsal: Rehearsal, target: str) -> Caller:
    """The judge that *target* names: (question, expected_answer, answer[, label]) to a verdict.

    Raises:
        InputError: It cannot be loaded, or takes no such arguments.
    """
    return fit(rehearsal.load(target), target, *JUDGE_ROLES)
