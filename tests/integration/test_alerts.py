"""Alerts: the published distribution day by day, and what breaks its limits; every other alert."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from cli_store import Ran, insert_spans, run_in
from own_database import step_into
from ragotel.errors import InputError
from ragotel.store import Store
from ragotel.triage.check import ALERTS, COLUMNS
from ragotel.triage.labels import load_labels
from ragotel.triage.limits import LIMITS, Limit, limits_in_force, write_limit
from ragotel.triage.manifest import Version, load_manifest
from seed_service import write

FACTS = json.loads((Path(__file__).parent / "seed_cases.json").read_text("utf-8"))
USUAL: dict[str, int] = FACTS["distribution"]["baseline_percent"]
FIRST_DAY = datetime(2026, 11, 1, 12, 0, tzinfo=timezone.utc)
GAP_DAY, MISS_DAY = 14, 15
"""Days after FIRST_DAY: documents disappear; then the search misses more."""
Row = dict[str, Any]


def of_day(number: int) -> dict[str, int]:
    """Requests of each bucket on a day; questions without an answer stand beside the hundred."""
    changes: dict[int, dict[str, int]] = {
        GAP_DAY: {"corpus_gap": 6, "generation_error": 3},
        MISS_DAY: {"retrieval_miss": 30, "passed": 60},
    }
    return {**USUAL, "not_answerable": 10, **changes.get(number, {})}


def span(
    trace: str,
    number: int,
    stage: str,
    at: datetime,
    service: str = "support-bot",
    **attributes: Any,
) -> tuple[Any, ...]:
    texts = {
        key.replace("__", "."): value if isinstance(value, str) else json.dumps(value)
        for key, value in attributes.items()
    }
    own = {"rag.schema": "1", "rag.stage": stage, "rag.request.id": f"r-{trace}"}
    moment = at + timedelta(milliseconds=number)
    return (
        *(moment, trace, f"{trace}-{number}", f"{trace}-0" if number else "", f"rag.{stage}"),
        *(service, "ragotel", {**own, **texts}, 2_000_000, "Ok"),
    )


def request(trace: str, bucket: str, at: datetime, service: str) -> Iterator[tuple[Any, ...]]:
    """A request whose label is called like the bucket that it is to fall in."""
    is_found = bucket in ("context_problem", "generation_error", "passed")
    is_sent = bucket in ("generation_error", "passed")
    found = [{"id": f"{bucket}#0"}] if is_found else []
    yield span(trace, 0, "request", at, service, rag__label__id=bucket, rag__query=f"And {bucket}?")
    yield span(
        *(trace, 1, "retrieve", at, service),
        gen_ai__data_source__id="docs",
        rag__index__version="v1",
        rag__candidates=[*found, {"id": "other#0"}],
        rag__candidates__count=len(found) + 1,
        gen_ai__retrieval__top_k=5,
    )
    yield span(
        *(trace, 2, "assemble", at, service),
        rag__prompt__text=f"Answer. {f'It is 21 {bucket} days.' if is_sent else 'Nothing.'}",
        rag__content_mode="full",
    )


def days(service: str, counts: dict[int, dict[str, int]]) -> tuple[list[Any], list[Any]]:
    """Spans and grades of a service that had these requests on these days."""
    spans: list[Any] = []
    grades: list[Any] = []
    for day, buckets in counts.items():
        for bucket, count in buckets.items():
            for number in range(count):
                trace = f"{service}-{day:02}-{bucket}-{number}"
                at = FIRST_DAY + timedelta(days=day, minutes=number)
                spans += request(trace, bucket, at, service)
                if bucket in ("generation_error", "passed"):
                    grade = "correct" if bucket == "passed" else "wrong"
                    grades.append({"request_id": f"r-{trace}", "grade": grade})
    return spans, grades


@pytest.fixture(scope="module")
def lived(engine: Store, database: str, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A fortnight as published, then a day with gaps and one with misses; and a small service."""
    from ragotel.triage.grades import load_grades

    folder = tmp_path_factory.mktemp("alerts")
    spans, grades = days("support-bot", {day: of_day(day) for day in range(MISS_DAY + 1)})
    few = {day: {"passed": 9, "retrieval_miss": 1} for day in range(GAP_DAY)}
    more = days("small-bot", {**few, GAP_DAY: {"passed": 6, "retrieval_miss": 4}})
    names = [*USUAL, "not_answerable"]
    labels = [
        {
            "label_id": name,
            "set": "golden",
            "question": f"What of {name}?",
            "answerable": name != "not_answerable",
            "passages": [{"chunk_ids": [f"{name}#0"], "spans": [f"21 {name} days"]}],
        }
        for name in names
    ]
    manifest = [{"chunk_id": f"{name}#0"} for name in names if name != "corpus_gap"]
    insert_spans(engine, *spans, *more[0])
    reports = [
        load_labels(engine, [write(folder, "labels", *labels)]),
        load_manifest(engine, [write(folder, "manifest", *manifest)], Version("docs", "v1")),
        load_grades(engine, [write(folder, "grades", *grades, *more[1])]),
    ]
    assert not any(report.refused for report in reports)
    return engine


