"""The verdict rules in plain Python, simple and slow: what the SQL views must say.

Everything is three-valued: True, False, or None where the evidence was never recorded.

AMBIGUITIES: where the rules are silent or can be read in two ways, this is the reading chosen
here.

A1   A label meets a request per pair by whatever names both (label id, grade, complaint,
     attachment; the first is shown); the equality of the question is asked only where nothing
     names a label, else a run's request would also be judged by every other label with the same
     question.
A2   A grade without a label id counts for every label of the request.
A3   The generation that gave the answer: the last one that ended well, else the last one.
A4   The lists that fed a prompt: those that ended before it began and began after the assembly
     before it ended; where there are none (a second assembly of the same lists), after the one
     before that, and so on.
A5   A list was consumed by each later ranking or filter that began after it ended; the last lists
     are those that none consumed. So a leg that began after the fusion ended stands beside the
     fused list.
A6   A stage that failed handed nothing on and is left out (`degraded` tells), its top_k too.
A7   An element with a null id in a whole list is not the gold chunk: the list still decides
     absence.
A8   No manifest, and the gold is in no leg: bucket unknown, loss_stage not_retrieved_by_any_leg.
A9   A probe of the served version that found the chunk proves that it exists.
A10  Where the last lists can only be read in part, the claim in the prompt counts as retrieved,
     unless a list before them is known to lack the gold (after the last one that has it): then it
     cannot be told.
A11  A whole manifest without the gold is a corpus gap even if the claim stands in the prompt (by
     way of something else), unless a recorded list has the gold id.
A12  The gold id in the sent list, or among what assembly dropped, was in the list handed to
     assembly. What a stage dropped it had. Gold ids: the label's, and those of candidates found
     to be gold by document or text in any list of the request.
A13  A label by ids alone, without any wording: in the prompt if its id was sent untrimmed; absent
     if a whole sent list lacks it; sent trimmed: cannot be told.
A14  A truncated or redacted prompt that does not show the claim is judged by hashes and ids like
     a hidden one.
A15  By hash, text_in_prompt is true; by id, text_in_prompt stays null. Without labelled ids
     id_in_prompt is null.
A16  Span-only labels with text off, by the shas that were sent: present if one that was sent
     untrimmed has the claim; absent if all sent texts are known and none has it.
A17  A passage's row is judged by itself: in the prompt and graded wrong is generation_error there
     even where the request has lost another passage. The request goes by its passages' buckets.
A18  The deciding passage is the first one whose bucket is the request's; state, attribution,
     loss_stage, ranks and the factors of the request are that passage's.
A19  state of a miss whose lists cannot all be read: null.
A20  recall_class without a reranker is of the list handed to assembly.
A21  loss_stage: removal by a filter, or with a filter's reason, is `filtered`; absence from the
     fused list is fusion_limit; a cut by rerank or blend counts where the rank last passed the
     cut-off (k): a passage that fusion had beyond k is fused_beyond_cutoff although the reranker
     cut it. Without fusion: retrieved_beyond_ cutoff. In the list beyond k and not known to be in
     the prompt: by the same scan, else assemble.
A22  deep_rank: the best over the legs' probes of a recorded served version (a probe of any other
     is named); leg ranks are of all legs of the request.
A23  via_other_chunk: set where no last list has a gold id, the claim stands in the prompt and a
     sent chunk of known text has it; where none can be named, set or not.
A24  Context problem: by the texts of the gold chunks that were sent: one has the claim: prompt-
     assembly; all lack it: chunking. None sent: prompt-assembly. The sent list not readable:
     prompt-assembly if a listed gold chunk has the claim, else unknown (whether it was sent
     cannot be told).
A25  The document of a candidate: as recorded, else as every manifest row of that chunk in the
     indexes searched says; known from neither: cannot be told.
A26  Versions in force within that hour: those that other requests recorded for the index within
     an hour.
A27  An answerable label without passages: unknown.
A28  A list attribute that is absent: `off` if the content mode says so, `empty` if the count is
     0, else not recorded. An empty list whose count says more is truncated.
A29  The text of a chunk id is taken from the rows of the recorded served version, else of its
     parents, as far as each was loaded whole; where the version was not recorded, only from the
     sha on the wire.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable

from plain import (
    LIST_STAGES,
    Grade,
    Hit,
    Label,
    Passage,
    Probe,
    Request,
    Stage,
    World,
)

from ragotel import text as ragotel_text

normalise = functools.lru_cache(maxsize=20_000)(ragotel_text.normalise)
HOUR_NS = 3_600_000_000_000
READABLE = ("whole", "empty")
FILTER_REASONS = ("permission", "threshold", "per_document_cap")
FAILING = ("corpus_gap", "retrieval_miss", "context_problem")
Answer = bool | None


def any_of(values: Iterable[Answer]) -> Answer:
    """True if one is, else None if one cannot be told, else False."""
    found: Answer = False
    for value in values:
        if value:
            return True
        if value is None:
            found = None
    return found


@functools.lru_cache(maxsize=200_000)
def states(body: str, claim: str) -> bool:
    """Whether *body* states *claim*: no letter or digit runs on at its ends."""
    body, claim = normalise(body), normalise(claim).strip()
    start = body.find(claim) if claim else -1
    while start >= 0:
        end = start + len(claim)
        before, after = body[start - 1 : start] if start else "", body[end : end + 1]
        if not (_joins(before, claim[0]) or _joins(claim[-1], after)):
            return True
        start = body.find(claim, start + 1)
    return False


def _joins(left: str, right: str) -> bool:
    return all(side and unicodedata.category(side)[0] in "LN" for side in (left, right))


class Store:
    """What is known beside one request: texts, index versions, who else used them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.texts = world.texts()
        self.manifests = {(m.index, m.version): m for m in world.manifests}
        self.grades: dict[tuple[str, str], list[Grade]] = {}
        for grade in world.grades:
            self.grades.setdefault((grade.trace_id, grade.request_id), []).append(grade)
        self.served: dict[str, list[tuple[int, str]]] = {}
        for request in world.requests:
            for stage in request.stages:
                if stage.stage == "retrieve" and stage.version:
                    self.served.setdefault(stage.index, []).append(
                        (request.start_ns, stage.version)
                    )

    @functools.cache  # noqa: B019 (a store lives as long as one comparison)
    def chunks(self, index: str, version: str) -> dict[str, tuple[str, str]] | None:
        """Chunk id to (doc id, sha) of a version; None unless it and its parents were loaded."""
        manifest = self.manifests.get((index, version))
        if manifest is None or not manifest.is_whole:
            return None
        if manifest.parent and self.chunks(index, manifest.parent) is None:
            return None
        return self.described(index, version)

    @functools.cache  # noqa: B019
    def described(self, index: str, version: str) -> dict[str, tuple[str, str]]:
        """Chunk id to (doc id, sha) as far as the loaded rows of a version and its parents tell."""
        manifest = self.manifests.get((index, version))
        if manifest is None:
            return {}
        chunks = dict(self.described(index, manifest.parent)) if manifest.parent else {}
        for row in manifest.rows:
            if row.deleted:
                chunks.pop(row.chunk_id, None)
            else:
                chunks[row.chunk_id] = (row.doc_id, row.sha)
        return chunks

    @functools.cache  # noqa: B019
    def surely(self, index: str, version: str) -> dict[str, str]:
        """Chunk id to sha as the version's rows say, else its parent's; half loads say nothing."""
        manifest = self.manifests.get((index, version))
        if manifest is None or not manifest.is_whole:
            return {}
        known = self.surely(index, manifest.parent) if manifest.parent else {}
        return known | {row.chunk_id: "" if row.deleted else row.sha for row in manifest.rows}

    def document(self, id: str | None, indexes: set[str]) -> str:
        """The document of a chunk, if every manifest row of it in *indexes* says the same."""
        return _only(
            {
                row.doc_id
                for (index, _), manifest in self.manifests.items()
                if index in indexes
                for row in manifest.rows
                if row.chunk_id == id and not row.deleted
            }
        )

    def versions(self, request: Request, index: str, version: str) -> list[str]:
        """The version that served, or all that were in force within that hour."""
        if version:
            return [version]
        return sorted(
            {v for at, v in self.served.get(index, []) if abs(at - request.start_ns) <= HOUR_NS}
        )


