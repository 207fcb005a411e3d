"""Recall: how much of the gold each stage holds, leg by leg, slice by slice, day by day.

Pipeline: dist_recall and the views beside it -> [triage] -> cli | server
"""

from __future__ import annotations

from collections.abc import Sequence

from ragotel.store import Store
from ragotel.triage.question import Question
from ragotel.triage.verdicts import Slice, conditions_by_day

KS = (*range(1, 11), 12, 15, 20, 25, 30, 50, 100)
"""Every k of the views."""
USUAL_KS = (1, 3, 5, 10, 20, 50, 100)
"""Those that are shown where no k is asked for."""
RRF_KS = (10, 30, 60, 100)
"""The constants of what_if_rrf."""
STAGES = ("retrieve", "fuse", "rerank", "blend", "filter", "assemble")


def recall_question(part: Slice, *, grain: str = "chunk", k: int | None = None) -> Question:
    """Recall of every stage and leg per service; at the k that was sent, beside it."""
    where = conditions_by_day(part)
    where.equal("grain", grain)
    where.add("k in {ks:Array(UInt32)}", ks=_ks(k))
    means = ",\n".join(
        f"    {_mean(name, 'requests')}"
        for name in ("recall", "any_present", "all_present", "mrr", "ndcg")
    )
    return Question(
        "select\n    service_name, stage, stage_name, k, sum(dist.requests) as requests,\n"
        "    sum(dist.unreadable_requests) as unreadable_requests,\n"
        f"{means},\n"
        "    sum(dist.k_prompt_requests) as k_prompt_requests,\n"
        f"    {_mean('recall_at_k_prompt', 'k_prompt_requests')},\n"
        f"    {_mean('mean_k_prompt', 'k_prompt_requests')}\n"
        f"from dist_recall as dist\n{where}\ngroup by service_name, stage, stage_name, k\n"
        "having requests + unreadable_requests > 0\n"
        "order by service_name, indexOf({stages:Array(String)}, stage), stage_name, k",
        {**where.parameters, "stages": list(STAGES)},
    )


def classes_question(part: Slice, *, grain: str = "chunk") -> Question:
    """Gold passages missing from the reranker's list, buried in it, or first, per service."""
    where = conditions_by_day(part)
    where.equal("grain", grain)
    counts = ("passages", "missing", "buried", "top", "undecided")
    shares = ",\n".join(
        f"    if(passages = 0, null, {name} / passages) as {name}_share"
        for name in ("missing", "buried", "top")
    )
    return Question(
        f"select\n    service_name, {_sums(counts)},\n{shares}\n"
        f"from dist_recall_classes as dist\n{where}\ngroup by service_name\norder by service_name",
        where.parameters,
    )


def ceilings_question(part: Slice) -> Question:
    """What could be right at most and what was, per service, label set and index version."""
    where = conditions_by_day(part)
    counts = (
        *("requests", "candidates_measured", "in_candidates", "prompts_measured", "in_prompt"),
        *("graded", "correct", "compared", "compared_correct", "compared_in_prompt"),
        "right_without_gold",
    )
    return Question(
        f"select\n    service_name, label_set, index_version,\n    {_sums(counts)},\n"
        "    if(candidates_measured = 0, null, in_candidates / candidates_measured)\n"
        "        as ceiling_candidates,\n"
        "    if(prompts_measured = 0, null, in_prompt / prompts_measured) as ceiling_prompt,\n"
        "    if(graded = 0, null, correct / graded) as accuracy,\n"
        "    toBool(compared_correct > compared_in_prompt) as passes_ceiling,\n"
        "    minIf(dist.example_trace_id, dist.example_trace_id != '') as example_trace_id\n"
        f"from dist_ceilings as dist\n{where}\n"
        "group by service_name, label_set, index_version\n"
        "order by service_name, label_set, index_version",
        where.parameters,
    )


