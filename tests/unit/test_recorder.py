"""What a request's record says: who, what, which candidates came and went, which prompt."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from opentelemetry import trace as otel
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span

import ragotel
from ragotel import attributes as at
from ragotel.testing import Recorded, recording
from ragotel.text import chunk_sha, content_hash


@dataclass
class Hit:
    id: str
    score: float
    text: str


def corpus(count: int) -> list[Hit]:
    return [
        Hit(f"d{n}", 1 - n / 100, f"Passage number {n} says that item {n} has colour {n * 7} here.")
        for n in range(count)
    ]


@ragotel.retrieve(leg="dense", index="docs", index_version=lambda: "v1", score_kind="cosine")
def search(query: str, k: int = 10) -> list[Hit]:
    return corpus(k)


@ragotel.rerank(model="bge")
def rerank(query: str, hits: list[Hit], top_n: int = 4) -> list[Hit]:
    return [Hit(h.id, h.score * 10, h.text) for h in reversed(hits)][:top_n]


@ragotel.assemble(template="answer", budget=60)
def build(query: str, hits: list[Hit]) -> str:
    passages = "\n".join(f"[{n}] {hit.text}" for n, hit in enumerate(hits[:2]))
    return f"Answer from:\n{passages}\nQ: {query}"


@ragotel.generate(model="m-1", provider="local")
def complete(prompt: str, temperature: float = 0.2) -> dict[str, Any]:
    return {
        "text": "Blue.",
        "usage": {"prompt_tokens": 40, "completion_tokens": 2},
        "choices": [{"finish_reason": "stop"}],
        "citations": ["d5", {"id": "d4"}],
    }


@ragotel.request(tags="topics")
def answer(question: str, user_id: str, session_id: str, topics: Any = ()) -> str:
    return str(complete(build(question, rerank(question, search(question, 6))))["text"])


def test_a_whole_request(recorded: Recorded) -> None:
    """Five spans, each with exactly these attributes."""
    hits = corpus(6)
    shas = [chunk_sha(hit.text) for hit in hits]
    assert answer("which colour?", "u1", "s1", ["billing"]) == "Blue."
    request, retrieve, reranked, assembled, generated = recorded.spans
    common = {at.SCHEMA: 1, at.OUTCOME: "ok", at.REQUEST_ID: request["attributes"][at.REQUEST_ID]}
    assert request["name"] == "rag.request"
    assert request["attributes"] == {
        **common,
        at.STAGE: "request",
        at.OPERATION: "invoke_workflow",
        at.STAGE_NAME: "answer",
        at.USER_ID: "u1",
        at.CONVERSATION_ID: "s1",
        at.TAGS: ["billing"],
        at.QUERY: "which colour?",
        at.ANSWER: "Blue.",
        at.ANSWER_CHARS: 5,
        at.CONTENT_MODE: "full",
    }
    assert (retrieve["name"], retrieve["kind"]) == ("retrieval docs", 3)
    assert retrieve["attributes"] == {
        **common,
        at.STAGE: "retrieve",
        at.STAGE_NAME: "dense",
        at.OPERATION: "retrieval",
        at.DATA_SOURCE: "docs",
        at.INDEX_VERSION: "v1",
        at.SCORE_KIND: "cosine",
        at.RETRIEVAL_QUERY: "which colour?",
        at.TOP_K: 6,
        at.CONTENT_MODE: "full",
        at.DOCUMENTS: [
            {"id": h.id, "score": h.score, "sha": sha} for h, sha in zip(hits, shas, strict=True)
        ],
        at.COUNT: 6,
        at.CHUNKS: {sha: hit.text for hit, sha in zip(hits, shas, strict=True)},
    }
    assert reranked["attributes"] == {
        **common,
        at.STAGE: "rerank",
        at.OPERATION: "rerank",
        at.STAGE_NAME: "rerank",
        at.REQUEST_MODEL: "bge",
        at.LIMIT: 4,
        at.CONTENT_MODE: "full",
        at.IN_COUNT: 6,
        at.CANDIDATES: [{"id": f"d{n}", "score": hits[n].score * 10} for n in (5, 4, 3, 2)],
        at.COUNT: 4,
        at.DROPPED: [{"id": f"d{n}", "reason": "top_n", "inferred": True} for n in (0, 1)],
        at.RERANK_EFFECT: "reordered",
    }
    version = assembled["attributes"].pop(at.PROMPT_VERSION)
    assert version.startswith("sha256:")
    digest = assembled["attributes"].pop(at.PROMPT_SHA256)
    assert len(digest) == 64
    prompt = build.__wrapped__("which colour?", [hits[5], hits[4]])  # type: ignore[attr-defined]
    assert assembled["attributes"] == {
        **common,
        at.STAGE: "assemble",
        at.STAGE_NAME: "build",
        at.PROMPT_NAME: "answer",
        at.PROMPT_VERSION_SOURCE: "skeleton",
        at.BUDGET_TOKENS: 60,
        at.PROMPT_TEXT: prompt,
        at.PROMPT_CHARS: len(prompt),
        at.PROMPT_TOKENS: -(-len(prompt) // 4),
        at.PROMPT_TOKENS_SOURCE: "estimated",
        at.CONTENT_MODE: "full",
        at.IN_COUNT: 4,
        at.CANDIDATES: [
            {
                "id": f"d{n}",
                "score": hits[n].score * 10,
                "sha": shas[n],
                "chars": len(hits[n].text),
                "tokens": -(-len(hits[n].text) // 4),
            }
            for n in (5, 4)
        ],
        at.COUNT: 2,
        at.DROPPED: [{"id": f"d{n}", "reason": "budget", "inferred": True} for n in (3, 2)],
    }
    assert (generated["name"], generated["kind"]) == ("chat m-1", 3)
    assert generated["attributes"] == {
        **common,
        at.STAGE: "generate",
        at.STAGE_NAME: "complete",
        at.OPERATION: "chat",
        at.REQUEST_MODEL: "m-1",
        at.PROVIDER: "local",
        at.TEMPERATURE: 0.2,
        at.INPUT_TOKENS: 40,
        at.OUTPUT_TOKENS: 2,
        at.FINISH_REASONS: ["stop"],
        at.CITATIONS: ["d5", "d4"],
    }
    assert {s["parent_span_id"] for s in recorded.spans[1:]} == {request["span_id"]}


def test_texts_are_sent_once(recorded: Recorded) -> None:
    """The second request names the same texts by their hashes only."""
    for _ in range(2):
        answer("q", "u", "s")
    first, second = recorded.stages("retrieve")
    assert len(first[at.CHUNKS]) == 6
    assert at.CHUNKS not in second
    assert second[at.DOCUMENTS] == first[at.DOCUMENTS]


def test_the_skeleton_is_one_per_template(recorded: Recorded) -> None:
    """A word of the template makes a version; question, passages, sources and numbers do not."""

    def prompts(template: str) -> Any:
        @ragotel.assemble(template="t")
        def render(query: str, hits: list[Hit]) -> str:
            lines = "".join(f"\n[{n}] source={h.id}\n{h.text}\n" for n, h in enumerate(hits))
            return template.format(passages=lines, query=query)

        return render

    first = prompts("Today is day 3.\nUse:\n{passages}\nQuestion: {query}")
    same = prompts("Today is day 4.\nUse:\n{passages}\nQuestion: {query}")
    other = prompts("Today is day 3.\nUse only:\n{passages}\nQuestion: {query}")
    for render, question, hits in (
        (first, "one?", corpus(3)),
        (same, "a longer one?", corpus(5)[3:]),
        (other, "x?", corpus(3)),
    ):
        ragotel.request(lambda question, r=render, h=hits: r(question, h))(question)
    one, two, three = (s[at.PROMPT_VERSION] for s in recorded.stages("assemble"))
    assert one == two
    assert one != three


def test_a_given_template_text_is_the_version(recorded: Recorded) -> None:
    """The hash of the template's text, or the version that the service gives."""
    ragotel.assemble(template_text="T: {q}")(lambda q: f"T: {q}")("x")
    ragotel.assemble(template_version="v7")(lambda q: f"T: {q}")("x")
    one, two = recorded.stages("assemble")
    assert one[at.PROMPT_VERSION_SOURCE] == "template"
    assert (two[at.PROMPT_VERSION], two[at.PROMPT_VERSION_SOURCE]) == ("v7", "given")


