"""Commands: the table of all commands; a module is imported only when one of its commands runs.

So `ragotel --help` is fast and works where an extra is not installed. Each module has
`register(group: click.Group) -> None`, which adds its commands to the group.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import NamedTuple

import click

from ragotel.errors import ConfigurationError


class Entry(NamedTuple):
    """Where a command lives and the line that `ragotel --help` prints for it."""

    module: str
    summary: str
    extra: str = ""


TABLE: dict[str, Entry] = {
    "demo": Entry("demo", "See the whole story on real data, on this machine.", "demo"),
    "init": Entry("init", "Create the store's schema, or bring it up to date."),
    "serve": Entry("serve", "Receive OTLP, keep it, answer SQL: one process.", "local"),
    "load": Entry("load", "Load OTLP files into the store.", "local"),
    "backfill": Entry("backfill", "Read other instrumentations' spans again.", "local"),
    "sql": Entry("sql", "Ask the store any SQL."),
    "find": Entry("find", "Find requests for a vague complaint."),
    "show": Entry("show", "Show one request: what was ranked, what was sent, the verdict."),
    "triage": Entry("verdicts", "List the verdicts of labelled requests."),
    "buckets": Entry("verdicts", "Count the verdicts by day, service, index, template or run."),
    "losses": Entry("losses", "Where answers were lost, stage by stage."),
    "recall": Entry("recall", "Recall at k of every stage, and at the k that was sent."),
    "costs": Entry("costs", "What a query costs, and what another k would cost."),
    "templates": Entry("templates", "List the versions of prompt templates; compare two."),
    "labels": Entry("labels", "Load, add, attach, resolve and list labels."),
    "grade": Entry("grade", "Say whether an answer was right."),
    "complaint": Entry("grade", "Record what a user complained about."),
    "manifest": Entry("manifest", "Load what an index version holds."),
    "probe": Entry("probe", "Search deeply for the gold passages that were missed."),
    "ablate": Entry("ablate", "Ask the model again with the gold passage alone, or elsewhere."),
    "rules": Entry("rules", "Register adoption rules before the arms run, and list them."),
    "compare": Entry("compare", "Compare two arms under a rule that was set in advance."),
    "check": Entry("check", "Exit 1 where a limit is broken, with the window and why."),
    "limits": Entry("limits", "Set and list what is allowed before an alert is raised."),
    "erase": Entry("erase", "Delete one user or one request from every table."),
    "retention": Entry("retention", "Say how long each kind is kept, and delete what is older."),
    "doctor": Entry("doctor", "Send a canary through the real path and say what is captured."),
}


class LazyGroup(click.Group):
    """A group whose commands come from TABLE."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(TABLE)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands and cmd_name in TABLE:
            self._load(cmd_name, TABLE[cmd_name])
        return self.commands.get(cmd_name)

    def _load(self, name: str, entry: Entry) -> None:
        try:
            module = importlib.import_module(f"ragotel.cli.{entry.module}")
        except ImportError as error:
            if entry.extra:
                raise ConfigurationError(
                    f"`ragotel {name}` needs {error.name or 'a package'}: "
                    f"pip install 'ragotel[{entry.extra}]'"
                ) from error
            raise
        module.register(self)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in TABLE.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in TABLE and not args[0].startswith("-"):
            ctx.fail(f"There is no command {args[0]!r}{_nearest(args[0], list(TABLE))}.")
        return super().resolve_command(ctx, args)


def _nearest(word: str, known: Sequence[str]) -> str:
    import difflib

    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        click.echo(f"ragotel {version('ragotel')}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Every command takes --store, --json and --debug; COMMAND --help says the rest.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Print the version.",
)
def group() -> None:
    """Why a RAG service answered wrongly, as a look-up.

    Exit codes: 0 fine; 1 the answer is no, a limit is broken or some lines were rejected;
    2 wrong use.
    """