@pytest.fixture(scope="module")
def series(lived: Store) -> dict[tuple[str, int, str], Row]:
    """limits_on_buckets by service, day and bucket: the series with its limits, asked once."""
    rows = lived.rows("select * from limits_on_buckets")
    return {
        (row["service_name"], (row["day"] - FIRST_DAY.date()).days, row["bucket"]): row
        for row in rows
    }


def test_the_published_distribution_day_by_day(series: Any) -> None:
    """Each day has the published shares, whatever questions without an answer stand beside them."""
    for day in range(GAP_DAY):
        found = {bucket: series["support-bot", day, bucket]["share"] for bucket in USUAL}
        assert found == {bucket: percent / 100 for bucket, percent in USUAL.items()}
    row = series["support-bot", 3, "not_answerable"]
    assert (row["requests"], row["sample_count"], round(row["share"], 4)) == (10, 110, 0.0909)
    assert {series["support-bot", 3, name]["requests"] for name in ("unknown", "ungraded")} == {0}


def test_the_baseline_is_the_mean_of_the_fourteen_days_before(series: Any) -> None:
    """None on the first day; then the published share, and how far the day is from it."""
    first = series["support-bot", 0, "corpus_gap"]
    assert (first["baseline_days"], first["baseline_share"], first["deviation"]) == (0, None, None)
    row = series["support-bot", GAP_DAY, "corpus_gap"]
    assert (row["baseline_days"], row["baseline_sample_count"]) == (14, 1400)
    assert round(row["baseline_share"], 9) == 0.03
    assert round(row["deviation"], 9) == 0.03
    last = series["support-bot", MISS_DAY, "corpus_gap"]
    assert round(last["baseline_share"], 9) == round((13 * 0.03 + 0.06) / 14, 9)


def test_a_corpus_gap_above_five_percent_is_an_alert_at_an_unchanged_pass_rate(
    series: Any,
) -> None:
    """The pass rate reads 78 % as before; the ingest incident is named all the same."""
    row = series["support-bot", GAP_DAY, "corpus_gap"]
    assert (row["passed_share"], round(row["passed_deviation"], 9)) == (0.78, 0)
    assert row["broken"] == [
        (
            "corpus_gap",
            0.06,
            0.05,
            "corpus_gap is 6 % of 100 answerable labelled requests, the limit is 5 %: an ingest "
            "incident, whatever the pass rate did (78 %, before 78 %).",
        )
    ]