def test_fusion_takes_its_legs(recorded: Recorded) -> None:
    """Two legs go into fusion, as arguments or as a dict; the rest was cut by its limit."""

    @ragotel.retrieve
    def leg(query: str) -> list[Hit]:
        return corpus(3) if query == "a" else corpus(5)[2:]

    @ragotel.fuse(method="rrf", limit=2)
    def fuse(legs: Any) -> list[Hit]:
        return corpus(2)

    @ragotel.request
    def ask(question: str) -> str:
        fuse([leg("a"), leg("b")])
        fuse({"a": leg("a"), "b": leg("b")})
        return "x"

    ask("q")
    for fused in recorded.stages("fuse"):
        assert fused[at.IN_COUNT] == 5
        assert fused[at.LIMIT] == 2
        assert fused[at.FUSE_METHOD] == "rrf"
        assert [entry["id"] for entry in fused[at.DROPPED]] == ["d2", "d3", "d4"]
        assert {entry["reason"] for entry in fused[at.DROPPED]} == {"limit"}


def test_a_reranker_that_did_nothing_is_named(recorded: Recorded) -> None:
    """Order and scores as they came in: identity."""
    passed = ragotel.rerank(lambda hits: hits)
    sorted_in_place = ragotel.rerank(lambda hits: hits.sort(key=lambda h: h.score) or hits)

    @ragotel.request
    def ask(question: str) -> str:
        sorted_in_place(passed(search(question, 3)))
        return "x"

    ask("q")
    one, two = recorded.stages("rerank")
    assert one[at.RERANK_EFFECT] == "identity"
    assert two[at.RERANK_EFFECT] == "reordered"
    assert [row["id"] for row in two[at.CANDIDATES]] == ["d2", "d1", "d0"]


