"""Evidence: everything that the store holds about one request, table by table.

Pipeline: rag_* tables, triage views -> [triage] -> show
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ragotel.store import Store
from ragotel.triage.references import RequestKey
from ragotel.triage.verdicts import with_fixes

_IDS_PER_QUERY = 300
_HIDDEN = ("query_norm", "query_hash", "answer_norm")
_NO_FLOW: dict[str, Any] = {
    "prompt_span_id": "",
    "generation_span_id": "",
    "list_span_ids": [],
    "searched": [],
    "top_k": None,
    "degraded": False,
    "reranked_after_truncation": False,
}


def _rows(store: Store, source: str, key: RequestKey, order: str) -> list[dict[str, Any]]:
    """The rows of *source* (a table or view of ours) that belong to the request."""
    return store.rows(
        f"select * from {source}\n"  # noqa: S608 (a name of ours, values are bound)
        "where trace_id = {trace_id:String} and request_id = {request_id:String}\n"
        f"order by {order}",
        key._asdict(),
    )


def request_of(store: Store, key: RequestKey) -> dict[str, Any]:
    """The request's own row; of one whose root span never arrived, its ids only."""
    rows = _rows(store, "rag_requests final", key, "ingested_at desc")
    if not rows:
        return {**key._asdict(), "is_recorded": False}
    kept = {name: value for name, value in rows[0].items() if name not in _HIDDEN}
    return {**kept, "is_recorded": True}


def stages_of(store: Store, key: RequestKey) -> list[dict[str, Any]]:
    """Its stage runs in the order of their start."""
    return _rows(store, "rag_stages final", key, "started_at, ended_at")


def flow_of(store: Store, key: RequestKey) -> dict[str, Any]:
    """Which prompt fed the answer and which ranked lists fed that prompt."""
    rows = _rows(store, "rag_request_flows", key, "trace_id")
    return rows[0] if rows else _NO_FLOW


def verdicts_of(store: Store, key: RequestKey) -> tuple[list[Any], list[Any]]:
    """Its rows of triage_requests with their fixes, and of triage_passages, if it has a label."""
    if not _rows(store, "rag_request_labels", key, "label_id"):
        return [], []
    verdicts = with_fixes(store, _rows(store, "triage_requests", key, "label_id"))
    return verdicts, _rows(store, "triage_passages", key, "label_id, passage")


def statements_of(store: Store, key: RequestKey) -> list[dict[str, Any]]:
    """What each sent passage states: the gold's value, or what the wrong answer said."""
    return _rows(store, "rag_sent_statements", key, "label_id, position")


def passages_of_labels(store: Store, label_ids: Sequence[str]) -> list[dict[str, Any]]:
    """The gold passages of some labels."""
    if not label_ids:
        return []
    return store.rows(
        "select * from rag_label_passages where label_id in {label_ids:Array(String)}",
        {"label_ids": list(label_ids)},
    )


def shas_in_manifest(
    store: Store, searched: Sequence[Sequence[str]], chunk_ids: Iterable[str]
) -> dict[str, str]:
    """Text hashes of *chunk_ids* at the index versions that were searched."""
    found: dict[str, str] = {}
    wanted = sorted(chunk_ids)
    for index_name, version in searched if wanted else ():
        rows = store.query(
            "select chunk_id, chunk_sha from rag_index_members\n"
            "where index_name = {index_name:String} and version = {version:String}\n"
            "    and chunk_id in {ids:Array(String)} and chunk_sha != ''",
            {"index_name": index_name, "version": version, "ids": wanted},
        ).result_rows
        found.update((chunk_id, sha) for chunk_id, sha in rows)
    return found


def states_claim(store: Store, claims: Sequence[str], shas: Iterable[str]) -> dict[str, bool]:
    """For every text of *shas* that is known: does it state one of *claims*?"""
    if not claims:
        return {}
    stated = (
        "max(arrayExists(\n"
        "    claim -> rag_contains(text_norm, trimBoth(rag_normalise(claim))),\n"
        "    {claims:Array(String)}\n"
        "))"
    )
    found = _of_chunks(store, shas, stated, {"claims": list(claims)})
    return {sha: bool(states) for sha, states in found.items()}


def texts_of(store: Store, shas: Iterable[str]) -> dict[str, str]:
    """The texts of *shas* that are known, by hash."""
    return _of_chunks(store, shas, "any(text)")


def chars_of(store: Store, shas: Iterable[str]) -> dict[str, int]:
    """How long the texts of *shas* are, in characters, by hash; those that are known."""
    return _of_chunks(store, shas, "any(lengthUTF8(text))")


def _of_chunks(
    store: Store,
    shas: Iterable[str],
    expression: str,
    parameters: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What *expression*, an aggregate over rag_chunks, says of each of *shas* that is known."""
    found: dict[str, Any] = {}
    wanted = sorted(shas)
    for start in range(0, len(wanted), _IDS_PER_QUERY):
        rows = store.query(
            f"select chunk_sha, {expression} from rag_chunks\n"  # noqa: S608 (our own text)
            "where chunk_sha in {shas:Array(String)} group by chunk_sha",
            {**(parameters or {}), "shas": wanted[start : start + _IDS_PER_QUERY]},
        ).result_rows
        found.update(rows)
    return found


def prompt_of(
    store: Store, key: RequestKey, assemble: Mapping[str, Any] | None, claims: Sequence[str]
) -> dict[str, Any] | None:
    """The prompt that *assemble* made; claim_stands is null where it cannot be told."""
    if assemble is None:
        return None
    rows = store.rows(
        "select span_id, template_name, template_version, tokens, tokens_source, chars,\n"
        "    budget_tokens, content_mode, is_whole, evidence, sent_ids, sent_tokens, prompt,\n"
        "    arrayExists(\n"
        "        claim -> rag_contains(prompt_norm, trimBoth(rag_normalise(claim))),\n"
        "        {claims:Array(String)}\n"
        "    ) as claim_stands\n"
        "from rag_prompts final\n"
        "where trace_id = {trace_id:String} and request_id = {request_id:String}\n"
        "    and span_id = {span_id:String}",
        {**key._asdict(), "claims": list(claims), "span_id": assemble["span_id"]},
    )
    if not rows:
        return None
    row = rows[0]
    stands, whole = bool(row["claim_stands"]), bool(row["is_whole"])
    row["is_whole"] = whole
    row["claim_stands"] = (stands or (False if whole else None)) if claims else None
    row["sent_count"] = assemble["candidate_count"]
    counts = row["sent_tokens"]
    known = row["evidence"] in ("whole", "empty") and all(count is not None for count in counts)
    row["passage_tokens"] = sum(counts) if known else None
    return row


def said_about(store: Store, table: str, moment: str, key: RequestKey) -> list[dict[str, Any]]:
    """Grades or complaints that name its trace, its request id, or both."""
    return store.rows(
        f"select * from {table} final\n"  # noqa: S608 (a table of ours, values are bound)
        "where (trace_id = {trace_id:String} and request_id in ('', {request_id:String}))\n"
        "    or (trace_id = '' and request_id = {request_id:String} and request_id != '')\n"
        f"order by {moment}",
        key._asdict(),
    )
