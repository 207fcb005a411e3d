"""Worlds: small random corpora with versions, labels, grades and probes around pipelines."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from pipelines import Corpus, Version, build_request, gold_ids
from plain import (
    Ablation,
    Grade,
    Label,
    Manifest,
    ManifestRow,
    Passage,
    Probe,
    Request,
    World,
)

from ragotel.text import chunk_sha

HOUR_NS = 3_600_000_000_000
EPOCH_NS = 1_790_000_400_000_000_000  # 2026-09-21T13:40:00Z
NOUNS = ["seats", "calendar days", "credits", "% of the fee", "users (net)", "kg", "months"]
FILLER = (  # noqa: SIM905
    "the plan covers support during office hours while returns need a receipt and the policy is "
    "reviewed by legal before it applies to partners or resellers under separate terms"
).split()


@dataclass
class Chunk:
    id: str
    doc_id: str
    text: str
    claims: list[str] = field(default_factory=list)


def build_world(number: int, rng: random.Random, request_count: int) -> World:
    """One corpus, its labels and *request_count* requests; names carry the world's number."""
    world = World()
    corpus = _build_corpus(f"w{number}", rng, world)
    world.labels = [_build_label(f"w{number}-l{n}", rng, corpus) for n in range(6)]
    start = EPOCH_NS + number * 24 * HOUR_NS
    previous: Request | None = None
    for n in range(request_count):
        label = rng.choice(world.labels)
        at = start + rng.choice([0, 9 * HOUR_NS]) + n * 20_000_000_000
        request = build_request(f"{number}.{n}", at, label, corpus, rng, previous)
        _meet(world, request, label, rng)
        _grade(world, request, rng)
        _probe(world, request, corpus, rng)
        world.requests.append(request)
        previous = request
    return world


def _build_corpus(name: str, rng: random.Random, world: World) -> Corpus:
    corpus = Corpus(name)
    claims = [f"{rng.randint(1, 12)}{rng.choice(['', '0'])} {rng.choice(NOUNS)}" for _ in range(9)]
    for index in range(1 if rng.random() < 0.7 else 2):
        chunks = [
            _build_chunk(f"{name}/i{index}d{n // 3}.md#{n % 3}", n, claims, rng) for n in range(14)
        ]
        _build_versions(f"{name}-index{index}", chunks, claims, corpus, world, rng)
    corpus.claims = claims
    return corpus


def _build_chunk(id: str, n: int, claims: list[str], rng: random.Random) -> Chunk:
    own = rng.sample(claims, rng.choice([0, 1, 1, 2]))
    words = [rng.choice(FILLER) for _ in range(rng.randint(4, 14))]
    for claim in own:
        disguise = rng.choice([str, str.upper, lambda c: c.replace(" ", " \u00a0\u2003")])
        words.insert(rng.randint(0, len(words)), disguise(claim))
    if rng.random() < 0.3:
        words.insert(rng.randint(0, len(words)), "1" + rng.choice(claims))
    return Chunk(id, id.partition("#")[0], f"{' '.join(words)} [{n}].", own)


def _build_versions(
    index: str,
    chunks: list[Chunk],
    claims: list[str],
    corpus: Corpus,
    world: World,
    rng: random.Random,
) -> None:
    present = {chunk.id: chunk for chunk in chunks if rng.random() < 0.8}
    loaded = rng.choices(["all", "none", "no_root", "half"], [70, 8, 11, 11])[0]
    parent = ""
    for number in (1, 2, 3):
        version = f"v{number}"
        changes = [ManifestRow(c.id) for c in present.values()] if not parent else []
        if parent:
            for chunk in rng.sample(chunks, 4):
                if chunk.id in present:
                    del present[chunk.id]
                    changes.append(ManifestRow(chunk.id, deleted=True))
                else:
                    present[chunk.id] = chunk
                    changes.append(ManifestRow(chunk.id))
            if present and rng.random() < 0.5:
                old = rng.choice(list(present.values()))
                present[old.id] = _build_chunk(old.id, rng.randint(50, 99), claims, rng)
                changes = [row for row in changes if row.chunk_id != old.id]
                changes.append(ManifestRow(old.id))
        for row in changes:
            if not row.deleted:
                _describe(row, present[row.chunk_id], rng)
        corpus.versions.append(Version(index, version, dict(present)))
        if loaded == "all" or (loaded == "no_root" and parent) or loaded == "half":
            is_whole = not (loaded == "half" and number == 2)
            world.manifests.append(Manifest(index, version, parent, changes, is_whole))
        parent = version


def _describe(row: ManifestRow, chunk: Chunk, rng: random.Random) -> None:
    row.doc_id = chunk.doc_id
    if rng.random() < 0.93:
        row.text, row.sha = chunk.text, chunk_sha(chunk.text)


