-- answers: where did a search leg or reranker fail, or a reranker change nothing for many requests in a row?
-- grain:   one row per day × service × stage × kind of degradation
-- reads:   rag_stages, rag_limits_in_force
-- failed_stage: the share of a stage's runs that ended in error or were cancelled. reranker_fallback: the longest row
-- of reranks of two or more candidates that left the order as it was; one may by chance, twenty running do not.
create or replace view alert_degraded as
with
    runs as (
        select
            toString(service_name) as service_name,
            toString(stage) as stage,
            toString(stage_name) as stage_name,
            trace_id,
            request_id,
            started_at,
            outcome in ('error', 'cancelled') as is_failed,
            stage = 'rerank' and rerank_effect = 'identity' and ifNull(candidate_count, 0) >= 2 as is_idle,
            stage = 'rerank' and ifNull(candidate_count, 0) >= 2 as is_rerank
        from rag_stages final
        where stage in ('retrieve', 'rerank') and not rag_is_canary(rag_stages.service_name)
    ),
    failures as (
        select
            toDate(started_at) as day,
            service_name,
            'failed_stage' as subject,
            if(stage_name = '', stage, stage_name) as called,
            countIf(is_failed) / count() as observed,
            count() as sample_count,
            argMaxIf((trace_id, request_id), (started_at, trace_id), is_failed) as example,
            concat(called, ' failed in ', toString(countIf(is_failed)), ' of ', toString(count()), ' runs: those answers went on without it.') as message
        from runs
        group by day, service_name, stage, stage_name
        having countIf(is_failed) > 0
    ),
    islands as (
        select
            *,
            countIf(not is_idle) over (
                partition by service_name, stage_name
                order by started_at, trace_id, request_id
                rows between unbounded preceding and current row
            ) as island
        from runs
        where is_rerank
    ),
    streaks as (
        select
            *,
            countIf(is_idle) over (
                partition by service_name, stage_name, island
                order by started_at, trace_id, request_id
                rows between unbounded preceding and current row
            ) as streak
        from islands
    ),
    fallbacks as (
        select
            toDate(started_at) as day,
            service_name,
            'reranker_fallback' as subject,
            if(stage_name = '', 'rerank', stage_name) as called,
            toFloat64(max(streak)) as observed,
            count() as sample_count,
            argMax((trace_id, request_id), (streak, started_at)) as example,
            concat(called, ' left the order as it was in ', toString(max(streak)), ' requests running: does it fall back to doing nothing?') as message
        from streaks
        group by day, service_name, stage_name
        having max(streak) > 0
    ),
    measured as (
        select *
        from failures
        union all
        select *
        from fallbacks
    ),
    limited as (
        select
            measured.day as day,
            measured.service_name as service_name,
            measured.subject as subject,
            measured.observed as observed,
            measured.sample_count as sample_count,
            measured.example as example,
            measured.message as message,
            if(own.limit_name != '', own.max_share, general.max_share) as max_share,
            if(own.limit_name != '', own.min_sample, general.min_sample) as min_sample
        from measured
        left join (
            select *
            from rag_limits_in_force
            where service_name != ''
        ) as own on own.limit_name = measured.subject and own.service_name = measured.service_name
        left join (
            select *
            from rag_limits_in_force
            where service_name = ''
        ) as general on general.limit_name = measured.subject
    )
select
    'degraded' as name,
    limited.service_name::String as service_name,
    '' as label_set,
    limited.subject::String as subject,
    toDateTime64(day, 9, 'UTC') as window_at,
    observed,
    assumeNotNull(if(subject = 'failed_stage', max_share, toFloat64(min_sample))) as allowed,
    toUInt64(sample_count) as sample_count,
    example.1 as example_trace_id,
    example.2 as example_request_id,
    message
from limited
where ifNull(
    if(subject = 'failed_stage', sample_count >= min_sample and observed > max_share, observed > min_sample), false
)
settings join_use_nulls = 0
