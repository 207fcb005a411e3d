"""One step is one stage, whatever stands above and below; a fault of a hook's stops nothing."""

from __future__ import annotations

import asyncio
import importlib
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from corpus import QUESTION, TEXTS
from laws import ids, kinds, rows, scores
from opentelemetry import trace
from opentelemetry.instrumentation.utils import suppress_instrumentation

import ragotel
from ragotel import faults, instrument
from ragotel.instrument import hooks
from ragotel.instrument.calls import Call
from ragotel.instrument.calls import recorded as hooking
from ragotel.instrument.hooks import Family, Hook, Library, Switch
from ragotel.instrument.reading import columns
from ragotel.testing import Recorded

BEST = list(TEXTS)[:3]


class Client:
    """A vector client, as a library would have it."""

    def search(self, query: str, k: int = 3) -> list[tuple[str, float]]:
        if query == "fail":
            raise ValueError("no index")
        return [(key, 0.9 - place / 10) for place, key in enumerate(BEST[:k])]

    async def asearch(self, query: str) -> list[tuple[str, float]]:
        await asyncio.sleep(0)
        return self.search(query)


class Model:
    """A model's client, whose streams are generators."""

    def complete(self, prompt: str) -> dict[str, Any]:
        return {"text": "21 days", "usage": {"input_tokens": 9, "output_tokens": 2}}

    def stream(self, prompt: str) -> Any:
        yield from ("21 ", "days")


class Plugin:
    """A base class whose subclasses do the work."""


def _search(instance: Any, args: Any, kwargs: Any) -> Call:
    return Call(
        "retrieve",
        "client",
        query=args[0],
        values={"gen_ai.data_source.id": "docs", "rag.score.kind": "cosine"},
        read=lambda result: columns(
            [key for key, _ in result],
            [score for _, score in result],
            [TEXTS[key] for key, _ in result],
            higher_is_better=True,
        ),
    )


def _model(instance: Any, args: Any, kwargs: Any) -> Call:
    def reply(result: Any) -> dict[str, Any]:
        usage = result["usage"] if isinstance(result, dict) else {}
        return {f"gen_ai.usage.{name}": tokens for name, tokens in usage.items()}

    return Call("generate", "model", messages=args[0], reply=reply)


def _broken(instance: Any, args: Any, kwargs: Any) -> Call:
    raise RuntimeError("a fault of ours")


def _unreadable(instance: Any, args: Any, kwargs: Any) -> Call:
    return Call("retrieve", "unreadable", read=_broken_read)


def _broken_read(result: Any) -> Any:
    raise RuntimeError("a fault of ours")


def table(*more: Hook, **options: Any) -> Library:
    return Library(
        name="shop",
        package="ragotel",
        versions=">=0",
        hooks=(
            Hook(__name__, "Client.search", hooking(_search)),
            Hook(__name__, "Client.asearch", hooking(_search)),
            Hook(__name__, "Model.complete", hooking(_model)),
            Hook(__name__, "Model.stream", hooking(_model)),
            *more,
        ),
        **options,
    )


@pytest.fixture
def shop(recorded: Recorded) -> Any:
    switch = Switch(table())
    switch.turn_on()
    yield switch
    switch.turn_off()


def test_legs_in_a_pool_belong_to_their_request(recorded: Recorded, shop: Switch) -> None:
    """Clients called in threads are stages of the request that started them."""

    @ragotel.request
    def answer(question: str) -> list[Any]:
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(Client().search, [question, "another wording"]))

    answer(QUESTION)
    assert kinds(recorded) == ["request", "retrieve", "retrieve"]
    assert len({stage["rag.request.id"] for stage in recorded.stages("retrieve")}) == 1


def test_side_by_side_coroutines_keep_their_parents(recorded: Recorded, shop: Switch) -> None:
    """An async call below another is that one's, and its neighbour is its own stage."""

    @ragotel.request
    async def answer(question: str) -> Any:
        return await asyncio.gather(Client().asearch(question), Client().asearch("b"))

    asyncio.run(answer(QUESTION))
    assert kinds(recorded) == ["request", "retrieve", "retrieve"]