def test_a_deviation_is_an_alert_where_it_is_more_than_chance(series: Any) -> None:
    """Thirty misses of a hundred after twelve are; four of ten after one of ten are not."""
    broken = {key: row["broken"] for key, row in series.items() if row["broken"]}
    assert set(broken) == {
        ("support-bot", GAP_DAY, "corpus_gap"),
        ("support-bot", MISS_DAY, "retrieval_miss"),
    }
    ((name, observed, allowed, message),) = broken["support-bot", MISS_DAY, "retrieval_miss"]
    assert (name, observed, round(allowed, 9)) == ("bucket_deviation", 0.3, 0.14)
    assert message == (
        "retrieval_miss is 30 % of 100 answerable labelled requests, the mean of the 14 days "
        "before was 12 %: 4.4 standard errors away."
    )
    assert series["small-bot", GAP_DAY, "retrieval_miss"]["deviation"] > 0.29


@pytest.fixture
def ragotel(lived: Store, database: str, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    step_into(lived, database)
    return run_in(lived, capsys)


def test_check_exits_1_with_window_figures_example_and_command(
    ragotel: Callable[..., Ran],
) -> None:
    """What cron sends: which window, observed against allowed, of how many, and how to see one."""
    ran = ragotel("check", "--since", "2026-11-15", "--until", "2026-11-16")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        "corpus_gap: corpus_gap  2026-11-15  support-bot, set golden",
        "  corpus_gap is 6 % of 100 answerable labelled requests, the limit is 5 %: an ingest "
        "incident, whatever the pass rate did (78 %, before 78 %).",
        "  observed 6 %, allowed 5 %, of 100",
        "  ragotel show r-support-bot-14-corpus_gap-5",
        "bucket_deviation: retrieval_miss  2026-11-16  support-bot, set golden",
        "  retrieval_miss is 30 % of 100 answerable labelled requests, the mean of the 14 days "
        "before was 12 %: 4.4 standard errors away.",
        "  observed 30 %, allowed 14 %, of 100",
        "  ragotel show r-support-bot-15-retrieval_miss-29",
        "2 limits are broken; 2026-11-15 to 2026-11-16.",
    ]


def test_check_exits_0_with_one_line(ragotel: Callable[..., Ran]) -> None:
    """All within limits: one line says what was judged, and of which days."""
    ran = ragotel("check", "--since", "2026-11-03", "--until", "2026-11-04")
    assert (ran.code, ran.out) == (
        0,
        "All within limits: 240 labelled requests, 0 ingest runs, 240 requests, "
        "2026-11-03 to 2026-11-04.\n",
    )


def test_check_says_that_nothing_was_there_to_judge(ragotel: Callable[..., Ran]) -> None:
    """Days without data are no broken limit: stderr says so, and --require-data makes it one."""
    days = ("--since", "2020-01-01", "--until", "2020-01-02", "--alert", "ingest")
    said = "Nothing was there to judge (0 ingest runs), 2020-01-01 to 2020-01-02.\n"
    assert ragotel("check", *days) == Ran(0, "", said)
    assert ragotel("check", *days, "--require-data") == Ran(1, "", said)
    told = ragotel("check", *days, "--require-data", "--json")
    assert (told.code, told.json["is_fine"], told.json["is_judged"]) == (1, True, False)


def test_check_takes_a_limit_that_was_set_for_a_service(ragotel: Callable[..., Ran]) -> None:
    """A limit for one service breaks there alone, and --built-in takes it back."""
    name = ("retrieval_miss", "--service", "small-bot")
    assert ragotel("limits", "set", *name, "--max-share", "9%", "--min-sample", "5").code == 0
    ran = ragotel("check", "--since", "2026-11-03", "--until", "2026-11-03", "--json")
    assert ran.code == 1
    assert [(alert["name"], alert["service_name"]) for alert in ran.json["alerts"]] == [
        ("bucket_limits", "small-bot")
    ]
    alert = ran.json["alerts"][0]
    assert (alert["observed"], alert["allowed"], alert["sample_count"]) == (0.1, 0.09, 10)
    assert alert["show"] == "ragotel show r-small-bot-02-retrieval_miss-0"
    assert ran.json["judged"] == {"labelled requests": 120, "ingest runs": 0, "requests": 120}
    assert ragotel("limits", "set", *name, "--built-in").code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("check", "--alert", "nothing"), "'nothing' is not one of"),
        (("check", "--since", "someday"), "'someday' is no time"),
        (("check", "--since", "2026-11-03", "--until", "2026-11-01"), "is after --until"),
        (
            ("check", "--service", "suport-bot"),
            "There is no service 'suport-bot'; there are 'small-bot', 'support-bot'.",
        ),
        (("check", "--set", "gold"), "There is no label set 'gold'; there are 'golden'"),
        (("limits", "set", "corpus_gap", "--max-share", "10%"), "is an alert always"),
        (("limits", "set", "corpus_gab", "--max-share", "1%"), "did you mean 'corpus_gap'?"),
        (("limits", "set", "passed", "--max-share", "1%"), "has no max_share"),
        (("limits", "set", "docs_empty", "--max-share", "much"), "'much' is no share"),
        (("limits", "set", "docs_empty"), "Name --max-share"),
    ],
)
def test_wrong_use_is_one_line_and_exit_2(
    ragotel: Callable[..., Ran], arguments: tuple[str, ...], says: str
) -> None:
    """It says what was asked, what is the case and what to do."""
    ran = ragotel(*arguments)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert says in ran.err


