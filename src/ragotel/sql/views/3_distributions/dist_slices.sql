-- answers: for which kind of question is the gold missed more often?
-- grain:   one row per day × service × run × arm × label set × tag key × tag value × cutoff
-- reads:   rag_gold_places, rag_request_tags
-- A miss: the list handed to assembly has a gold passage below the cutoff, or not at all; cutoff 0 is each request's
-- own k. Take one cutoff, never their sum. Value '' holds the requests without that tag; undecided ones are in no
-- rate. low and high bound the miss rate at 95 % confidence.
create or replace view dist_slices as
with
    per_request as (
        select
            trace_id,
            request_id,
            label_id,
            any(started_at) as started_at,
            any(service_name) as service_name,
            any(run_id) as run_id,
            any(arm) as arm,
            any(label_set) as label_set,
            any(ifNull(top_k, 4294967294)) as own_k,
            max(if(is_final_absent, 4294967295, ifNull(final_rank, 0))) as worst_rank,
            max(final_rank is null and not is_final_absent) as is_unknown
        from rag_gold_places
        group by trace_id, request_id, label_id
    ),
    tagged as (
        select trace_id, request_id, groupUniqArray((tag_key, tag_value)) as tags
        from rag_request_tags
        group by trace_id, request_id
    ),
    sliced as (
        select
            per_request.*,
            tagged.tags as tags,
            groupUniqArrayArray(arrayMap(tag -> tag.1, tagged.tags)) over (
                partition by per_request.service_name, per_request.label_set
            ) as all_keys
        from per_request
        left join tagged
            on tagged.trace_id = per_request.trace_id and tagged.request_id = per_request.request_id
    ),
    keyed as (
        select
            trace_id,
            toDate(started_at) as day,
            service_name,
            run_id,
            arm,
            label_set,
            own_k,
            worst_rank,
            is_unknown,
            tag_key,
            arrayMap(tag -> tag.2, arrayFilter(tag -> tag.1 = tag_key, tags)) as tag_values
        from sliced
        array join all_keys as tag_key
    ),
    decided as (
        select
            trace_id,
            day,
            service_name,
            run_id,
            arm,
            label_set,
            tag_key,
            tag_value,
            cutoff,
            worst_rank > if(cutoff = 0, own_k, cutoff) as is_miss,
            is_miss or not is_unknown as is_decided
        from keyed
        array join if(empty(tag_values), [''], tag_values) as tag_value
        array join [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 50, 100]::Array(UInt32) as cutoff
    ),
    counted as (
        select
            day,
            service_name,
            run_id,
            arm,
            label_set,
            tag_key,
            tag_value,
            cutoff,
            countIf(is_decided) as requests,
            countIf(is_miss) as misses,
            countIf(not is_decided) as undecided,
            minIf(trace_id, is_miss) as example_trace_id
        from decided
        group by day, service_name, run_id, arm, label_set, tag_key, tag_value, cutoff
    )
select
    *,
    if(requests = 0, null, misses / requests) as miss_rate,
    rag_wilson(misses, requests).1 as miss_rate_low,
    rag_wilson(misses, requests).2 as miss_rate_high
from counted
settings join_use_nulls = 0