def test_an_inner_call_adds_what_the_outer_one_lacks(recorded: Recorded, shop: Switch) -> None:
    """Ids by text, scores by id; what the decorator was told stays."""

    @ragotel.retrieve(leg="dense", score_kind="mine")
    def by_text(question: str) -> list[str]:
        return [TEXTS[key] for key, _ in reversed(Client().search(question))]

    @ragotel.retrieve(leg="dense")
    def with_scores(question: str) -> list[tuple[str, float]]:
        return [(key, score * 10) for key, score in Client().search(question)]

    by_text(QUESTION)
    stage = recorded.stage("retrieve")
    assert ids(stage) == BEST[::-1]
    assert scores(stage) == pytest.approx([0.7, 0.8, 0.9])
    assert stage["rag.score.kind"] == "mine"
    assert stage["gen_ai.data_source.id"] == "docs"
    recorded.clear()

    # Scores of the function's own are of its own kind.
    with_scores(QUESTION)
    stage = recorded.stage("retrieve")
    assert scores(stage) == pytest.approx([9.0, 8.0, 7.0])
    assert "rag.score.kind" not in stage


def test_other_documents_than_those_found_inside(recorded: Recorded, shop: Switch) -> None:
    """Parents of small chunks are another list: both are kept."""

    @ragotel.retrieve(leg="parents")
    def parents(question: str) -> list[dict[str, str]]:
        Client().search(question)
        return [{"id": "page-1", "text": "the whole page"}]

    parents(QUESTION)
    outer, inner = recorded.stages("retrieve")
    assert (ids(outer), ids(inner)) == (["page-1"], BEST)


def test_a_leg_that_failed_inside_is_kept(recorded: Recorded, shop: Switch) -> None:
    """A fallback does not hide what fell."""

    @ragotel.retrieve(leg="careful")
    def careful(question: str) -> list[Any]:
        try:
            return Client().search("fail")
        except ValueError:
            return Client().search(question)

    careful(QUESTION)
    assert [s["rag.outcome"] for s in recorded.stages("retrieve")] == ["ok", "error"]
    assert ids(recorded.stages("retrieve")[0]) == BEST


def test_tokens_count_once(recorded: Recorded, shop: Switch) -> None:
    """A decorated generation takes the client's usage; its prompt is not told twice."""

    @ragotel.assemble(template="answer")
    def build(question: str, found: list[Any]) -> str:
        return "\n".join([*(TEXTS[key] for key, _ in found), question])

    @ragotel.generate
    def complete(prompt: str) -> str:
        return str(Model().complete(prompt)["text"])

    @ragotel.request
    def answer(question: str) -> str:
        return complete(build(question, Client().search(question)))

    answer(QUESTION)
    assert kinds(recorded) == ["request", "retrieve", "assemble", "generate"]
    assert recorded.stage("generate")["gen_ai.usage.input_tokens"] == 9
    assert ids(recorded.stage("assemble")) == BEST


def test_several_calls_in_one_generation_add_up(recorded: Recorded, shop: Switch) -> None:
    """An agent's loop in one decorated function used what all of its calls used."""

    @ragotel.generate
    def loop(prompt: str) -> str:
        return " ".join(str(Model().complete(prompt)["text"]) for _ in range(3))

    loop("go")
    assert kinds(recorded) == ["generate"]
    stage = recorded.stage("generate")
    assert stage["gen_ai.usage.input_tokens"] == 27
    assert stage["gen_ai.usage.output_tokens"] == 6


def test_a_prompt_that_rephrases_takes_no_list(recorded: Recorded, shop: Switch) -> None:
    """Only the prompt that quotes the passages has them; each prompt knows its own."""

    @ragotel.request
    def answer(question: str) -> Any:
        found = Client().search(question)
        Model().complete(f"Is this a question? {question}")
        return Model().complete(f"{TEXTS[found[0][0]]}\n{question}")

    answer(QUESTION)
    first, second = recorded.stages("assemble")
    assert "rag.candidates" not in first
    assert ids(second) == BEST[:1]
    assert second["rag.candidates.in_count"] == 3


def test_a_stream_ends_with_its_last_chunk(recorded: Recorded, shop: Switch) -> None:
    """Also when it is not read to its end."""
    assert list(Model().stream("a")) == ["21 ", "days"]
    stream = Model().stream("b")
    next(stream)
    stream.close()
    outcomes = [stage["rag.outcome"] for stage in recorded.stages("generate")]
    assert outcomes == ["ok", "stopped_early"]


def test_outside_of_a_request_a_call_is_a_stage_alone(recorded: Recorded, shop: Switch) -> None:
    """It counts in nothing that counts requests, and makes no prompt."""
    Client().search(QUESTION)
    Model().complete("hello")
    assert sorted(kinds(recorded)) == ["generate", "retrieve"]
    assert all("rag.request.id" not in span["attributes"] for span in recorded.spans)


