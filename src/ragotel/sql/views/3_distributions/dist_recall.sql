-- answers: how much of the gold does each stage still hold within its first k, and within what is really sent?
-- grain:   one row per day × service × run × arm × label set × index version × grain × stage × stage name × k
-- reads:   rag_labelled_requests, rag_gold_ranks, rag_document_ranks, rag_request_flows, rag_requests
-- requests counts those whose list could be read; unreadable_requests the others, which are in no mean.
-- recall is the mean share of a label's passages; any_present and all_present name the two readings of a hit.
-- By document, k counts documents; a candidate that names none takes the one that the manifests give its chunk.
create or replace view dist_recall as
with
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 50, 100]::Array(UInt32) as ks,
    seen as (
        select
            trace_id,
            request_id,
            label_id,
            label_set,
            passage,
            stage,
            stage_name,
            'chunk' as grain,
            min(gold_rank) as best_rank,
            max(gold_rank is not null or is_absent) as is_readable
        from rag_gold_ranks
        group by trace_id, request_id, label_id, label_set, passage, stage, stage_name
        union all
        select
            trace_id,
            request_id,
            label_id,
            label_set,
            passage,
            stage,
            stage_name,
            'document' as grain,
            min(document_rank) as best_rank,
            max(document_rank is not null or is_absent) as is_readable
        from rag_document_ranks
        group by trace_id, request_id, label_id, label_set, passage, stage, stage_name
    ),
    per_request as (
        select
            trace_id,
            request_id,
            label_id,
            label_set,
            stage,
            stage_name,
            grain,
            groupArray(ifNull(best_rank, 4294967295)) as ranks,
            min(is_readable) as is_readable
        from seen
        group by trace_id, request_id, label_id, label_set, stage, stage_name, grain
    ),
    flows as (
        select trace_id, request_id, searched, sent_count
        from rag_request_flows
        where (trace_id, request_id) in (select trace_id, request_id from rag_labelled_requests)
    ),
    requests as (
        select trace_id, request_id, started_at, service_name, run_id, arm
        from rag_requests
        where (trace_id, request_id) in (select trace_id, request_id from rag_labelled_requests)
        limit 1 by trace_id, request_id
    ),
    placed as (
        select
            per_request.label_set as label_set,
            requests.service_name as service_name,
            per_request.stage as stage,
            per_request.stage_name as stage_name,
            per_request.grain as grain,
            per_request.ranks as ranks,
            per_request.is_readable as is_readable,
            arrayMin(per_request.ranks) as first_rank,
            arrayMax(per_request.ranks) as last_rank,
            toDate(requests.started_at) as day,
            requests.run_id as run_id,
            requests.arm as arm,
            arrayStringConcat(
                arrayFilter(name -> name != '', arrayDistinct(arrayMap(pair -> pair.2, flows.searched))),
                ', '
            ) as index_version,
            flows.sent_count as k_prompt
        from per_request
        inner join requests
            on requests.trace_id = per_request.trace_id and requests.request_id = per_request.request_id
        left join flows
            on flows.trace_id = per_request.trace_id and flows.request_id = per_request.request_id
    ),
    summed as (
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
            countIf(is_readable) as requests,
            countIf(not is_readable) as unreadable_requests,
            sumForEachIf(arrayMap(k -> arrayAvg(rank -> rank <= k, ranks), ks), is_readable) as recalls,
            sumForEachIf(arrayMap(k -> toFloat64(first_rank <= k), ks), is_readable) as anys,
            sumForEachIf(arrayMap(k -> toFloat64(last_rank <= k), ks), is_readable) as alls,
            sumForEachIf(
                arrayMap(
                    -- Passages of one document share its rank and count once.
                    k -> arraySum(rank -> if(rank <= k, 1 / log2(rank + 1), 0), arrayDistinct(ranks))
                    / arraySum(
                        place -> 1 / log2(place + 1),
                        range(
                            1,
                            least(
                                length(arrayDistinct(arrayFilter(rank -> rank < 4294967295, ranks)))
                                + countEqual(ranks, 4294967295),
                                k
                            ) + 1
                        )
                    ),
                    ks
                ),
                is_readable
            ) as ndcgs,
            avgOrNullIf(if(first_rank = 4294967295, 0, 1 / first_rank), is_readable) as mrr,
            countIf(is_readable and k_prompt is not null) as k_prompt_requests,
            avgOrNullIf(arrayAvg(rank -> rank <= ifNull(k_prompt, 0), ranks), is_readable and k_prompt is not null) as recall_at_k_prompt,
            avgOrNullIf(last_rank <= ifNull(k_prompt, 0), is_readable and k_prompt is not null) as all_present_at_k_prompt,
            avgOrNullIf(k_prompt, is_readable and k_prompt is not null) as mean_k_prompt
        from placed
        group by day, service_name, run_id, arm, label_set, index_version, grain, stage, stage_name
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
    requests,
    unreadable_requests,
    if(requests = 0, null, recalls[place] / requests) as recall,
    if(requests = 0, null, anys[place] / requests) as any_present,
    if(requests = 0, null, alls[place] / requests) as all_present,
    mrr,
    if(requests = 0, null, ndcgs[place] / requests) as ndcg,
    k_prompt_requests,
    recall_at_k_prompt,
    all_present_at_k_prompt,
    mean_k_prompt
from summed
array join ks as k, arrayEnumerate(ks) as place
settings join_use_nulls = 0