def test_a_reranker_may_answer_with_positions(recorded: Recorded) -> None:
    """Results that only name positions in the list that went in get that list's ids."""

    @ragotel.rerank
    def ranked(hits: list[Hit]) -> Any:
        return SimpleNamespace(
            results=[
                SimpleNamespace(index=2, relevance_score=0.9),
                SimpleNamespace(index=0, relevance_score=0.1),
            ]
        )

    ragotel.request(lambda question: ranked(search(question, 3)) and "x")("q")
    found = recorded.stage("rerank")[at.CANDIDATES]
    assert [(row["id"], row["score"]) for row in found] == [("d2", 0.9), ("d0", 0.1)]


def test_a_permission_filter_keeps_texts_at_home(recorded: Recorded) -> None:
    """What the user had no right to see is named, but its text is not sent."""

    @ragotel.filter(reason="permission")
    def allowed(hits: list[Hit]) -> list[Hit]:
        return hits[:1]

    ragotel.request(lambda question: allowed(search(question, 3)) and "x")("q")
    dropped = recorded.stage("filter")[at.DROPPED]
    assert dropped == [{"id": i, "reason": "permission", "inferred": True} for i in ("d1", "d2")]
    texts = [text for s in recorded.spans for text in s["attributes"].get(at.CHUNKS, {}).values()]
    assert texts == [corpus(1)[0].text]