def test_limits_built_in_for_all_and_for_one(store: Store) -> None:
    """The service's own value comes first, then that for all, then what is built in."""
    assert [row["limit_name"] for row in limits_in_force(store)] == list(LIMITS)
    write_limit(store, Limit("generation_error", max_share=0.1, min_sample=50))
    write_limit(store, Limit("generation_error", "bot", max_share=0.2))
    rows = [row for row in limits_in_force(store) if row["limit_name"] == "generation_error"]
    names = ("service_name", "max_share", "max_deviation", "min_sample", "is_built_in")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("", 0.1, 0.02, 50, False),
        ("bot", 0.2, 0.02, 50, False),
    ]
    write_limit(store, Limit("generation_error"))
    write_limit(store, Limit("generation_error", "bot"))
    rows = [row for row in limits_in_force(store) if row["limit_name"] == "generation_error"]
    assert [tuple(row[name] for name in names) for row in rows] == [("", None, 0.02, 30, True)]


def test_a_laxer_corpus_gap_in_the_table_changes_nothing(store: Store) -> None:
    """Above 5 % is an alert always, however the row came there."""
    with pytest.raises(InputError):
        write_limit(store, Limit("corpus_gap", max_share=0.2))
    store.insert(
        "rag_limits", [("corpus_gap", "", 0.2)], ("limit_name", "service_name", "max_share")
    )
    assert limits_in_force(store)[0]["max_share"] == 0.05


def ingest_span(trace: str, at: datetime, **counters: float) -> tuple[Any, ...]:
    texts = {f"rag__ingest__{name}": value for name, value in counters.items()}
    about = {"gen_ai__data_source__id": "docs", "rag__index__version": trace, "rag__outcome": "ok"}
    return span(trace, 0, "ingest", at, "indexer", **about, **texts)


def test_ingest_alerts_read_the_counters_beside_the_run_before(store: Store) -> None:
    """Listed short, read short, parsed to nothing, deleted much; an ordinary night is none."""
    usual = {"docs_listed": 200, "docs_parsed": 200, "docs_empty": 1, "mean_chars_per_doc": 4000}
    nights = [
        {**usual, "chunks_deleted": 8},
        {**usual, "docs_listed": 199, "mean_chars_per_doc": 3900, "chunks_deleted": 12},
        {**usual, "docs_listed": 120, "chunks_deleted": 400},
        {**usual, "docs_listed": 120, "docs_empty": 30, "mean_chars_per_doc": 2600.0},
    ]
    insert_spans(
        store,
        *(
            ingest_span(f"v{number}", FIRST_DAY + timedelta(days=number), **counters)
            for number, counters in enumerate(nights)
        ),
    )
    rows = store.rows("select * from alert_ingest order by window_at, subject")
    names = ("example_trace_id", "subject", "observed", "allowed", "sample_count")
    assert [
        tuple(round(v, 4) if isinstance(v := row[n], float) else v for n in names) for row in rows
    ] == [
        ("v2", "chunks_deleted", 400.0, 36.0, 400),
        ("v2", "docs_listed_drop", 0.397, 0.05, 199),
        ("v3", "docs_empty", 0.25, 0.01, 120),
        ("v3", "mean_chars_drop", 0.35, 0.1, 200),
    ]
    assert rows[0]["message"] == (
        "The run that wrote docs v2 deleted 400 chunks, usual are 12: what a truncated crawl does "
        "not list, reconciliation deletes."
    )


