"""Registry: which rules were set, and when: a rule judges only what began after it.

Pipeline: rule.toml -> [triage] -> rag_rules -> cli
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from ragotel.errors import NotFoundError
from ragotel.store import Store
from ragotel.triage.measures import nearest
from ragotel.triage.rules import Rule

_LIST = (
    "select rule_name, rule_hash, any(rule_text) as rule_text, "
    "min(rag_rules.registered_at) as registered_at\n"
    "from rag_rules\n"
    "group by rule_name, rule_hash\n"
    "order by registered_at, rule_name"
)


@dataclass(frozen=True)
class Registered:
    """A rule in the store; *is_new* where this call wrote it."""

    rule_name: str
    rule_hash: str
    registered_at: datetime
    is_new: bool = False


def register_rule(store: Store, rule: Rule, text: str) -> Registered:
    """Write *rule* with its hash and the store's own time; the first registration stands."""
    known = _find(store, rule)
    if known is not None:
        return known
    store.insert(
        "rag_rules", [(rule.name, rule.sha256, text)], ("rule_name", "rule_hash", "rule_text")
    )
    written = _find(store, rule)
    assert written is not None
    return Registered(written.rule_name, written.rule_hash, written.registered_at, is_new=True)


def _find(store: Store, rule: Rule) -> Registered | None:
    rows = store.rows(
        "select min(registered_at) as at, count() as written from rag_rules "
        "where rule_name = {name:String} and rule_hash = {hash:String}",
        {"name": rule.name, "hash": rule.sha256},
    )
    if not rows or not rows[0]["written"]:
        return None
    at: datetime = rows[0]["at"]
    aware = at if at.tzinfo else at.replace(tzinfo=timezone.utc)
    return Registered(rule.name, rule.sha256, aware)


def registered_rules(store: Store) -> list[dict[str, Any]]:
    """Every rule: rule_name, rule_hash, rule_text, registered_at; the oldest first."""
    return store.rows(_LIST)


def find_rule(store: Store, name: str) -> dict[str, Any]:
    """The newest rule of that name, or the one whose hash begins so.

    Raises:
        NotFoundError: There is none, or the beginning of a hash is that of several.
    """
    rules = registered_rules(store)
    named = [row for row in rules if row["rule_name"] == name]
    if named:
        return named[-1]
    hashed = [row for row in rules if row["rule_hash"].startswith(name)] if len(name) >= 4 else []
    if len(hashed) == 1:
        return hashed[0]
    if hashed:
        raise NotFoundError(f"{len(hashed)} rules have a hash that begins with {name!r}.")
    known = nearest(name, [row["rule_name"] for row in rules])
    raise NotFoundError(f"There is no rule {name!r}{known}; `ragotel rules list` shows all.")