def test_a_block_records_like_a_decorator(recorded: Recorded) -> None:
    """`with ragotel.stage(...)`: candidates, what was dropped and why, the prompt."""
    hits = corpus(4)
    with ragotel.stage("request", user_id="u1") as request:
        request.query("why?")
        with ragotel.stage("retrieve", leg="dense", index="docs", query="why?") as s:
            s.candidates(hits)
        with ragotel.stage("filter", reason="threshold") as s:
            s.candidates(hits[:2])
            s.dropped(["d3"], reason="dedupe")
        with ragotel.stage("assemble", budget=100) as s:
            s.prompt(f"Use {hits[1].text}\nwhy?", tokens=30)
        request.answer("because")
    request_, retrieve, filtered, assembled = (s["attributes"] for s in recorded.spans)
    assert (request_[at.QUERY], request_[at.ANSWER], request_[at.USER_ID]) == (
        "why?",
        "because",
        "u1",
    )
    assert retrieve[at.COUNT] == 4
    assert filtered[at.DROPPED] == [
        {"id": "d3", "reason": "dedupe", "inferred": False},
        {"id": "d2", "reason": "threshold", "inferred": True},
    ]
    assert [row["id"] for row in assembled[at.CANDIDATES]] == ["d1"]
    assert assembled[at.DROPPED] == [{"id": "d0", "reason": "budget", "inferred": True}]
    assert (assembled[at.PROMPT_TOKENS], assembled[at.PROMPT_TOKENS_SOURCE]) == (30, "reported")


async def test_a_block_may_be_async(recorded: Recorded) -> None:
    """The same with `async with`; an exception passes and is the stage's."""
    async with ragotel.stage("retrieve") as s:
        s.candidates([])
    assert recorded.stage("retrieve")[at.COUNT] == 0
    assert recorded.stage("retrieve")[at.DOCUMENTS] == []


def test_the_service_may_name_what_it_sent(recorded: Recorded) -> None:
    """A prompt builder that returns its passages is believed; the rest was dropped."""

    @ragotel.assemble
    def render(query: str, hits: list[Hit]) -> tuple[str, list[Hit]]:
        return f"Use {hits[2].text} and {hits[0].text}", [hits[2], hits[0]]

    ragotel.request(lambda question: render(question, search(question, 3))[0])("q")
    assembled = recorded.stage("assemble")
    assert [row["id"] for row in assembled[at.CANDIDATES]] == ["d2", "d0"]
    assert assembled[at.DROPPED] == [{"id": "d1", "reason": "other", "inferred": True}]


def test_messages_are_a_prompt(recorded: Recorded) -> None:
    """Chat messages are joined; passages are found in them."""

    @ragotel.assemble
    def render(query: str, hits: list[Hit]) -> list[dict[str, str]]:
        return [
            {"role": "system", "content": f"Use: {hits[0].text}"},
            {"role": "user", "content": query},
        ]

    ragotel.request(lambda question: render(question, search(question, 2)) and "x")("why?")
    assembled = recorded.stage("assemble")
    assert assembled[at.PROMPT_TEXT] == f"Use: {corpus(1)[0].text}\n\nwhy?"
    assert [row["id"] for row in assembled[at.CANDIDATES]] == ["d0"]


def test_a_prompt_builder_without_candidates_gets_the_last_list(recorded: Recorded) -> None:
    """Where the passages were joined before, the list that no stage has taken yet is compared."""

    @ragotel.assemble
    def render(context: str, question: str) -> str:
        return f"{context}\n{question}"

    @ragotel.request
    def ask(question: str) -> str:
        hits = rerank(question, search(question, 6))
        return render("\n".join(hit.text for hit in hits[:1]), question)

    ask("q")
    assembled = recorded.stage("assemble")
    assert [row["id"] for row in assembled[at.CANDIDATES]] == ["d5"]
    assert [entry["id"] for entry in assembled[at.DROPPED]] == ["d4", "d3", "d2"]


def test_texts_are_known_from_earlier_lists(recorded: Recorded) -> None:
    """A reranker that returns (id, score) pairs leaves the texts where they were."""
    pairs = ragotel.rerank(lambda hits: [(hit.id, 0.5) for hit in hits[:2]])

    @ragotel.request
    def ask(question: str) -> str:
        pairs(search(question, 3))
        return "x"

    ask("q")
    hits = corpus(2)
    assert recorded.stage("rerank")[at.CANDIDATES] == [{"id": h.id, "score": 0.5} for h in hits]
    told = [row["sha"] for row in recorded.stage("retrieve")[at.DOCUMENTS]]
    assert told[:2] == [chunk_sha(h.text) for h in hits]


