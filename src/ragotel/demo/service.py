"""The service of the demo: questions about Python, answered from the language reference.

Read this file to see how a RAG service is decorated. It is plain Python; all that ragotel needs
are the lines that start with ``@ragotel``. Search runs in two legs side by side, the lists are
fused and reranked, the best passages are packed into a token budget and a template, and a small
extractive model answers from that prompt.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import ragotel
from ragotel.demo.corpus import Document, chunk_pages, parse
from ragotel.demo.embedding import Encoder
from ragotel.demo.model import NAME, ExtractiveModel, Relevance
from ragotel.demo.search import Hit, Index, rarity

INDEX = "python-reference"
TOP_K = 10
FUSED = 12
RERANKED = 6
RRF_K = 60


@dataclass(frozen=True)
class Template:
    """How a passage and the whole prompt are written."""

    passage: str = "[{id}] {title}\n{text}"
    prompt: str = (
        "Answer the question with one sentence of the passages. Say so if they do not answer it."
        "\n\n{passages}\n\nQuestion: {question}\nAnswer:"
    )

    @property
    def version(self) -> str:
        """Name the template by its own text, so that no edit goes unseen."""
        return hashlib.sha256(f"{self.passage}\0{self.prompt}".encode()).hexdigest()[:8]


TEMPLATE = Template()


@dataclass
class Release:
    """What of the service is deployed; all of it changes in the demo's fourteen days."""

    index: Index
    template: Template = TEMPLATE
    budget: int = 6000


@dataclass(frozen=True)
class Reply:
    """An answer, and the request that a user can quote in a complaint."""

    answer: str
    request_id: str | None


@dataclass(frozen=True)
class IngestRun:
    """Summary of one ingest run: what the crawl listed and what became of it."""

    index_version: str
    parent_version: str | None
    docs_listed: int
    docs_parsed: int
    docs_empty: int
    mean_chars_per_doc: float
    chunks_written: int
    chunks_deleted: int


def served_version(bot: DocsBot) -> str:
    """Name the index version that serves; asked again at each search."""
    return bot.release.index.version


def count_tokens(text: str) -> int:
    """Count words and signs: the extractive model's tokens."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def best_first(hits: Iterable[Hit]) -> list[Hit]:
    """Sort by score; equal scores by id, so that every run ranks alike."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id))


class DocsBot:
    """Answers questions from the index that is deployed."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._legs = ThreadPoolExecutor(max_workers=2, thread_name_prefix="leg")
        self._relevance = Relevance(encoder, {})
        self._model = ExtractiveModel(self._relevance)
        self.release = Release(Index("none", (), encoder))

    def close(self) -> None:
        """End the threads of the two legs."""
        self._legs.shutdown()

    @ragotel.request
    def answer(self, question: str, user_id: str, conversation_id: str) -> Reply:
        """Answer one question of one user."""
        meaning = self._legs.submit(self.search_meaning, question)
        by_words = self.search_words(question)
        fused = self.fuse(by_words, meaning.result())
        ranked = self.rerank(question, fused)
        answer = self.complete(self.build_prompt(question, ranked))
        return Reply(answer, ragotel.current_request_id())

    @ragotel.retrieve(leg="bm25", index=INDEX, index_version=served_version, score_kind="bm25")
    def search_words(self, question: str, k: int = TOP_K) -> list[Hit]:
        """Find passages that share rare words with the question."""
        return self.release.index.by_words(question, k)

    @ragotel.retrieve(leg="dense", index=INDEX, index_version=served_version, score_kind="cosine")
    def search_meaning(self, question: str, k: int = TOP_K) -> list[Hit]:
        """Find passages that are near to the question in meaning."""
        return self.release.index.by_meaning(question, k)

    @ragotel.fuse(method="rrf")
    def fuse(self, *legs: list[Hit], limit: int = FUSED) -> list[Hit]:
        """Merge the legs by reciprocal ranks."""
        sums: dict[str, float] = {}
        found: dict[str, Hit] = {}
        for leg in legs:
            for rank, hit in enumerate(leg, start=1):
                found.setdefault(hit.chunk_id, hit)
                sums[hit.chunk_id] = sums.get(hit.chunk_id, 0.0) + 1 / (RRF_K + rank)
        merged = [found[chunk_id].scored(total) for chunk_id, total in sums.items()]
        return best_first(merged)[:limit]

    @ragotel.rerank(model="sentence-match-1")
    def rerank(self, question: str, hits: list[Hit], top_n: int = RERANKED) -> list[Hit]:
        """Order passages by their best sentence: rare words shared and nearness in meaning."""
        matches = [self._relevance.best(question, hit.title, hit.text)[1] for hit in hits]
        return best_first(hit.scored(m) for hit, m in zip(hits, matches, strict=True))[:top_n]

    @ragotel.assemble(
        template="answer",
        template_version=lambda self: self.release.template.version,
        budget=lambda self: self.release.budget,
        count_tokens=count_tokens,
    )
    def build_prompt(self, question: str, hits: list[Hit]) -> str:
        """Pack the best passages into the token budget and fill the template."""
        template = self.release.template
        blocks: list[str] = []
        left = self.release.budget
        for hit in hits:
            block = template.passage.format(id=hit.chunk_id, title=hit.title, text=hit.text)
            left -= count_tokens(block)
            if left < 0:
                break
            blocks.append(block)
        return template.prompt.format(passages="\n\n".join(blocks), question=question)

    @ragotel.generate(model=NAME)
    def complete(self, prompt: str) -> str:
        """Let the model answer."""
        return self._model.complete(prompt)

    @ragotel.ingest(index=INDEX)
    def ingest(self, crawl: Sequence[Document], index_version: str) -> IngestRun:
        """Build and deploy the next index version; what the crawl does not have is deleted."""
        before = self.release.index
        pages = [parse(document) for document in crawl]
        chunks = chunk_pages(pages)
        self.release.index = Index(index_version, chunks, self._encoder)
        self._relevance.rarity = rarity(chunks)
        old, new = {c.chunk_id for c in before.chunks}, {c.chunk_id for c in chunks}
        parsed = [page for page in pages if page.text]
        return IngestRun(
            index_version=index_version,
            parent_version=before.version if before.chunks else None,
            docs_listed=len(pages),
            docs_parsed=len(parsed),
            docs_empty=len(pages) - len(parsed),
            mean_chars_per_doc=round(sum(len(page.text) for page in pages) / len(pages), 1),
            chunks_written=len(new - old),
            chunks_deleted=len(old - new),
        )