class Flow:
    """Which stages of a request led to its answer."""

    def __init__(self, request: Request) -> None:
        self.request = request
        stages = sorted(request.stages, key=lambda s: (s.end_ns, s.start_ns))
        generations = [s for s in stages if s.stage == "generate"]
        done = [s for s in generations if s.outcome == "ok"] or generations
        self.generation = done[-1] if done else None
        prompts = [
            s
            for s in stages
            if s.stage == "assemble"
            and (self.generation is None or s.end_ns <= self.generation.start_ns)
        ]
        self.prompt = prompts[-1] if prompts else None
        horizon = (self.prompt or self.generation or stages[-1]).start_ns if stages else 0
        if self.prompt is None and self.generation is None:
            horizon = max((s.end_ns for s in stages), default=0)
        self.all_lists = [s for s in stages if s.stage in LIST_STAGES]
        fed = [s for s in self.all_lists if s.end_ns <= horizon]
        # From the assembly before back to the first one: the lists since then, if there are any.
        ends = sorted({s.end_ns for s in prompts[:-1]}, reverse=True)
        windows = [[s for s in fed if s.start_ns >= end] for end in [*ends, 0]]
        self.fed = next((window for window in windows if window), [])
        self.lists = [s for s in self.fed if s.outcome == "ok"]
        self.legs = [s for s in self.lists if s.stage == "retrieve"]
        self.final = self.last_of(self.lists)
        limits = [s.limit for s in self.lists if s.limit is not None]
        top_ks = [s.top_k for s in self.legs if s.top_k is not None]
        self.k = limits[-1] if limits else max(top_ks, default=None)
        rerank = next((s for s in self.lists if s.stage == "rerank"), None)
        before = [s for s in self.lists if rerank and s.end_ns <= rerank.start_ns]
        self.reranked = self.last_of(before) if rerank else self.final

    @staticmethod
    def last_of(lists: list[Stage]) -> list[Stage]:
        def is_consumed(stage: Stage) -> bool:
            return any(s.stage != "retrieve" and s.start_ns >= stage.end_ns for s in lists)

        return [stage for stage in lists if not is_consumed(stage)]

    def levels(self) -> list[list[Stage]]:
        """The way to the last list: the legs, then each ranking or filter; parallel ones as one."""
        levels = [self.legs] if self.legs else []
        last_end = 0
        for stage in sorted(self.lists, key=lambda s: s.start_ns):
            if stage.stage == "retrieve":
                continue
            if levels and levels[-1] is not self.legs and stage.start_ns < last_end:
                levels[-1].append(stage)
            else:
                levels.append([stage])
            last_end = max(last_end, stage.end_ns)
        return levels