def test_a_hash_is_told_once_and_again_where_the_text_differs(recorded: Recorded) -> None:
    """The first list with a candidate names its text; an id with two texts is named each time."""
    first = ragotel.rerank(lambda hits: [{"id": "a", "text": "one"}, {"id": "b", "text": "two"}])
    other = ragotel.blend(lambda hits: [{"id": "a", "text": "1"}, {"id": "b", "text": "two"}])
    again = ragotel.filter(lambda hits: [{"id": "a", "text": "1"}, {"text": "three"}])

    @ragotel.request
    def ask(question: str) -> str:
        again(other(first(search(question, 1))))
        return "x"

    ask("q")
    named = {
        stage: [row.get("sha") for row in recorded.stage(stage)[at.CANDIDATES]]
        for stage in ("rerank", "blend", "filter")
    }
    assert named == {
        "rerank": [chunk_sha("one"), chunk_sha("two")],
        "blend": [chunk_sha("1"), None],
        # The last one's id is its hash.
        "filter": [chunk_sha("1"), None],
    }


def test_zero_hits_is_not_not_recorded(recorded: Recorded) -> None:
    """An empty list has a count of 0; a result that is no list has none."""
    ragotel.retrieve(lambda q: [])("q")
    ragotel.retrieve(lambda q: object())("q")
    empty, unknown = recorded.stages("retrieve")
    assert (empty[at.COUNT], empty[at.DOCUMENTS]) == (0, [])
    assert at.COUNT not in unknown
    assert at.DOCUMENTS not in unknown


def test_context_names_run_arm_and_label(recorded: Recorded) -> None:
    """`ragotel.context` speaks of the requests inside, and of the running one."""
    ask = ragotel.request(run_id="given")(lambda question: "x")
    with ragotel.context(user_id="u", run_id="nightly", arm="b", label_id="L7", tags=["eval"]):
        ragotel.request(lambda question: "x")("q")

    @ragotel.request
    def late(question: str) -> str:
        with ragotel.context(user_id="u2"):
            return "x"

    late("q")
    ask("q")
    first, second, third = recorded.stages("request")
    assert {k: first[k] for k in (at.USER_ID, at.RUN_ID, at.ARM, at.LABEL_ID, at.TAGS)} == {
        at.USER_ID: "u", at.RUN_ID: "nightly", at.ARM: "b", at.LABEL_ID: "L7", at.TAGS: ["eval"],
    }  # fmt: skip
    assert second[at.USER_ID] == "u2"
    assert third[at.RUN_ID] == "given"


def test_who_asks_is_found_in_a_body(recorded: Recorded) -> None:
    """A request's body with question and user is read by its own attributes."""
    body = SimpleNamespace(question="why?", user_id="u1", session_id="s1", other=object())
    ragotel.request(lambda body: {"answer": "so"})(body)
    attributes = recorded.stage("request")
    assert (attributes[at.QUERY], attributes[at.ANSWER]) == ("why?", "so")
    assert (attributes[at.USER_ID], attributes[at.CONVERSATION_ID]) == ("u1", "s1")


def test_the_application_s_trace_is_joined(recorded: Recorded) -> None:
    """Trace id and parent are those of the current span, sampled or not; the provider is theirs."""
    provider = otel.get_tracer_provider()
    outer = SpanContext(trace_id=0xABC, span_id=0xDEF, is_remote=False, trace_flags=TraceFlags(0))
    with use_span(NonRecordingSpan(outer)):
        answer("q", "u", "s")
    assert {span["trace_id"] for span in recorded.spans} == {f"{0xABC:032x}"}
    assert recorded.spans[0]["parent_span_id"] == f"{0xDEF:016x}"
    assert otel.get_tracer_provider() is provider


def test_the_request_id_is_shown_while_it_runs(recorded: Recorded) -> None:
    """`current_request_id` is the id on the spans, and None outside."""
    seen = ragotel.request(lambda question: ragotel.current_request_id())("q")
    assert seen == recorded.stage("request")[at.REQUEST_ID]
    assert ragotel.current_request_id() is None