def _build_label(label_id: str, rng: random.Random, corpus: Corpus) -> Label:
    question = f"What about {label_id}, {rng.choice(FILLER)} {rng.choice(FILLER)}?"
    if rng.random() < 0.06:
        return Label(label_id, question, [], answerable=False)
    count = rng.choices([1, 2, 3], [65, 25, 10])[0]
    passages = [_build_passage(rng, corpus) for _ in range(count)]
    return Label(label_id, question, passages, principal=rng.choice(["", "", "reader"]))


def _build_passage(rng: random.Random, corpus: Corpus) -> Passage:
    chunks = [c for version in corpus.versions for c in version.chunks.values()]
    chunk = rng.choice(chunks)
    passage = Passage()
    kind = rng.choices(
        ["ids+spans", "ids+text", "ids", "spans", "text", "docs+spans", "docs+ids"],
        [40, 12, 10, 16, 4, 12, 6],
    )[0]
    if "ids" in kind:
        passage.chunk_ids = [chunk.id]
        if rng.random() < 0.3:
            passage.chunk_ids.append(rng.choice(chunks).id)
        if rng.random() < 0.1:
            passage.chunk_ids.insert(0, "nowhere.md#0")
    if "docs" in kind:
        passage.doc_ids = [chunk.doc_id] if "ids" not in kind else [rng.choice(chunks).doc_id]
    if "spans" in kind:
        passage.spans = [rng.choice(chunk.claims) if chunk.claims else rng.choice(corpus.claims)]
        if rng.random() < 0.15:
            passage.spans = [rng.choice(corpus.claims)]
        if rng.random() < 0.25:
            passage.spans.append(rng.choice(corpus.claims))
        if rng.random() < 0.3:
            passage.text = chunk.text
    if "text" in kind:
        passage.text = chunk.text
    return passage


def _meet(world: World, request: Request, label: Label, rng: random.Random) -> None:
    triple = (*request.key, label.label_id)
    how = rng.choices(["label_id", "question", "attached", "complaint", "none"], [45, 35, 9, 6, 5])[
        0
    ]
    if how == "label_id":
        request.label_id = label.label_id
        request.question = rng.choice([label.question, "something else"])
    elif how == "question":
        disguise = rng.choice([str, str.upper, lambda q: f"  {q.replace(' ', '  ')}\n"])
        request.question = disguise(label.question)
    else:
        request.question = f"Unheard of {request.request_id}"
        if how == "attached":
            world.attachments.append(triple)
        elif how == "complaint":
            world.complaints.append(triple)
    if rng.random() < 0.06:
        other = rng.choice(world.labels)
        if other is not label:
            world.attachments.append((*request.key, other.label_id))


def _grade(world: World, request: Request, rng: random.Random) -> None:
    for label in world.labels:
        triple = (*request.key, label.label_id)
        is_met = (
            request.label_id == label.label_id
            or triple in [*world.attachments, *world.complaints]
            or label.question.split()[2] in request.question.lower()
        )
        chance = 0.75 if is_met else 0.005
        times = rng.sample(range(1, 1000), 3)
        for n in range(rng.choice([1, 1, 1, 2, 3]) if rng.random() < chance else 0):
            grade = rng.choices(["correct", "wrong", "abstained"], [45, 40, 15])[0]
            source = rng.choice(["human", "exact", "judge"])
            at = request.end_ns + times[n] * 1_000_000_000
            world.grades.append(Grade(*triple, grade, source, f"g{n}", at))
        if is_met and rng.random() < 0.3:
            for n in range(rng.choice([1, 1, 2])):
                mode = rng.choice(["gold_only", "gold_only", "full"])
                at = request.end_ns + times[n] * 1_000_000_000
                world.ablations.append(Ablation(*triple, mode, rng.random() < 0.5, at))


def _probe(world: World, request: Request, corpus: Corpus, rng: random.Random) -> None:
    for label in world.labels:
        if not label.passages or rng.random() > 0.08:
            continue
        versions = sorted({s.version for s in request.stages if s.version}) or ["v1"]
        passage = rng.randrange(len(label.passages))
        for leg in rng.sample(["dense", "bm25"], rng.choice([1, 2])):
            version = rng.choice([*versions, *versions, "v9"])
            ranks = [None, rng.randint(1, 30), rng.randint(5, 200)]
            # A deep search of an index finds only what that index holds.
            is_held = any(
                gold_ids(label.passages[passage], v)
                for v in corpus.versions
                if v.version == version or version == "v9"
                if any(s.index == v.index for s in request.stages)
            )
            world.probes.append(
                Probe(
                    *(*request.key, label.label_id),
                    passage=passage,
                    leg=leg,
                    principal=label.principal if rng.random() < 0.85 else "somebody",
                    k=200,
                    deep_rank=rng.choice(ranks) if is_held else None,
                    index_version=version,
                    at_ns=request.end_ns + rng.randint(1, 10**9) * 1000,
                )
            )