class Gold:
    """One gold passage looked for in one request."""

    def __init__(self, store: Store, flow: Flow, passage: Passage) -> None:
        self.store, self.flow, self.passage = store, flow, passage
        self.searched = [s for s in flow.all_lists if s.stage == "retrieve"]
        self.served: dict[str, str] = {}
        for stage in self.searched:
            self.served.update(store.surely(stage.index, stage.version))
        hits = [hit for stage in flow.request.stages for hit in stage.hits]
        self.gold_ids = {hit.id for hit in hits if hit.id is not None and self.is_gold(hit)}
        self.gold_ids |= set(passage.chunk_ids)
        if passage.doc_ids:
            dropped = {id for s in flow.request.stages for id, _ in s.dropped or []}
            self.gold_ids |= {id for id in dropped if id and self.by_id(Hit(id))}

    def text_of(self, hit: Hit) -> str | None:
        sha = hit.sha or self.served.get(hit.id or "", "")
        return self.store.texts.get(sha)

    def has_claim(self, text: str | None) -> Answer:
        if text is None or not self.passage.claims:
            return None
        return any(states(text, claim) for claim in self.passage.claims)

    def by_id(self, hit: Hit) -> Answer:
        if hit.id is not None and hit.id in self.passage.chunk_ids:
            return True
        if not self.passage.doc_ids:
            return False
        doc_id = hit.doc_id or self.store.document(hit.id, {s.index for s in self.searched})
        return doc_id in self.passage.doc_ids if doc_id else None

    def is_gold(self, hit: Hit) -> Answer:
        if self.passage.has_ids:
            return self.by_id(hit)
        return self.has_claim(self.text_of(hit))

    def among(self, stages: list[Stage]) -> Answer:
        """Whether the union of *stages*' lists has it; None for no list at all."""
        if not stages:
            return None
        answers: list[Answer] = []
        for stage in stages:
            answers += [self.is_gold(hit) for hit in stage.hits]
            answers.append(False if stage.evidence in READABLE else None)
        return any_of(answers)

    def rank(self, stages: list[Stage]) -> int | None:
        ranks = [n for s in stages for n, hit in enumerate(s.hits, 1) if self.is_gold(hit)]
        return min(ranks, default=None)

    def was_dropped(self, stage: Stage) -> bool:
        return any(id in self.gold_ids for id, _ in stage.dropped or [])

    def reasons(self, stages: list[Stage]) -> set[str]:
        return {
            reason for stage in stages for id, reason in stage.dropped or [] if id in self.gold_ids
        }

    def in_manifests(self) -> Answer:
        """Existence in the versions that served; absent only if from every index searched."""
        if not self.searched:
            return None
        answers = []
        for stage in self.searched:
            versions = self.store.versions(self.flow.request, stage.index, stage.version)
            found = {self._in_version(stage.index, version) for version in versions}
            answers.append(found.pop() if len(found) == 1 else None)
        return any_of(answers)

    def _in_version(self, index: str, version: str) -> Answer:
        chunks = self.store.chunks(index, version)
        if chunks is None:
            return None
        if self.passage.has_ids:
            if any(id in chunks for id in self.passage.chunk_ids):
                return True
            return any(doc_id in self.passage.doc_ids for doc_id, _ in chunks.values())
        return any_of(self.has_claim(self.store.texts.get(sha)) for _, sha in chunks.values())

    def in_prompt(self) -> tuple[Answer, str | None]:
        prompt = self.flow.prompt
        if prompt is None:
            return None, None
        if self.passage.claims and prompt.prompt is not None:
            if self.has_claim(prompt.prompt):
                return True, "text"
            if prompt.content_mode == "full":
                return False, "text"
        if self.passage.has_ids:
            if self.among([prompt]) is False:
                return False, "id"
        elif prompt.evidence in READABLE and all(
            hit.sha and self.has_claim(self.store.texts.get(hit.sha)) is False
            for hit in prompt.hits
        ):
            return False, "hash"
        for hit in prompt.hits:
            if not self.is_gold(hit) or not is_untrimmed(hit):
                continue
            if not self.passage.claims:
                return True, "id"
            if hit.sha and self.has_claim(self.store.texts.get(hit.sha)):
                return True, "hash"
        return None, None