def test_an_ingest_run_is_its_summary(recorded: Recorded) -> None:
    """Counters from a dict or an object, chunks for the manifest."""

    @ragotel.ingest(index="docs", chunker="fixed(800)")
    def run() -> dict[str, Any]:
        return {
            "docs_listed": 3, "docs_parsed": 3, "docs_empty": 1, "mean_chars_per_doc": 10.5,
            "chunks_written": 2, "chunks_deleted": 0, "index_version": "v2", "parent_version": "v1",
            "chunks": [{"id": "c1", "text": "one text", "doc_id": "d1"}],
        }  # fmt: skip

    run()
    attributes = recorded.stage("ingest")
    assert attributes[at.DOCS_LISTED] == 3
    assert attributes[at.DOCS_EMPTY] == 1
    assert attributes[at.MEAN_CHARS_PER_DOC] == 10.5
    assert (attributes[at.INDEX_VERSION], attributes[at.PARENT_VERSION]) == ("v2", "v1")
    assert (attributes[at.DATA_SOURCE], attributes[at.CHUNKER]) == ("docs", "fixed(800)")
    assert attributes[at.CANDIDATES] == [
        {"id": "c1", "score": None, "sha": chunk_sha("one text"), "doc_id": "d1"}
    ]


def test_every_list_is_one_json_text() -> None:
    """Attributes are scalars: a list is JSON text, never flattened keys."""
    with recording() as sink:
        answer("q", "u", "s")
        for span in sink.raw:
            for key, value in span.attributes.items():
                assert isinstance(value, (str, bool, int, float)), key
        documents = [s.attributes[at.DOCUMENTS] for s in sink.raw if at.DOCUMENTS in s.attributes]
        assert isinstance(json.loads(str(documents[0])), list)