def test_an_idle_reranker_is_an_alert_after_twenty_requests_running(store: Store) -> None:
    """Twenty-one unchanged orders in a row are, over midnight too; twenty are not."""

    def reranks(service: str, effects: list[str]) -> Iterator[tuple[Any, ...]]:
        at = FIRST_DAY.replace(hour=23, minute=50)
        for number, effect in enumerate(effects):
            yield span(
                *(f"{service}-{number:02}", 1, "rerank", at + timedelta(minutes=number), service),
                rag__stage__name="cross",
                rag__rerank__effect=effect,
                rag__candidates=[{"id": "a"}, {"id": "b"}],
                rag__candidates__count=2,
                rag__outcome="ok",
            )

    insert_spans(store, *reranks("fallen", ["reordered", *["identity"] * 21]))
    insert_spans(store, *reranks("awake", [*["identity"] * 20, "reordered"]))
    rows = store.rows("select * from alert_degraded")
    assert [(row["service_name"], row["observed"], row["allowed"]) for row in rows] == [
        ("fallen", 21.0, 20.0)
    ]
    assert (rows[0]["subject"], rows[0]["example_trace_id"]) == ("reranker_fallback", "fallen-21")


def test_a_failing_leg_is_an_alert(store: Store) -> None:
    """Two of forty runs that ended in error; the answers went on without that leg."""
    insert_spans(
        store,
        *(
            span(
                *(f"t{number:02}", 1, "retrieve", FIRST_DAY + timedelta(minutes=number)),
                rag__stage__name="bm25",
                rag__outcome="error" if number in (7, 9) else "ok",
            )
            for number in range(40)
        ),
    )
    (row,) = store.rows("select * from alert_degraded")
    names = ("subject", "observed", "allowed", "sample_count", "example_trace_id", "message")
    assert tuple(row[name] for name in names) == (
        *("failed_stage", 0.05, 0.01, 40, "t09"),
        "bm25 failed in 2 of 40 runs: those answers went on without it.",
    )


def test_losses_of_the_record_are_an_alert_by_cause(store: Store) -> None:
    """What was lost, of how much, and why; a share may be allowed."""
    report = span("lost", 0, "", FIRST_DAY, rag__loss__cause="queue_full", rag__loss__spans=3)
    recorded = [span(f"t{n}", 0, "request", FIRST_DAY + timedelta(minutes=n)) for n in range(7)]
    insert_spans(store, report, *recorded)
    (row,) = store.rows("select * from alert_capture_losses")
    names = ("subject", "observed", "allowed", "sample_count", "example_trace_id", "message")
    assert tuple(row[name] for name in names) == (
        *("queue_full", 0.3, 0.0, 10, "lost"),
        "3 of 10 spans were lost (queue_full).",
    )
    write_limit(store, Limit("spans_lost", max_share=0.3))
    assert store.rows("select * from alert_capture_losses") == []


def test_all_alerts_have_the_same_columns(store: Store) -> None:
    """So that one query over `merge(currentDatabase(), '^alert_')` is all alerts."""
    kinds = {view: store.query(f"describe table alert_{view}").result_rows for view in ALERTS}
    columns = {view: tuple((row[0], row[1]) for row in rows) for view, rows in kinds.items()}
    assert len(set(columns.values())) == 1
    assert tuple(name for name, _ in columns["ingest"]) == COLUMNS
    found = store.query("show tables like 'alert\\_%'").result_rows
    assert {row[0] for row in found} == {f"alert_{view}" for view in ALERTS}
