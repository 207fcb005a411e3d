-- answers: does recall@10 still say what happens at the k that is sent, or do the two drift apart?
-- grain:   one row per day × service × run × arm × label set
-- reads:   rag_gold_places
-- Both are of the list handed to assembly: recall at 10 of it, and at as many as the prompt held. change compares the
-- day's difference with that of the seven days before, each request counting once; null where they hold none.
-- Beside them mean_top_k, the k of the search or of the last cut, and of how many requests (of window_requests that
-- tell) the claim begins behind the reranker's window.
create or replace view dist_recall_drift as
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
            any(k_prompt) as sent_k,
            any(top_k) as own_k,
            max(beyond_rerank_window) as is_beyond,
            avg(ifNull(final_rank <= 10, false)) as within_10,
            avg(ifNull(final_rank <= k_prompt, false)) as within_k_prompt,
            min(final_rank is not null or is_final_absent) as is_readable
        from rag_gold_places
        group by trace_id, request_id, label_id
    ),
    daily as (
        select
            toDate(started_at) as day,
            service_name,
            run_id,
            arm,
            label_set,
            countIf(is_readable and sent_k is not null) as requests,
            countIf(not is_readable or sent_k is null) as unreadable_requests,
            sumIf(within_10, is_readable and sent_k is not null) as sum_at_10,
            sumIf(within_k_prompt, is_readable and sent_k is not null) as sum_at_k_prompt,
            sumIf(sent_k, is_readable and sent_k is not null) as sum_k_prompt,
            countIf(own_k is not null) as k_requests,
            sum(own_k) as sum_top_k,
            min(trace_id) as example_trace_id,
            countIf(is_beyond is not null) as window_requests,
            countIf(is_beyond) as beyond_rerank_window,
            minIf(trace_id, is_beyond) as beyond_example_trace_id
        from per_request
        group by day, service_name, run_id, arm, label_set
    ),
    trailing as (
        select
            *,
            sum(requests) over week_before as former_requests,
            sum(sum_at_10 - sum_at_k_prompt) over week_before as former_sum,
            sum(sum_at_k_prompt) over week_before as former_sum_at_k_prompt,
            sum(k_requests) over week_before as former_k_requests,
            sum(sum_top_k) over week_before as former_sum_top_k
        from daily
        window week_before as (
            partition by service_name, run_id, arm, label_set
            order by day
            range between 7 preceding and 1 preceding
        )
    )
select
    day,
    service_name,
    run_id,
    arm,
    label_set,
    requests,
    unreadable_requests,
    if(requests = 0, null, sum_at_10 / requests) as recall_at_10,
    if(requests = 0, null, sum_at_k_prompt / requests) as recall_at_k_prompt,
    if(requests = 0, null, sum_k_prompt / requests) as mean_k_prompt,
    if(requests = 0, null, (sum_at_10 - sum_at_k_prompt) / requests) as difference,
    former_requests,
    if(former_requests = 0, null, former_sum / former_requests) as former_difference,
    difference - former_difference as change,
    if(former_requests = 0, null, former_sum_at_k_prompt / former_requests) as former_recall_at_k_prompt,
    if(k_requests = 0, null, sum_top_k / k_requests) as mean_top_k,
    if(former_k_requests = 0, null, former_sum_top_k / former_k_requests) as former_mean_top_k,
    example_trace_id,
    window_requests,
    beyond_rerank_window,
    beyond_example_trace_id
from trailing
settings join_use_nulls = 0
