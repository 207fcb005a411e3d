"""What leaves of each text, by field; and that every copy obeys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ragotel
from ragotel import attributes as at
from ragotel.delivery.otlp import encode_span
from ragotel.errors import ConfigurationError
from ragotel.privacy import read_content
from ragotel.redaction import redact, redact_and_count
from ragotel.settings import resolve_settings
from ragotel.testing import Recorded, recording
from ragotel.text import chunk_sha, content_hash

MARK = "Zyzzyva"
HITS = [{"id": f"c{n}", "score": 1 - n / 9, "text": f"{MARK} passage {n}"} for n in range(3)]


def play() -> None:
    """Ask with the marker in every text that a service can pass, well and badly."""

    @ragotel.retrieve(leg="dense", where=f"author = '{MARK}'")
    def search(query: str) -> list[dict[str, Any]]:
        return HITS

    @ragotel.retrieve(leg="texts", where=lambda: {"title": MARK})
    def search_texts(query: str) -> list[str]:
        return [hit["text"] for hit in HITS]

    @ragotel.rerank(model="m")
    def rerank(query: str, hits: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return hits[:2]

    @ragotel.assemble(template="answer", template_text=f"{MARK} {{passages}} {{question}}")
    def build(question: str, hits: list[dict[str, Any]]) -> list[dict[str, str]]:
        passages = "\n".join(hit["text"] for hit in hits)
        return [{"role": "user", "content": f"{MARK} {passages} {question}"}]

    @ragotel.assemble(template_text=lambda: MARK)
    def build_again(question: str, hits: list[dict[str, Any]]) -> str:
        return f"{MARK} and no passage {question}"

    @ragotel.generate(model="m")
    def complete(prompt: Any) -> dict[str, Any]:
        return {"text": f"It says {MARK}.", "citations": ["c0", f"a quotation: {MARK}", 1]}

    @ragotel.generate(model="m")
    def stream(prompt: Any) -> Iterator[str]:
        yield from (MARK, " again")

    @ragotel.request
    def answer(question: str, user_id: str, session_id: str, tags: list[str]) -> str:
        hits = rerank(question, search(question))
        search_texts(question)
        reply = complete(build(question, hits))
        "".join(stream(build_again(question, hits)))
        return str(reply["text"])

    @ragotel.request
    def fail(question: str) -> str:
        raise ValueError(f"no such thing: {MARK}")

    @ragotel.ingest(index="docs")
    def ingest(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return chunks

    with ragotel.context(tenant=f"tenant {MARK}", tags={"topic": MARK}):
        answer(f"What is {MARK}?", f"{MARK}@example.com", f"session {MARK}", [MARK, "b"])
        with pytest.raises(ValueError, match=MARK):
            fail(f"Who is {MARK}?")
    ingest(HITS)


def exported(sink: Recorded) -> bytes:
    return b"".join(encode_span(span) for span in sink.raw)


ALL_TEXTS = ("query", "answer", "prompt", "chunks", "metadata")


@pytest.mark.parametrize(
    "settings",
    [
        {"content": "ids,user=off"},
        {"content_mode": "off", "content": {"user": "off"}},
        {"content_mode": "hashed", "content": {"user": "hashed"}},
        {"content": {**dict.fromkeys(ALL_TEXTS, "off"), "user": "hashed"}},
        {"content": {**dict.fromkeys(ALL_TEXTS, "redacted"), "user": "off"}, "redact": "mask"},
    ],
)
def test_a_marker_in_every_input_is_in_no_exported_byte(settings: dict[str, Any]) -> None:
    """Question, answer, prompt, passages, template, tags, filter, citation, exception, user."""
    if settings.get("redact") == "mask":
        settings = {**settings, "redact": lambda text: text.replace(MARK, "***")}
    with recording() as sink:
        play()
        assert exported(sink).count(MARK.encode()) > 20
    with recording(**settings) as sink:
        play()
        assert MARK.encode() not in exported(sink)
        assert [span.attributes[at.COUNT] for span in sink.raw if at.COUNT in span.attributes]
        assert [s.attributes.get(at.CAPTURE_ERRORS) for s in sink.raw] == [None] * len(sink.raw)
        assert sink.stages("generate")[0][at.CITATIONS][0] == "c0"


SEEN: dict[str, Callable[[Recorded], Any]] = {
    "query": lambda sink: (
        sink.stages("request")[0].get(at.QUERY),
        sink.stages("retrieve")[0].get(at.RETRIEVAL_QUERY),
    ),
    "answer": lambda sink: sink.stages("request")[0].get(at.ANSWER),
    "prompt": lambda sink: sink.stages("assemble")[0].get(at.PROMPT_TEXT),
    "chunks": lambda sink: sink.stages("retrieve")[0].get(at.CHUNKS),
    "metadata": lambda sink: (
        sink.stages("request")[0].get(at.TAGS),
        sink.stages("retrieve")[0].get(at.FILTER),
    ),
    "user": lambda sink: (
        sink.stages("request")[0].get(at.USER_ID),
        sink.stages("request")[0].get(at.CONVERSATION_ID),
        sink.stages("request")[0].get(at.TENANT),
    ),
}


@pytest.mark.parametrize("field", SEEN)
def test_each_field_has_a_rule_of_its_own(field: str) -> None:
    """A rule changes its own field, and no other."""
    with recording() as sink:
        play()
        whole = {name: see(sink) for name, see in SEEN.items()}
        assert all(all(seen) if isinstance(seen, tuple) else seen for seen in whole.values())
    with recording(content={field: "off"}) as sink:
        play()
        left = {name: see(sink) for name, see in SEEN.items()}
    hidden = left.pop(field)
    assert left == {name: value for name, value in whole.items() if name != field}
    assert not (any(hidden) if isinstance(hidden, tuple) else hidden)


def test_hidden_and_empty_differ() -> None:
    """A question that was empty says full, one that was hidden says off; so does an answer."""
    modes = {}
    for mode in ("full", "off"):
        for text in ("", "words"):
            with recording(content_mode=mode) as sink:
                ragotel.request(lambda question, text=text: text)(text)
                span = sink.stage("request")
                seen = (at.QUERY, at.ANSWER, at.ANSWER_CHARS, at.CONTENT_MODE)
                modes[mode, text] = tuple(span.get(key) for key in seen)
    assert modes == {
        ("full", ""): ("", "", 0, "full"),
        ("full", "words"): ("words", "words", 5, "full"),
        ("off", ""): (None, None, 0, "off"),
        ("off", "words"): (None, None, 5, "off"),
    }


def test_a_span_of_several_texts_names_the_one_that_lacks_most() -> None:
    """Redacted question, cut answer: truncated; the prompt has its own span and mode."""
    rules = {"query": "redacted", "answer": "truncated(20)", "prompt": "full"}
    with recording(content=rules) as sink:
        ask = ragotel.request(lambda question: ragotel.assemble(lambda q: q * 9)(question))
        ask("Mail me at ana@example.com, please.")
        span = sink.stage("request")
        assert span[at.QUERY] == "Mail me at [email], please."
        assert (len(span[at.ANSWER]), span[at.CONTENT_MODE]) == (20, "truncated")
        assert sink.stage("assemble")[at.CONTENT_MODE] == "full"


def test_a_text_in_which_nothing_was_masked_is_whole() -> None:
    """Mode redacted marks only what it changed, so that the rest still decides verdicts."""
    with recording(content_mode="redacted") as sink:
        ragotel.request(lambda question: "call +49 30 1234567 or 4111 1111 1111 1111")("Why?")
        span = sink.stage("request")
    assert span[at.CONTENT_MODE] == "redacted"
    assert span[at.ANSWER] == "call [phone] or [card]"
    assert span[at.REDACTIONS] == '{"card":1,"phone":1}'
    with recording(content_mode="redacted") as sink:
        ragotel.request(lambda question: "No number.")("Why?")
        assert sink.stage("request")[at.CONTENT_MODE] == "full"
        assert at.REDACTIONS not in sink.stage("request")


def test_a_chunk_text_that_would_be_changed_is_not_sent() -> None:
    """It would not answer to its hash; id, score and hash stay, and it is counted once."""
    texts = ["Write to ana@example.com.", "Nothing to hide."]
    hits = [{"id": str(n), "score": 1.0, "text": text} for n, text in enumerate(texts)]
    with recording(content={"chunks": "redacted"}) as sink:
        for _ in range(2):
            ragotel.retrieve(lambda query: hits)("q")
        first, second = sink.stages("retrieve")
    assert first[at.CHUNKS] == {chunk_sha(texts[1]): texts[1]}
    assert [row["sha"] for row in first[at.DOCUMENTS]] == [chunk_sha(text) for text in texts]
    assert (first[at.REDACTIONS], second.get(at.REDACTIONS)) == ('{"email":1}', None)
    with recording(content={"chunks": "truncated(20)"}) as sink:
        ragotel.retrieve(lambda query: hits)("q")
        assert sink.stage("retrieve")[at.CHUNKS] == {chunk_sha(texts[1]): texts[1]}


@pytest.mark.parametrize("fails", [lambda text: 1 / 0, lambda text: None, lambda text: b"x"])
def test_a_redaction_that_fails_lets_nothing_leave(fails: Callable[[str], Any]) -> None:
    """The text is off, the fault counted; the service does not notice."""
    with recording(content_mode="redacted", redact=fails) as sink:
        assert ragotel.request(lambda question: "yes")("secret question") == "yes"
        span = sink.stage("request")
        assert b"secret" not in exported(sink)
    assert (span.get(at.QUERY), span.get(at.ANSWER), span[at.CONTENT_MODE]) == (None, None, "off")
    assert (span[at.REDACTIONS], span[at.CAPTURE_ERRORS]) == ('{"failed":2}', 2)


def test_a_user_is_hashed_as_spelt() -> None:
    """Who knows the name can make the hash, and so find or erase the requests."""
    with recording(content={"user": "hashed"}) as sink:
        with ragotel.context(user_id="Ana", session_id="s-1"):
            ragotel.request(lambda question: "yes")("q")
        span = sink.stage("request")
    assert span[at.USER_ID] == content_hash("Ana") != content_hash("ana")
    assert span[at.CONVERSATION_ID] == content_hash("s-1")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("ana.b+c@mail.example.co.uk!", "[email]!"),
        ("jürgen@müller.de", "[email]"),
        ("a@b and @name stay", "a@b and @name stay"),
        ("4111 1111 1111 1111", "[card]"),
        ("4111-1111-1111-1111 123", "[card] 123"),
        ("5500005555555559.", "[card]."),
        ("378282246310005", "[card]"),
        ("order 4111111111111112", "order 4111111111111112"),
        ("0000000000000000", "0000000000000000"),
        ("DE89 3704 0044 0532 0130 00", "[iban]"),
        ("pay DE89370400440532013000 today", "pay [iban] today"),
        ("gb82 west 1234 5698 7654 32 is paid", "[iban] is paid"),
        ("DE89370400440532013001", "DE89370400440532013001"),
        ("+49 (0)30 901820", "[phone]"),
        ("call 0049-30-901820 now", "call [phone] now"),
        ("030 9018200", "[phone]"),
        ("(0171) 123 45 67", "[phone]"),
        ("(555) 234-5678 or 555-234-5678", "[phone] or [phone]"),
        ("+1.555.234.5678", "[phone]"),
        ("ana%40example.com in a link", "[email] in a link"),
        ("ana\uff20example.com, ana@[192.168.1.1]", "[email], [email]"),
        ("4111  1111  1111  1111", "[card]"),
        ("4111.1111.1111.1111", "[card]"),
        ("4111\u20091111\u20091111\u20091111", "[card]"),
        ("4111\u20131111\u20131111\u20131111", "[card]"),
        ("DE89\u202f3704\u202f0044\u202f0532\u202f0130\u202f00", "[iban]"),
        ("06.12.34.56.78.", "[phone]."),
        ("+49\u202f30\u202f901820, +49\u201130\u2011901820", "[phone], [phone]"),
        ("use sk-" + "proj-" + "aB3_" * 10 + ", please", "use [key], please"),
        ("ghp" + "_" + "aB3d" * 9, "[key]"),
        ("AKIA" + "ABCDEFGH23456789.", "[key]."),
        ("AIza" + "abcde" * 7, "[key]"),
        (
            "eyJ" + "hbGciOiJI.eyJ" + "a" * 3_000 + ".c2ln" * 2 + "nature end",
            "[key].c2lnnature end",
        ),
        ("-----BEGIN RSA PRIVATE KEY-----\nMII=\n-----END RSA PRIVATE KEY-----", "[key]"),
        ("sk-learn, risk-assessment-of-all-those-things, eyJ", None),
        ("on 2026-11-30 at 10:15", "on 2026-11-30 at 10:15"),
        ("01-02-2026", "01-02-2026"),
        ("21 calendar days, 1,000,000.50", "21 calendar days, 1,000,000.50"),
        ("version 1.2.3.4 build 20261130", "version 1.2.3.4 build 20261130"),
        ("", ""),
    ],
)
def test_what_the_patterns_mask(text: str, masked: str | None) -> None:
    """Numbers with a wrong check digit, dates and amounts stay."""
    assert redact(text) == (text if masked is None else masked)


def test_windows_cut_no_number() -> None:
    """A long text is read in windows: a number anywhere in it is masked as in a short one."""
    for before in range(16_350, 16_390):
        text = "x" * before + " 4111 1111 1111 1111 " + "y" * 5000 + " ana@example.com"
        assert redact(text) == "x" * before + " [card] " + "y" * 5000 + " [email]"


@pytest.mark.parametrize(
    "piece",
    [
        *("a", "1", "1 ", "+1", "a@", "DE12", "(0", ".a@b", "%40", "a%40", "1.", "4111 "),
        *("eyJa.", "eyJaaaaaaaaa", "sk-", "-----BEGIN PRIVATE KEY-----"),
    ],
)
def test_no_text_is_slow_to_mask(piece: str) -> None:
    """Long runs of what patterns begin with are read in one pass (a slow one would hang here)."""
    text = piece * 50_000
    assert len(redact_and_count(text)[0]) <= len(text) * 4


@pytest.mark.parametrize(
    ("content", "rules"),
    [
        (None, {}),
        ("ids", dict.fromkeys(ALL_TEXTS, "off")),
        ("query=redacted, answer=OFF", {"query": "redacted", "answer": "off"}),
        ({"prompt": "truncated(500)"}, {"prompt": "truncated(500)"}),
    ],
)
def test_rules_by_field(content: Any, rules: dict[str, str]) -> None:
    """A mapping, the same as a text, or the word ids."""
    assert read_content(content) == rules


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"content": {"questions": "off"}}, "no field 'questions'"),
        ({"content": {"query": "loud"}}, "'loud'; it can be full, truncated"),
        ({"content": 5}, "must map fields to rules"),
        ({"redact": "email"}, "must be a function"),
    ],
)
def test_wrong_rules_are_refused(keywords: dict[str, Any], message: str) -> None:
    """A rule that cannot be obeyed is no reason to send everything."""
    with pytest.raises(ConfigurationError, match=message):
        resolve_settings(**keywords)
