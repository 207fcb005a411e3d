"""Rules: `ragotel rules register|list|show`.

Pipeline: rule.toml -> triage.registry -> rag_rules; [cli]
"""

from __future__ import annotations

import click

from ragotel.cli.options import common_options, ready_store
from ragotel.cli.output import Column, clock, print_json, print_rows, say, say_block

_LIST = (
    Column("registered_at", "registered (UTC)"),
    Column("rule_name", "rule"),
    Column("short_hash", "sha256"),
)


@click.group("rules", short_help="Register adoption rules before the arms run, and list them.")
def rules() -> None:
    """Adoption rules: set before the first arm runs, kept with their hash and time.

    `ragotel compare` judges only arms that began after their rule was registered.
    """


@rules.command("register", short_help="Check a rule and keep it with its hash and time.")
@click.argument("path", metavar="FILE")
@common_options
def register_rule(path: str, dsn: str | None, as_json: bool) -> None:
    """Check the rule in FILE and keep it; the first registration of the same rule stands."""
    from ragotel.triage.registry import register_rule as write_rule
    from ragotel.triage.rules import read_rule

    rule, text = read_rule(path)
    with ready_store(dsn) as store:
        written = write_rule(store, rule, text)
    if as_json:
        print_json(vars(written))
        return
    how = "registered" if written.is_new else "was registered before,"
    say(
        f"The rule {written.rule_name} ({written.rule_hash[:12]}) {how} at "
        f"{clock(written.registered_at)} UTC: it judges arms that begin after that."
    )


@rules.command("list", short_help="List the rules.")
@common_options
def list_rules(dsn: str | None, as_json: bool) -> None:
    """List the registered rules, the oldest first; a changed rule is another rule."""
    from ragotel.triage.registry import registered_rules

    with ready_store(dsn) as store:
        rows = registered_rules(store)
    if as_json:
        print_json(rows)
        return
    if not rows:
        say("No rule is registered; `ragotel rules register FILE` does it.", err=True)
        return
    print_rows([{**row, "short_hash": row["rule_hash"][:12]} for row in rows], _LIST)


@rules.command("show", short_help="Print a rule as it was registered.")
@click.argument("name", metavar="NAME|HASH")
@common_options
def show_rule(name: str, dsn: str | None, as_json: bool) -> None:
    """Print the text of the newest rule called NAME, or of the one whose hash begins so."""
    from ragotel.triage.registry import find_rule

    with ready_store(dsn) as store:
        row = find_rule(store, name)
    if as_json:
        print_json(row)
        return
    say(f"# registered {clock(row['registered_at'])} UTC, sha256 {row['rule_hash']}")
    say_block(row["rule_text"].rstrip())


def register(group: click.Group) -> None:
    """Add `rules` to *group*."""
    group.add_command(rules)
