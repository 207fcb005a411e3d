-- answers: how much of the gold does each stage still hold within its first k, and within what is really sent?
-- grain:   one row per day × service × run × label set × index version × grain × stage × stage name × k
-- reads:   rag_gold_ranks, rag_request_flows, rag_requests
-- requests counts those whose list could be read; unreadable_requests the others, which are in no mean.
-- recall is the mean share of a label's passages; any_present and all_present name the two readings of a hit.
create or replace view dist_recall as
with
    seen as (
        select
            trace_id,
            request_id,
            label_id,
            label_set,
            passage,
            service_name,
            stage,
            stage_name,
            grain,
            min(rank) as best_rank,
            max(is_known) as is_readable
        from (
            select
                trace_id,
                request_id,
                label_id,
                label_set,
                passage,
                service_name,
                stage,
                stage_name,
                option.1 as grain,
                option.2 as rank,
                option.3 as is_known
            from rag_gold_ranks
            array join [
                ('chunk', gold_rank, gold_rank is not null or is_absent),
                ('document', nullIf(doc_rank, 0), doc_rank > 0 or is_document_absent)
            ] as option
        )
        group by trace_id, request_id, label_id, label_set, passage, service_name, stage, stage_name, grain
    ),
    per_request as (
        select
            trace_id,
            request_id,
            label_id,
            label_set,
            service_name,
            stage,
            stage_name,
            grain,
            groupArray(ifNull(best_rank, 4294967295)) as ranks,
            min(is_readable) as is_readable
        from seen
        group by trace_id, request_id, label_id, label_set, service_name, stage, stage_name, grain
    ),
    placed as (
        select
            per_request.label_set as label_set,
            per_request.service_name as service_name,
            per_request.stage as stage,
            per_request.stage_name as stage_name,
            per_request.grain as grain,
            per_request.ranks as ranks,
            per_request.is_readable as is_readable,
            toDate(requests.started_at) as day,
            requests.run_id as run_id,
            requests.arm as arm,
            arrayStringConcat(arrayDistinct(arrayMap(pair -> pair.2, flows.searched)), ', ') as index_version,
            flows.sent_count as k_prompt
        from per_request
        inner join (
            select trace_id, request_id, started_at, run_id, arm
            from rag_requests
            limit 1 by trace_id, request_id
        ) as requests
            on requests.trace_id = per_request.trace_id and requests.request_id = per_request.request_id
        left join rag_request_flows as flows
            on flows.trace_id = per_request.trace_id and flows.request_id = per_request.request_id
    )
select
    day,
    service_name,
    run_id,
    arm,
    label_set,
    index_version,
    grain,
    stage,
    stage_name,
    k,
    countIf(is_readable) as requests,
    countIf(not is_readable) as unreadable_requests,
    avgOrNullIf(arrayAvg(rank -> rank <= k, ranks), is_readable) as recall,
    avgOrNullIf(arrayExists(rank -> rank <= k, ranks), is_readable) as any_present,
    avgOrNullIf(arrayAll(rank -> rank <= k, ranks), is_readable) as all_present,
    avgOrNullIf(if(arrayMin(ranks) = 4294967295, 0, 1 / arrayMin(ranks)), is_readable) as mrr,
    avgOrNullIf(
        arraySum(rank -> if(rank <= k, 1 / log2(rank + 1), 0), ranks)
        / arraySum(place -> 1 / log2(place + 1), range(1, least(length(ranks), k) + 1)),
        is_readable
    ) as ndcg,
    countIf(is_readable and k_prompt is not null) as k_prompt_requests,
    avgOrNullIf(arrayAvg(rank -> rank <= ifNull(k_prompt, 0), ranks), is_readable and k_prompt is not null) as recall_at_k_prompt,
    avgOrNullIf(arrayAll(rank -> rank <= ifNull(k_prompt, 0), ranks), is_readable and k_prompt is not null) as all_present_at_k_prompt,
    avgOrNullIf(k_prompt, is_readable and k_prompt is not null) as mean_k_prompt
from placed
array join [1, 3, 5, 10, 20, 50, 100] as k
group by day, service_name, run_id, arm, label_set, index_version, grain, stage, stage_name, k
settings join_use_nulls = 0
