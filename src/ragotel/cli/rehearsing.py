"""Rehearsing: what `probe` and `ablate` share, as both ask the user's own functions again.

Pipeline: triage.probing | triage.ablating -> [cli]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click

from ragotel.cli.options import Whole
from ragotel.cli.output import one_line, say

F = TypeVar("F", bound=Callable[..., Any])

THIS, BOTH, EARLIER = "this run", "this run and earlier ones", "earlier runs"
"""Which runs the figures that are printed stand on; they are read from the store."""
_HEADS = {
    BOTH: "Of this run and earlier ones, the newest of each:",
    EARLIER: "Nothing of this is from this run; stored before:",
}
_SHOWN = 5


def rehearsal_options(done: str, everything: str) -> Callable[[F], F]:
    """Give a command --set, --limit, --all and --again.

    Args:
        done: What happens to the requests, as a participle.
        everything: The help of --all.
    """

    def decorate(function: F) -> F:
        for option in (
            click.option("--again", is_flag=True, help=f"Also what was {done} before."),
            click.option("--all", "is_all", is_flag=True, help=everything),
            click.option(
                "--limit",
                type=Whole(1, 1_000_000_000),
                metavar="N",
                help="Only the N newest requests.",
            ),
            click.option(
                "--set",
                "label_set",
                metavar="NAME",
                help=f"The labels whose requests are {done}.",
            ),
        ):
            function = option(function)
        return function

    return decorate


def require(context: click.Context, needed: Mapping[str, Any]) -> None:
    """Refuse a run that lacks one of the options *needed* (as the help spells them: values)."""
    lacking = [option for option, value in needed.items() if not value]
    if lacking:
        raise click.UsageError(
            f"Missing: {' and '.join(lacking)}. Files are loaded by "
            f"`{context.command_path} load FILE`.",
            context,
        )


def figures_of(kept: int, *, has_earlier: bool) -> str:
    """Which runs stored figures stand on, after one that kept so many results."""
    if not kept:
        return EARLIER
    return BOTH if has_earlier else THIS


def echo_head(runs: str) -> None:
    """Print what stands above stored figures."""
    say("")
    if runs in _HEADS:
        say(_HEADS[runs])


def echo_failures(failures: Sequence[str]) -> None:
    """Name the first *failures* on stderr, and count the others."""
    _echo_first(f"failed: {failure}" for failure in failures)
    if len(failures) > _SHOWN:
        more = len(failures) - _SHOWN
        say(f"... and {more:,} more (--json names them all)", err=True)


def echo_reasons(reasons: Sequence[tuple[str, int]]) -> None:
    """Name the most frequent *reasons* for which runs were skipped, on stderr."""
    _echo_first(f"skipped, {count:,} runs: {reason}" for reason, count in reasons)
    if len(reasons) > _SHOWN:
        say(f"... and {len(reasons) - _SHOWN:,} more reasons (--json)", err=True)


def _echo_first(lines: Iterable[str]) -> None:
    for line, _ in zip(lines, range(_SHOWN), strict=False):
        say(one_line(line), err=True)
