"""Services that send no text: what the store then holds, and what it can still tell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from own_database import own_database
from ragotel.cli.dump import dump_lines
from ragotel.store import Store
from ragotel.triage.show import show_request
from seed_service import Told, read_case, serve, serving, tell

FACTS = json.loads((Path(__file__).parent / "seed_cases.json").read_text("utf-8"))
CASES = {case["name"]: case for case in FACTS["requests"]}


@pytest.fixture(scope="module")
def verdicts(engine: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """All worked cases through a service that sends ids only: their verdicts by name."""
    folder = tmp_path_factory.mktemp("ids")
    with own_database(engine):
        told, names = Told(), {}
        for name in CASES:
            case = read_case(CASES[name])
            with serving(engine, folder, content="ids"):
                request_id = serve(case)(case.question, "ana").request_id
            names[request_id] = name
            told.label(case, request_id)
        held = _texts_of(engine, names)
        tell(engine, folder, told)
        rows = engine.rows("select request_id, bucket, missing from triage_requests")
        dumped = dump_lines(show_request(engine, next(iter(names)), with_texts=True))
        yield {"held": held, "dumped": dumped, **{names[row["request_id"]]: row for row in rows}}


def _texts_of(store: Store, names: dict[str, str]) -> dict[str, int]:
    """How often a word of any question stands in any column of any table, by table."""
    words = [read_case(CASES[name]).question for name in names.values()]
    tables = ("otel_traces", "rag_requests", "rag_stages", "rag_prompts", "rag_chunks")
    return {
        table: store.scalar(
            "select countIf(arrayExists(word -> position(line, word) > 0, {words:Array(String)})) "
            f"from (select toString(tuple(*)) as line from {table})",
            {"words": words},
        )
        for table in tables
    }


def test_no_question_is_in_any_table(verdicts: dict[str, Any]) -> None:
    """Neither as a question, nor in a search, nor in a prompt."""
    assert set(verdicts["held"].values()) == {0}


def test_texts_that_the_request_did_not_send_are_said_to_be_others(
    verdicts: dict[str, Any],
) -> None:
    """`show --dump` prints the texts of a manifest, and says that they are not the request's."""
    assert verdicts["dumped"][:2] == [
        "",
        "The request sent no texts; those below are what a manifest, or another request, has of "
        "the same ids and hashes.",
    ]


@pytest.mark.parametrize("name", CASES)
def test_ids_and_hashes_give_the_same_verdict(verdicts: dict[str, Any], name: str) -> None:
    """Passages are found in the prompt before its text is let go, so the bucket is the same."""
    expected = CASES[name]["expect"].get("bucket")
    if expected is None:
        pytest.skip("the case states no bucket")
    assert (name, verdicts[name]["bucket"]) == (name, expected)