def test_suppressed(recorded: Recorded, shop: Switch) -> None:
    """OpenTelemetry's own word for silence is obeyed, but not inside of a request of ours."""
    with suppress_instrumentation():
        Client().search(QUESTION)
    assert kinds(recorded) == []

    @ragotel.request
    def answer(question: str) -> Any:
        with suppress_instrumentation():
            return Client().search(question)

    answer(QUESTION)
    assert kinds(recorded) == ["request", "retrieve"]


def test_the_global_provider_is_left_alone(recorded: Recorded, shop: Switch) -> None:
    """Nothing but what the service itself sets."""
    before = trace._TRACER_PROVIDER
    Client().search(QUESTION)
    assert trace._TRACER_PROVIDER is before


def test_a_fault_of_a_hook_stops_nothing(recorded: Recorded) -> None:
    """The service gets its result; the other hooks do their work; the fault is counted."""
    faults.reset()
    switch = Switch(table(Hook(__name__, "Plugin.gone", hooking(_search))))
    broken = Library(
        "broken",
        "ragotel",
        ">=0",
        hooks=(
            Hook(__name__, "Model.complete", hooking(_broken)),
            Hook(__name__, "Client.asearch", hooking(_unreadable)),
        ),
    )
    other = Switch(broken)
    other.turn_on()
    assert Model().complete("x")["text"] == "21 days"
    assert asyncio.run(Client().asearch(QUESTION))[0][0] == BEST[0]
    assert recorded.stage("retrieve")["rag.capture.errors"] == 1
    assert recorded.stage("retrieve")["rag.outcome"] == "ok"
    assert sum(faults.counts().values()) == 2
    other.turn_off()
    switch.turn_on()
    assert switch.missing == [f"{__name__}.Plugin.gone"]
    assert Client().search(QUESTION)
    switch.turn_off()
    faults.reset()


def test_someone_elses_patch_on_top_of_ours_stays(recorded: Recorded) -> None:
    """What another tool has wrapped is not torn out; our own part below it goes to sleep."""
    before = vars(Client)["search"]
    switch = Switch(table())
    switch.turn_on()
    ours = vars(Client)["search"]

    def theirs(self: Client, *args: Any, **kwargs: Any) -> Any:
        return ours.__get__(self, Client)(*args, **kwargs)

    Client.search = theirs  # type: ignore[method-assign]
    try:
        switch.turn_off()
        assert vars(Client)["search"] is theirs
        assert len(Client().search(QUESTION)) == 3
        assert kinds(recorded) == []
    finally:
        Client.search = before  # type: ignore[method-assign]


def test_a_library_is_patched_when_it_is_imported(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """Never before: instrumenting imports nothing."""
    (tmp_path / "lateshop.py").write_text(
        "class Client:\n    def search(self, q):\n        return []\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    switch = Switch(
        Library("late", "ragotel", ">=0", (Hook("lateshop", "Client.search", recorded_search),))
    )
    switch.turn_on()
    assert "lateshop" not in sys.modules
    module: types.ModuleType = importlib.import_module("lateshop")
    module.Client().search(QUESTION)
    assert len(recorded.stages("retrieve")) == 1
    switch.turn_off()
    del sys.modules["lateshop"]


recorded_search = hooking(lambda instance, args, kwargs: Call("retrieve", "late", query=args[0]))


def test_configuring_twice_and_by_name(recorded: Recorded) -> None:
    """Names that nobody knows are refused, with those that are known."""
    with pytest.raises(ragotel.errors.ConfigurationError, match="cannot instrument 'qdrnt'"):
        instrument.instrument("qdrnt")
    assert set(instrument.instrumented()) <= set(instrument.LIBRARIES)


def test_subclasses_now_and_later(recorded: Recorded) -> None:
    """A family's methods are hooked on every class that defines them, and given back."""

    class Now(Plugin):
        def run(self, query: str) -> list[Any]:
            return []

    raw = vars(Now)["run"]
    family = Family(__name__, "Plugin", {"run": recorded_search})
    switch = Switch(Library("family", "ragotel", ">=0", families=(family,)))
    switch.turn_on()

    class Later(Plugin):
        def run(self, query: str) -> list[Any]:
            return []

    Now().run("a")
    Later().run("b")
    assert len(recorded.stages("retrieve")) == 2
    switch.turn_off()
    assert vars(Now)["run"] is raw
    assert "__init_subclass__" not in vars(Plugin)
    assert not isinstance(vars(Later)["run"], hooks._Hooked)
    assert rows(recorded.stages("retrieve")[0]) == []
