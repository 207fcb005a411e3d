"""Pins: which index version served, whether it is still the newest, and what changed for the gold.

Pipeline: rag_index_versions, rag_index_members -> [triage] -> show

A complaint is judged against the version that served it, which may hold less, or more, than
today's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ragotel.store import Store

_MOST_VERSIONS = 50
_MOST_IDS = 300


def pins_of(
    store: Store, searched: Sequence[Sequence[str]], chunk_ids: Iterable[str]
) -> list[dict[str, Any]]:
    """One dict per index that was searched: what served, what is the newest, what changed.

    is_newest is None where no manifest of the version that served is known. changes holds, for the
    gold *chunk_ids*, version, at, chunk_id and change (added, changed, deleted or superseded) of
    the whole versions that came after it.
    """
    wanted = sorted({chunk_id for chunk_id in chunk_ids if chunk_id})[:_MOST_IDS]
    return [_pin(store, name, version, wanted) for name, version in searched]


def _pin(store: Store, index_name: str, version: str, wanted: list[str]) -> dict[str, Any]:
    versions = store.rows(
        "select versions.version as version, max(versions.loaded_at) as loaded_at,\n"
        "    max(chains.is_whole) as is_whole,\n"
        "    max(if(runs.version = '', versions.loaded_at, runs.ran_at)) as at\n"
        "from (\n"
        "    select version, loaded_at from rag_index_versions final\n"
        "    where index_name = {index_name:String}\n"
        ") as versions\n"
        "left join (\n"
        "    select index_version as version, toDateTime64(max(started_at), 6, 'UTC') as ran_at\n"
        "    from rag_ingest_runs final where index_name = {index_name:String}\n"
        "    group by version\n"
        ") as runs on runs.version = versions.version\n"
        "left join (\n"
        "    select version, is_whole from rag_index_chains\n"
        "    where index_name = {index_name:String}\n"
        ") as chains on chains.version = versions.version\n"
        "group by version order by at, loaded_at settings join_use_nulls = 0",
        {"index_name": index_name},
    )
    names = [row["version"] for row in versions]
    newest = versions[-1] if versions else None
    pin: dict[str, Any] = {
        "index_name": index_name,
        "index_version": version,
        "newest_version": newest["version"] if newest else None,
        "newest_at": newest["at"] if newest else None,
        "is_newest": newest["version"] == version if newest and version in names else None,
        "changes": [],
    }
    if version in names:
        later = versions[names.index(version) + 1 :]
        whole = [row for row in later if row["is_whole"]][:_MOST_VERSIONS]
        if whole and wanted:
            pin["changes"] = _changes(store, index_name, version, whole, wanted)
    return pin


def _changes(
    store: Store,
    index_name: str,
    version: str,
    later: Sequence[dict[str, Any]],
    wanted: list[str],
) -> list[dict[str, Any]]:
    names = [version, *(row["version"] for row in later)]
    rows = store.rows(
        "select version, chunk_id, chunk_sha, superseded from rag_index_members\n"
        "where index_name = {index_name:String} and version in {versions:Array(String)}\n"
        "    and chunk_id in {ids:Array(String)}",
        {"index_name": index_name, "versions": names, "ids": wanted},
    )
    held: dict[str, dict[str, Any]] = {name: {} for name in names}
    for row in rows:
        held[row["version"]][row["chunk_id"]] = row
    found = []
    before = held[version]
    for row in later:
        now = held[row["version"]]
        for chunk_id in sorted({*before, *now}):
            change = _change(before.get(chunk_id), now.get(chunk_id))
            if change:
                found.append(
                    {
                        "version": row["version"],
                        "at": row["at"],
                        "chunk_id": chunk_id,
                        "change": change,
                    }
                )
        before = now
    return found


def _change(before: dict[str, Any] | None, now: dict[str, Any] | None) -> str:
    if before is None:
        return "added"
    if now is None:
        return "deleted"
    if now["superseded"] and not before["superseded"]:
        return "superseded"
    return "changed" if now["chunk_sha"] != before["chunk_sha"] else ""
