"""Probing: asks the user's own search again, deeply, where it lost the gold passage.

Pipeline: triage views -> [triage] -> rehearsal (the user's search) -> rag_probes -> triage views
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from ragotel.errors import InputError
from ragotel.rehearsal import Heard, Hit, Rehearsal
from ragotel.store import Store
from ragotel.triage.calling import PRINCIPAL, QUESTION, Caller, K, Role, fit
from ragotel.triage.claims import states_any
from ragotel.triage.lines import Progress, no_progress
from ragotel.triage.probe_targets import Target, probed_before
from ragotel.triage.probes import COLUMNS

ROLES = (
    Role("question", QUESTION),
    Role("k", K, is_placed=False),
    Role("principal", PRINCIPAL, is_placed=False, is_needed=False),
)
_WRITE_EVERY = 50


@dataclass
class Leg:
    """One search to probe; *name* and *version* are '' until given or heard."""

    caller: Caller
    name: str = ""
    version: str = ""
    is_known: bool = False
    """Name and version are settled, so that it can be told which probes are there already."""

    def settle(self, given_version: str) -> None:
        """Take the version that was given, or the one that the function has as an attribute."""
        self.version = given_version or _attribute(self.caller.function)
        if self.version and (self.name or not _is_decorated(self.caller.function)):
            self.is_known = True

    def hear(self, heard: Heard, given_version: str) -> None:
        """Learn from an answer what it says of itself.

        Raises:
            InputError: Nothing names the index version that was searched.
        """
        self.name = self.name or heard.leg
        self.version = given_version or heard.index_version or _attribute(self.caller.function)
        if not self.version:
            raise InputError(
                f"{self.caller.target} does not say which index version it searched, and a rank "
                "of another version tells nothing; give --index-version, or decorate it with "
                "@ragotel.retrieve(index_version=...)."
            )
        self.is_known = True


def _is_decorated(function: Callable[..., Any]) -> bool:
    return bool(getattr(function, "__ragotel__", False))


def _attribute(function: Callable[..., Any]) -> str:
    """`index_version` of the function or of the object that it is a method of."""
    for owner in (function, getattr(function, "__self__", None)):
        value = getattr(owner, "index_version", None)
        if callable(value):
            value = value()
        if isinstance(value, str | int):
            return str(value)
    return ""


Passage = tuple[str, str, str, int]
"""A gold passage of a request, as `Target.key` names it."""


@dataclass
class Outcome:
    """What a run of probes did.

    A passage counts once, however many legs looked for it: as *probed* by any leg, as *found* by
    any, as *skipped* for a reason on any. *kept* are the ranks stored (of a passage, by a leg),
    *asked* the searches (of a question as a principal, by a leg), *failures* those that failed.
    """

    probed: set[Passage] = field(default_factory=set)
    found: set[Passage] = field(default_factory=set)
    kept: int = 0
    asked: int = 0
    skipped: dict[str, set[Passage]] = field(default_factory=dict)
    failures: list[dict[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)

    def skip(self, reason: str, targets: Iterable[Target]) -> None:
        keys = {target.key for target in targets}
        if keys:
            self.skipped.setdefault(reason, set()).update(keys)


@dataclass
class Prober:
    """Asks each leg for the questions of some targets and keeps what it finds."""

    store: Store
    rehearsal: Rehearsal
    legs: Sequence[Leg]
    k: int
    given_version: str = ""
    default_principal: str = ""
    again: bool = False
    outcome: Outcome = field(default_factory=Outcome)

    def run(self, targets: Sequence[Target], progress: Progress = no_progress) -> Outcome:
        """Probe *targets*; what was found so far is stored also where the run is broken off.

        Raises:
            InputError: A leg does not say which index version it searched.
        """
        for leg in self.legs:
            leg.settle(self.given_version)
        before = {} if self.again else probed_before(self.store, targets)
        self._rows: list[tuple[Any, ...]] = []
        self._shortest: dict[str, int] = {}
        try:
            for count, group in enumerate(_by_question(targets, self.default_principal), 1):
                for leg in self.legs:
                    self._probe(leg, group, before)
                progress(count)
                if len(self._rows) >= _WRITE_EVERY:
                    self._write()
        finally:
            self._write()
        self._note(targets)
        return self.outcome

    def questions(self, targets: Sequence[Target]) -> int:
        """How many questions `run` asks each leg for: what its progress counts."""
        return len(_by_question(targets, self.default_principal))

    def _probe(self, leg: Leg, group: Sequence[Target], before: dict[tuple[Any, ...], int]) -> None:
        wanted = self._wanted(leg, group, before) if leg.is_known else list(group)
        if not wanted:
            return
        principal = wanted[0].principal or self.default_principal
        if not principal and "principal" in leg.caller.required:
            self.outcome.skip("no_principal", wanted)
            return
        heard = self._ask(leg, wanted[0], principal)
        if heard is None:
            return
        was_known = leg.is_known
        leg.hear(heard, self.given_version)
        if not was_known:
            wanted = self._wanted(leg, group, before)
        elif leg.version not in wanted[0].served:
            # The index was switched while the probes ran.
            self.outcome.skip("other_version", wanted)
            return
        if leg.version not in self.outcome.versions:
            self.outcome.versions.append(leg.version)
        for target in wanted:
            self._keep(leg, target, heard.hits)

    def _wanted(
        self, leg: Leg, group: Sequence[Target], before: dict[tuple[Any, ...], int]
    ) -> list[Target]:
        wanted = []
        for target in group:
            if not target.served:
                self.outcome.skip("version_not_recorded", [target])
            elif leg.version not in target.served:
                self.outcome.skip("other_version", [target])
            elif before.get((*target.key, leg.name, leg.version), 0) >= self.k:
                self.outcome.skip("already_probed", [target])
            else:
                wanted.append(target)
        return wanted

    def _ask(self, leg: Leg, target: Target, principal: str) -> Heard | None:
        values: dict[str, Any] = {"question": target.question, "k": self.k}
        if principal:
            values["principal"] = principal
        positional, keywords = leg.caller.arguments(values)
        self.outcome.asked += 1
        try:
            return self.rehearsal.search(leg.caller.function, *positional, **keywords)
        except Exception as error:
            self.outcome.failures.append(
                {
                    "leg": leg.name,
                    "request_id": target.request_id or target.trace_id,
                    "question": target.question,
                    "error": f"{type(error).__name__}: {error}".splitlines()[0][:300],
                }
            )
            return None

    def _keep(self, leg: Leg, target: Target, hits: Sequence[Hit]) -> None:
        hits = hits[: self.k]
        rank = next((at for at, hit in enumerate(hits, 1) if is_gold(hit, target)), None)
        score = None if rank is None else hits[rank - 1].score
        self._rows.append(
            (
                *target.key,
                leg.name,
                # As whom the label means it: a default only tells the search that it is nobody's.
                target.principal if leg.caller.takes("principal") else "",
                self.k,
                rank,
                score,
                leg.version,
            )
        )
        self.outcome.kept += 1
        self.outcome.probed.add(target.key)
        if rank is not None:
            self.outcome.found.add(target.key)
        name = leg.name or leg.caller.target
        self._shortest[name] = max(self._shortest.get(name, 0), len(hits))

    def _write(self) -> None:
        now = datetime.now(timezone.utc)
        self.store.insert(
            "rag_probes",
            [(*row, now + timedelta(microseconds=at)) for at, row in enumerate(self._rows)],
            COLUMNS,
        )
        self._rows.clear()

    def _note(self, targets: Sequence[Target]) -> None:
        named = sum(target.principal != "" for target in targets)
        for leg in self.legs:
            if named and not leg.caller.takes("principal"):
                self.outcome.notes.append(
                    f"{leg.caller.target} takes no principal, but the labels of {named} passages "
                    "name one: it was searched as nobody."
                )
        for name, longest in self._shortest.items():
            if longest < self.k:
                self.outcome.notes.append(
                    f"{name} never returned more than {longest} candidates for k = {self.k}: a "
                    f"passage that was not found may stand behind them."
                )


def is_gold(hit: Hit, target: Target) -> bool:
    """Whether *hit* is an acceptable gold of the passage: by chunk, document, else by wording."""
    if not target.has_ids:
        return hit.text is not None and states_any(hit.text, target.claims)
    return (
        hit.id in target.chunk_ids
        or (hit.sha is not None and hit.sha in target.chunk_ids)
        or (hit.doc_id != "" and hit.doc_id in target.doc_ids)
    )


def _by_question(targets: Iterable[Target], principal: str) -> list[list[Target]]:
    """Targets that one search answers: the same words, asked as the same principal."""
    groups: dict[tuple[str, str], list[Target]] = {}
    for target in targets:
        groups.setdefault((target.question, target.principal or principal), []).append(target)
    return list(groups.values())


def make_leg(rehearsal: Rehearsal, target: str, name: str = "") -> Leg:
    """The search that *target* names.

    Raises:
        InputError: It cannot be loaded, or takes no question and k.
    """
    function = rehearsal.load(target)
    return Leg(fit(function, target, *ROLES), name)