def _only(values: set[str]) -> str:
    return values.pop() if len(values) == 1 else ""


def is_untrimmed(hit: Hit) -> bool:
    """Whether the whole chunk was sent, as far as the record tells."""
    return hit.kept_chars is None or (hit.chars is not None and hit.kept_chars >= hit.chars)


def grade_of(store: Store, request: Request, label: Label) -> str | None:
    """The grade that counts: human, exact, judge, then the newest."""
    order = {"human": 0, "exact": 1, "judge": 2}

    def weight(grade: Grade) -> tuple[int, int]:
        return order.get(grade.source, 3), -grade.at_ns

    mine = [
        grade
        for grade in store.grades.get(request.key, [])
        if grade.label_id in ("", label.label_id)
    ]
    return min(mine, key=weight).grade if mine else None


def matched_by(store: Store, request: Request) -> dict[str, str]:
    """The labels that *request* meets and by which rule: label id to the rule's name."""
    named = {grade.label_id for grade in store.grades.get(request.key, [])}
    complained = {label for *key, label in store.world.complaints if tuple(key) == request.key}
    attached = {label for *key, label in store.world.attachments if tuple(key) == request.key}
    asked = {
        label.label_id
        for label in store.world.labels
        if request.question and _folded(request.question) == _folded(label.question)
    }
    known = {label.label_id for label in store.world.labels}
    found = {
        **dict.fromkeys(attached & known, "attached"),
        **dict.fromkeys(complained & known, "complaint"),
        **dict.fromkeys(named & known, "grade"),
        **dict.fromkeys({request.label_id} & known, "label_id"),
    }
    return found or dict.fromkeys(asked, "question")


@functools.lru_cache(maxsize=20_000)
def _folded(text: str) -> str:
    return normalise(text).strip()


def deep_rank(
    world: World, store: Store, gold: Gold, label: Label, number: int
) -> tuple[int | None, bool]:
    """The probes' best rank, else the best in a leg; whether a foreign version's was ignored."""
    request = gold.flow.request
    served = {stage.version for stage in gold.searched if stage.version}
    mine = [
        probe
        for probe in world.probes
        if (probe.trace_id, probe.request_id, probe.label_id, probe.passage)
        == (*request.key, label.label_id, number)
    ]
    newest: dict[tuple[str, str], Probe] = {}
    for probe in sorted(mine, key=lambda p: p.at_ns):
        newest[probe.leg, probe.index_version] = probe
    is_foreign = any(version not in served for _, version in newest)
    ranks = [
        probe.deep_rank
        for probe in newest.values()
        if probe.index_version in served
        and probe.principal == label.principal
        and probe.deep_rank is not None
    ]
    if ranks:
        return min(ranks), is_foreign
    legs = [s for s in gold.flow.all_lists if s.stage == "retrieve"]
    return gold.rank(legs), is_foreign