def legs_question(part: Slice, *, k: int | None = None) -> Question:
    """What each search leg brings by itself, and what would be lost without it, per service."""
    where = conditions_by_day(part)
    where.add("k in {ks:Array(UInt32)}", ks=_ks(k))
    counts = ("passages", "unreadable_passages", "found", "compared", "undecided", "only_this_leg")
    return Question(
        f"select\n    service_name, leg, k,\n    {_sums((*counts, 'lost_if_off'))},\n"
        "    if(passages = 0, null, found / passages) as recall,\n"
        f"    {_mean('union_recall', 'compared')},\n"
        f"    {_mean('recall_without', 'compared')}\n"
        f"from dist_legs as dist\n{where}\ngroup by service_name, leg, k\n"
        "having passages + unreadable_passages > 0\norder by service_name, leg, k",
        where.parameters,
    )


def what_if_rrf_question(part: Slice, *, rrf_k: int = 60, k: int | None = None) -> Question:
    """Gold within the first k of the recorded fusion and of fusion by rank, per service."""
    where = conditions_by_day(part)
    where.add("rrf_k = {rrf_k:UInt32}", rrf_k=rrf_k)
    where.add("k in {ks:Array(UInt32)}", ks=_ks(k))
    counts = (
        *("passages", "unreadable_passages", "recorded_within", "what_if_at_least"),
        *("what_if_at_most", "gained", "lost"),
    )
    return Question(
        f"select\n    service_name, rrf_k, k,\n    {_sums(counts)},\n"
        "    if(passages = 0, null, recorded_within / passages) as recorded_recall,\n"
        "    if(passages = 0, null, what_if_at_least / passages) as what_if_recall,\n"
        "    if(passages = 0, null, what_if_at_most / passages) as what_if_recall_at_most\n"
        f"from dist_what_if_rrf as dist\n{where}\ngroup by service_name, rrf_k, k\n"
        "order by service_name, rrf_k, k",
        where.parameters,
    )


def drift_question(part: Slice) -> Question:
    """recall@10 and recall@k_prompt of the list handed to assembly, day by day."""
    where = conditions_by_day(part)
    return Question(
        f"select *\nfrom dist_recall_drift\n{where}\n"
        "order by service_name, label_set, run_id, arm, day",
        where.parameters,
    )


def flags_question(part: Slice) -> Question:
    """Flags per service, the most frequent first; the slice's days and service count."""
    where = conditions_by_day(Slice(since=part.since, until=part.until, service=part.service))
    return Question(
        f"select\n    service_name, flag, {_sums(('requests', 'checked'))},\n"
        "    requests / checked as share,\n"
        "    minIf(dist.example_trace_id, dist.example_trace_id != '') as example_trace_id,\n"
        "    any(dist.meaning) as meaning\n"
        f"from dist_flags as dist\n{where}\ngroup by service_name, flag\n"
        "order by service_name, share desc, flag",
        where.parameters,
    )


def slices_question(part: Slice, tag_key: str, *, cutoff: int = 0) -> Question:
    """Misses by the values of one tag at one *cutoff* (0: each request's own k), per service."""
    where = conditions_by_day(part)
    where.add("tag_key = {tag_key:String}", tag_key=tag_key)
    where.add("cutoff = {cutoff:UInt32}", cutoff=cutoff)
    return Question(
        f"select\n    service_name, tag_value, {_sums(('requests', 'misses', 'undecided'))},\n"
        "    if(requests = 0, null, misses / requests) as miss_rate,\n"
        "    rag_wilson(misses, requests).1 as miss_rate_low,\n"
        "    rag_wilson(misses, requests).2 as miss_rate_high,\n"
        "    minIf(dist.example_trace_id, dist.example_trace_id != '') as example_trace_id\n"
        f"from dist_slices as dist\n{where}\ngroup by service_name, tag_value\n"
        "order by service_name, miss_rate desc, tag_value",
        where.parameters,
    )


def tag_keys(store: Store) -> list[str]:
    """The keys of all recorded tags, the most frequent first."""
    rows = store.rows(
        "select tag_key from rag_request_tags group by tag_key order by count() desc, tag_key"
        "\nlimit 20"
    )
    return [row["tag_key"] for row in rows]


def _ks(k: int | None) -> list[int]:
    return list(USUAL_KS) if k is None else [k]


def _sums(names: Sequence[str]) -> str:
    return ", ".join(f"sum(dist.{name}) as {name}" for name in names)


def _mean(name: str, weight: str) -> str:
    """The mean over the groups of a view, each with its own number of requests."""
    return f"sumIf(dist.{name} * dist.{weight}, dist.{weight} > 0) / {weight} as {name}"