def test_prompt_tokens_are_reported_counted_or_estimated(recorded: Recorded) -> None:
    """The service's own figure first, then its tokeniser's, then four characters each."""
    ragotel.assemble(tokens=lambda result: 7, count_tokens=len)(lambda q: "x" * 9)("q")
    ragotel.assemble(count_tokens=lambda text: len(text) // 3)(lambda q: "x" * 9)("q")
    ragotel.assemble(count_tokens=lambda text: 1 // 0)(lambda q: "x" * 9)("q")
    assert [
        (s[at.PROMPT_TOKENS], s[at.PROMPT_TOKENS_SOURCE], s.get(at.CAPTURE_ERRORS))
        for s in recorded.stages("assemble")
    ] == [(7, "reported", None), (3, "counted", None), (3, "estimated", 1)]


def test_a_search_by_vector_has_no_query(recorded: Recorded) -> None:
    """The name of a collection is not taken for the question."""
    ragotel.retrieve(lambda vector, collection: [])([0.1, 0.2], "docs")
    ragotel.retrieve(lambda words, collection: [])("why?", "docs")
    one, two = recorded.stages("retrieve")
    assert at.RETRIEVAL_QUERY not in one
    assert two[at.RETRIEVAL_QUERY] == "why?"


def test_a_generated_list_of_candidates_is_read_as_it_is_consumed(recorded: Recorded) -> None:
    """A retriever that yields its hits is recorded with those that were taken."""

    @ragotel.retrieve
    def lazy(query: str) -> Any:
        yield from corpus(3)

    assert [hit.id for hit in lazy("q")] == ["d0", "d1", "d2"]
    taken = lazy("q")
    next(taken)
    taken.close()
    one, two = recorded.stages("retrieve")
    assert one[at.COUNT] == 3
    assert (two[at.COUNT], two[at.OUTCOME]) == (1, "stopped_early")


def test_a_quoted_passage_is_not_sent_by_its_question(recorded: Recorded) -> None:
    """A user who quotes a passage does not put it into the prompt's list."""
    quote = corpus(3)[2].text[:50]
    render = ragotel.assemble(lambda query, hits: f"{hits[0].text}\nQuestion: {query}")
    ragotel.request(lambda question: render(question, search(question, 3)))(quote)
    assert [row["id"] for row in recorded.stage("assemble")[at.CANDIDATES]] == ["d0"]


def test_a_template_that_is_asked_for_is_hashed_at_each_call() -> None:
    """An edit of the template shows as another version, although only a callable was given."""
    template = {"text": "Answer from: {passages}"}

    @ragotel.assemble(template="answer", template_text=lambda: template["text"])
    def build(question: str) -> str:
        return template["text"].format(passages=question)

    with recording() as recorded:
        build("one")
        template["text"] = "Say what {passages} says"
        build("two")
    spans = recorded.stages("assemble")
    versions = [span["gen_ai.prompt.version"] for span in spans]
    assert versions == [content_hash("Answer from: {passages}"), content_hash(template["text"])]
    assert {span["rag.prompt.version_source"] for span in spans} == {"template"}


def test_a_budget_that_would_admit_a_passage_is_not_blamed() -> None:
    """A prompt without any passage, with room for the first one, was not cut by its budget."""

    @ragotel.retrieve(leg="dense")
    def search(question: str) -> list[dict[str, str]]:
        return [{"id": "a", "text": "Twenty-one days."}, {"id": "b", "text": "Two years."}]

    @ragotel.assemble(budget=60)
    def build(question: str, hits: list[dict[str, str]]) -> str:
        return f"Question: {question}"

    @ragotel.request
    def answer(question: str) -> str:
        return build(question, search(question))

    with recording() as recorded:
        answer("how long?")
    (span,) = recorded.stages("assemble")
    assert {drop["reason"] for drop in span[at.DROPPED]} == {"other"}


@ragotel.generate(model="judge")
def judge(question: str, answer: str) -> str:
    return "Yes, that is right."


@ragotel.request
def ask_and_judge(query: str) -> str:
    reply = complete(build(query, search(query)))
    judge(query, reply["text"])
    return str(reply["text"])


@ragotel.generate(model="rewriter")
def rewrite(question: str) -> str:
    return f"{question} please"


@ragotel.request
def rewrite_and_ask(query: str) -> str:
    return str(complete(build(query, search(rewrite(query))))["text"])


@ragotel.generate(model="other")
def other(question: str) -> str:
    return "nothing of it"


@ragotel.request
def answer_of_its_own(query: str) -> str:
    rewrite(query)
    other(query)
    return "An answer that no model gave."


def stages_of_models(recorded: Recorded) -> list[tuple[str, str]]:
    calls = [span["attributes"] for span in recorded.spans if span["name"].startswith("chat ")]
    return [(call[at.STAGE], call[at.REQUEST_MODEL]) for call in calls]


def test_a_judge_is_not_the_generation(recorded: Recorded) -> None:
    """A model's call after the one that gave the answer is a stage of its own kind."""
    ask_and_judge("which colour?")
    assert stages_of_models(recorded) == [("generate", "m-1"), ("model_call", "judge")]


def test_calls_before_the_answer_stay_generations(recorded: Recorded) -> None:
    """The last generation counts anyway; what came before it is not set aside."""
    rewrite_and_ask("which colour?")
    assert stages_of_models(recorded) == [("generate", "rewriter"), ("generate", "m-1")]


def test_nothing_is_set_aside_where_no_call_gave_the_answer(recorded: Recorded) -> None:
    """An answer that was put together elsewhere tells no call from another."""
    answer_of_its_own("which colour?")
    assert stages_of_models(recorded) == [("generate", "rewriter"), ("generate", "other")]


@ragotel.request
def answer_with_id(query: str) -> tuple[str | None, str]:
    return ragotel.current_request_id(), "Blue."


def test_the_request_s_own_id_is_no_answer(recorded: Recorded) -> None:
    """A service may hand its id out beside the answer, so that a complaint can name it."""
    answer_with_id("which colour?")
    (request,) = recorded.spans
    assert request["attributes"][at.ANSWER] == "Blue."
