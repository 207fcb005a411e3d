-- answers: how far down a deep search are the gold passages, and which of them could a reranker reach?
-- grain:   one row per day × service × label set × index version × bucket of the passage
-- reads:   triage_passages, rag_request_probes, rag_labels
-- The columns from within_k to not_probed sum to passages; k is the request's own cut-off, near_misses lie between k
-- and twice k, not_found are those of which a probe of the version that served says: not within its k.
-- reachable_within_N counts every deep rank up to N: what a reranker over the top N would be handed.
create or replace view dist_deep_ranks as
with
    probes as (
        select
            trace_id,
            request_id,
            label_id,
            passage,
            groupUniqArray(toString(probes.index_version)) as probed_versions
        from rag_request_probes as probes
        inner join (
            select label_id, argMax(principal, loaded_at) as label_principal
            from rag_labels
            group by label_id
        ) as labels on labels.label_id = probes.label_id
        where
            probes.index_version != ''
            and probes.principal in ('', label_principal)
        group by trace_id, request_id, label_id, passage
    ),
    placed as (
        select
            toDate(passages.started_at) as day,
            passages.service_name as service_name,
            passages.label_set as label_set,
            passages.index_name as index_name,
            passages.index_version as index_version,
            passages.bucket as bucket,
            passages.deep_rank as deep_rank,
            passages.top_k as top_k,
            passages.near_miss as near_miss,
            hasAny(splitByString(', ', passages.index_version), probes.probed_versions) as is_probed
        from triage_passages as passages
        left join probes
            on probes.trace_id = passages.trace_id
            and probes.request_id = passages.request_id
            and probes.label_id = passages.label_id
            and probes.passage = passages.passage
        where passages.bucket != 'not_answerable'
    )
select
    day,
    service_name,
    label_set,
    index_name,
    index_version,
    bucket,
    count() as passages,
    countIf(deep_rank <= top_k) as within_k,
    countIf(near_miss) as near_misses,
    countIf(deep_rank > 2 * top_k) as distant,
    countIf(deep_rank is not null and top_k is null) as k_unknown,
    countIf(deep_rank is null and is_probed) as not_found,
    countIf(deep_rank is null and not is_probed) as not_probed,
    countIf(deep_rank <= 20) as reachable_within_20,
    countIf(deep_rank <= 50) as reachable_within_50,
    countIf(deep_rank <= 100) as reachable_within_100,
    countIf(deep_rank <= 200) as reachable_within_200,
    countIf(deep_rank > 200 or (deep_rank is null and is_probed)) as beyond
from placed
group by day, service_name, label_set, index_name, index_version, bucket
settings join_use_nulls = 0
