"""Conflicts, other sources, split claims, pins, labels that outlive re-chunking, and the dump."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from cli_store import run_in
from own_database import own_database
from ragotel.cli.dump import dump_lines
from ragotel.cli.show import picture_lines
from ragotel.store import Store
from ragotel.triage.manifest import Version, load_manifest
from ragotel.triage.resolve import Place, resolve_label
from ragotel.triage.show import Picture, show_request
from seed_service import INDEX, Case, Hit, Told, read_case, serve, serving, tell, write

FACTS = json.loads((Path(__file__).parent / "seed_cases.json").read_text("utf-8"))
TEAM = next(case for case in FACTS["requests"] if case["name"] == "team-seats")
CONFLICTS = (
    "label_id, kind, statements_right, statements_wrong, is_majority, answer_values, "
    "competing_chunk_ids, superseded_chunk_ids, unread_chunk_ids"
)


def case(name: str, question: str, answer: str, span: str, *texts: str, gold: str = "") -> Case:
    """Passages that are all found and sent; the first is gold unless *gold* names another."""
    hits = [Hit(f"{name}/{at}#0", round(1 - at / 10, 1), text) for at, text in enumerate(texts)]
    gold_id = gold or hits[0].id
    return Case(name, question, gold_id, span, hits, [hit.id for hit in hits], 5, answer)


CASES = [
    read_case(TEAM),
    case(
        *("words", "How many seats?", "The answer is five.", "10 seats"),
        *("It has 10 seats at €12 each.", "It has five seats.", "You get a 5-seat plan."),
        *("It never had 5 seats.", "See section 5 of the contract."),
    ),
    case(
        *("fee", "What is the fee?", "The fee is €20 per seat, for 10 seats.", "€12"),
        *("The fee is €12 per seat for 10 seats.", "It was 20 EUR.", "We had 10 seats.", "20 men"),
    ),
    case(
        *("percent", "The SLA credit for 4 hours?", "10% for 4 hours.", "25%"),
        *("25% is paid.", "10 percent is paid.", "Within 4 hours.", "Within 10 days."),
    ),
    case(
        *("date", "When does it end?", "It ends on 2026-03-01.", "31 December 2026"),
        *("It ends on 31 December 2026.", "It ended on 2026-03-01.", "In 2026."),
    ),
    case(
        *("quoted", "Which field?", 'Use "page_token".', "next_cursor"),
        *("The next_cursor field.", "The page_token field.", "No field."),
    ),
    case(
        *("no-value", "How long is it?", "Some time.", "14 days"),
        *("14 days for all.", "30 days for all."),
    ),
    Case(
        *("stale-neighbour", "How long is the pause?", "stale-neighbour/0#0", "14 minutes"),
        [
            Hit("stale-neighbour/0#0", 0.9, "The pause takes 14 minutes."),
            Hit("cafe-2019#0", 0.8, "The cafe was open at night.", superseded=True),
        ],
        *(["stale-neighbour/0#0", "cafe-2019#0"], 5, "It takes 20 minutes."),
    ),
    case(
        *("many", "How many?", ", ".join(f"{n} seats for {n} men" for n in range(11, 90))),
        *("10 seats", "It has 10 seats.", "It has 12 seats."),
    ),
    case(
        *("other-source", "How long is the notice?", "30 days", "14 days"),
        *("A trial runs for 14 days, by the way.", "Nothing of it here."),
        gold="notice#0",
    ),
    case(
        *("split", "Which band has 25%?", "No credit.", "between two and eight hours 25%"),
        *("Our marketing promises much uptime.", "Incidents are told by mail."),
        gold="sla.md#400",
    ),
]
SLA = {
    "sla.md#0": "Service credits.",
    "sla.md#400": "The bands: up to two hours 10%; between two and",
    "sla.md#800": "eight hours 25%; beyond 50%.",
    "sla.md#1200": "How to ask for it.",
}


@dataclass
class Worked:
    """What the store says of every case; read once, as each view costs seconds."""

    conflicts: dict[str, dict[str, Any]] = field(default_factory=dict)
    others: list[dict[str, Any]] = field(default_factory=list)
    splits: list[dict[str, Any]] = field(default_factory=list)
    pictures: dict[str, Picture] = field(default_factory=dict)


@pytest.fixture(scope="module")
def worked(engine: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worked]:
    folder = tmp_path_factory.mktemp("divergence")
    with own_database(engine):
        told, requests = Told(), {}
        for one in CASES:
            with serving(engine, folder):
                requests[one.name] = serve(one)(one.question, "ana").request_id
            told.label(one, requests[one.name])
        told.manifest.pop("sla.md#400")
        told.manifest.update(SLA)
        tell(engine, folder, told)
        changes = [
            {"chunk_id": "pricing/plans-current.md#0", "text": "The plan has 12 seats."},
            {"chunk_id": "pricing/plans-2023.md#0", "deleted": True},
        ]
        path = write(folder, "changes", *changes)
        assert not load_manifest(engine, [path], Version(INDEX, "v8", "v7")).refused
        rows = engine.rows(f"select {CONFLICTS} from triage_conflicts")
        yield Worked(
            conflicts={row.pop("label_id"): row for row in rows},
            others=engine.rows(
                "select label_id, position, chunk_id, claim_offset_chars, is_gold_sent "
                "from triage_other_sources order by label_id"
            ),
            splits=engine.rows("select * from triage_split_claims"),
            pictures={
                name: show_request(engine, requests[name], with_texts=True)
                for name in ("team-seats", "other-source", "split")
            },
        )


def conflict(right: int, wrong: int, *values: str, ids: list[str], **facts: Any) -> dict[str, Any]:
    return {
        "kind": "competing_value",
        "statements_right": right,
        "statements_wrong": wrong,
        "is_majority": wrong > right,
        "answer_values": list(values),
        "competing_chunk_ids": ids,
        "superseded_chunk_ids": [],
        "unread_chunk_ids": [],
        **facts,
    }


def test_passages_that_state_what_the_wrong_answer_said(worked: Worked) -> None:
    """One right against two wrong in the published case; number words, currencies, percentages,
    dates and quoted strings alike. What is denied, of another unit, or in the question does not
    count, and an answer without a value has no competitor; nor is a passage one that is out of date
    but of another document and says something else."""
    expect = TEAM["expect"]
    assert worked.conflicts == {
        "team-seats": conflict(
            *(expect["statements"]["right"], expect["statements"]["wrong"], "5 seats"),
            ids=expect["competing_chunk_ids"],
            kind="superseded_twin",
            superseded_chunk_ids=["pricing/plans-2023.md#0"],
        ),
        "words": conflict(1, 2, "5", ids=["words/1#0", "words/2#0"]),
        "fee": conflict(1, 1, "20 eur", ids=["fee/1#0"]),
        "percent": conflict(1, 1, "10 %", ids=["percent/1#0"]),
        "date": conflict(1, 1, "2026-03-01", ids=["date/1#0"]),
        "many": conflict(1, 1, "12 seats", ids=["many/1#0"]),
        "quoted": conflict(1, 1, "page_token", ids=["quoted/1#0"]),
    }


def test_show_counts_for_and_against_the_claim(worked: Worked) -> None:
    """The whiteboard says how many sent passages state what, and which of them is superseded."""
    lines = picture_lines(worked.pictures["team-seats"])
    at = lines.index("  stated     the claim in 1 sent · what the answer said (5 seats) in 2")
    assert lines[at + 1] == "  superseded pricing/plans-2023.md#0"


def test_a_chunk_that_states_the_claim_without_being_gold_is_named(worked: Worked) -> None:
    """Trial periods of 14 days are no notice of 14 days: the view and `show` say whose words."""
    assert worked.others == [
        {
            "label_id": "other-source",
            "position": 1,
            "chunk_id": "other-source/0#0",
            "claim_offset_chars": 17,
            "is_gold_sent": False,
        }
    ]
    picture = worked.pictures["other-source"]
    assert [row["bucket"] for row in picture.verdicts] == ["retrieval_miss"]
    marks = [(row["rank"], row["is_other_source"]) for row in picture.lists[0]["candidates"]]
    assert marks == [(1, True), (2, False)]
    lines = picture_lines(picture)
    assert any(line.startswith("~     1  1.000") for line in lines)
    assert "~ other-source/0#0 (sent)" in lines


def test_a_claim_across_two_neighbours_is_a_fault_of_the_chunker(worked: Worked) -> None:
    """No chunk states the band of 25 %, two neighbours joined do: view and `show` agree."""
    assert worked.splits == [
        {
            "label_id": "split",
            "passage": 1,
            "index_name": "docs",
            "index_version": "v7",
            "doc_id": "sla.md",
            "first_chunk_id": "sla.md#400",
            "second_chunk_id": "sla.md#800",
            "claim": "between two and eight hours 25%",
            "order_by": "chunk_id",
        }
    ]
    lines = picture_lines(worked.pictures["split"])
    at = lines.index("gold in index docs v7, document sla.md, in the order of their ids")
    assert lines[at + 1 : at + 5] == [
        "  previous  sla.md#0: Service credits.",
        "* gold      sla.md#400: The bands: up to two hours 10%; between two and",
        "  next      sla.md#800: eight hours 25%; beyond 50%.",
        '! "between two and eight hours 25%" stands in no chunk, only across sla.md#400 and '
        "sla.md#800: a fault of the chunker, reported at retrieval.",
    ]
    picture = worked.pictures["split"]
    sent = [{**row, "bucket": "context_problem"} for row in picture.passages]
    lines = picture_lines(replace(picture, passages=sent))
    assert lines[at + 4].endswith("a fault of the chunker, reported at prompt assembly.")


def test_a_complaint_is_judged_against_the_version_that_served(worked: Worked) -> None:
    """v8 came after: the gold was changed in it, which the verdict on v7 does not feel."""
    (pin,) = worked.pictures["team-seats"].pins
    assert (pin["index_version"], pin["newest_version"], pin["is_newest"]) == ("v7", "v8", False)
    assert [(c["version"], c["chunk_id"], c["change"]) for c in pin["changes"]] == [
        ("v8", "pricing/plans-current.md#0", "changed")
    ]
    lines = picture_lines(worked.pictures["team-seats"])
    assert any("docs v7 served; the newest known version is v8 (" in line for line in lines)
    assert f"{' ' * 13}since v8: pricing/plans-current.md#0 changed" in lines


def test_the_dump_has_every_text_and_the_prompt(worked: Worked) -> None:
    """What was found, what was sent, and the prompt as it was rendered."""
    picture = worked.pictures["team-seats"]
    lines = dump_lines(picture)
    assert lines[1:4] == [
        "found: dense",
        "*   1  0.791  SENT  pricing/plans-current.md#0",
        "      The page pricing/plans-current.md in part 0 is about its own matter. "
        "It says: 10 seats, no more.",
    ]
    sent = lines.index("sent, in prompt order")
    assert [line for line in lines[sent:] if line[:5].strip() and line[4:5].isdigit()] == [
        "*   1  0.791  pricing/plans-current.md#0",
        "    2  0.744  faq/billing.md#400",
        "    3  0.739  pricing/plans-2023.md#0",
        "    4  0.702  partners/reseller-faq.md#800",
        "    5  0.688  handbook/billing.md#1200",
    ]
    assert picture.prompt is not None
    prompt = picture.prompt["prompt"].splitlines()
    assert lines[-len(prompt) :] == prompt


def test_an_old_label_judges_the_requests_after_the_corpus_was_cut_anew(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The chunk has another id in v8: resolved over all versions, the label knows both."""
    text = "Hardware goes back within 21 calendar days of delivery."
    span = "21 calendar days"
    old = Case("old", "how long?", "rma#0", span, [Hit("rma#0", 1, text)], ["rma#0"], 5)
    told = Told()
    with serving(store, tmp_path):
        first = serve(old)(old.question, "ana").request_id
    told.label(old, first)
    tell(store, tmp_path, told)
    chunks = [{"chunk_id": "rma.md/b", "text": text}, {"chunk_id": "rma.md/a", "text": "Ship it."}]
    path = write(tmp_path, "v8", *chunks)
    assert not load_manifest(store, [path], Version(INDEX, "v8")).refused
    hit = Hit("rma.md/b", 1, text)
    new = Case("old", "how long?", "rma#0", span, [hit], [hit.id], 5, version="v8")
    with serving(store, tmp_path):
        second = serve(new)(new.question, "bob").request_id
    buckets = "select request_id, bucket, gold_rank from triage_requests"
    assert verdicts(store, buckets) == {
        first: ("generation_error", 1),
        second: ("corpus_gap", None),
    }
    picture = show_request(store, second)
    assert [line for line in picture_lines(picture) if "resolve" in line] == [
        "   run       ragotel labels resolve --label old --all-versions --write"
    ]
    listed = run_in(store, capsys)("triage").out.splitlines()
    assert "corpus_gap · ingest · lost at not_indexed · stated under another id" in listed
    assert "   run       ragotel labels resolve --label old --all-versions --write" in listed
    verdict = picture.verdicts[0]
    assert (verdict["owner"], verdict["restated_in"]) == ("the label's owner", ["rma.md/b"])
    assert verdict["fixes_that_work"] == [
        "rma.md/b of the version that served states the claim: if it answers, bring the label up "
        "to date: ragotel labels resolve --label old --all-versions --write",
        "if not: find the ingest run that lost the passage, and what else that run lost",
    ]
    resolved = resolve_label(store, "old", Place(all_versions=True), write=True)
    assert [(row["version"], row["chunk_id"]) for row in resolved.rows] == [
        ("v7", "rma#0"),
        ("v8", "rma.md/b"),
    ]
    assert resolved.written_ids == ["rma.md/b"]
    assert verdicts(store, buckets) == {first: ("generation_error", 1), second: ("ungraded", 1)}


def verdicts(store: Store, sql: str) -> dict[str, tuple[str, int | None]]:
    return {row["request_id"]: (row["bucket"], row["gold_rank"]) for row in store.rows(sql)}
