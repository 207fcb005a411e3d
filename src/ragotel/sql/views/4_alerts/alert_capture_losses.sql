-- answers: on which days was more of the record lost on the way than the limit allows, and why?
-- grain:   one row per day × service × cause
-- reads:   rag_losses, rag_stages, rag_requests, rag_limits_in_force
-- observed is the share of the spans that were lost: verdicts of that day stand on what is left.
create or replace view alert_capture_losses as
with
    lost as (
        select
            toDate(lost_at) as day,
            toString(service_name) as service_name,
            toString(cause) as cause,
            sum(spans) as lost_spans,
            sum(requests) as lost_requests,
            argMax(trace_id, lost_at) as example_trace_id
        from rag_losses final
        where not rag_is_canary(rag_losses.service_name)
        group by day, service_name, cause
    ),
    stored as (
        select day, service_name, sum(spans) as stored_spans
        from (
            select toDate(started_at) as day, toString(service_name) as service_name, uniqExact(trace_id, span_id) as spans
            from rag_stages
            where toDate(started_at) in (select day from lost)
            group by day, service_name
            union all
            select toDate(started_at) as day, toString(service_name) as service_name, uniqExact(trace_id, span_id) as spans
            from rag_requests
            where toDate(started_at) in (select day from lost)
            group by day, service_name
        )
        group by day, service_name
    ),
    limited as (
        select
            lost.day as day,
            lost.service_name as service_name,
            lost.cause as cause,
            lost.lost_spans as lost_spans,
            lost.lost_requests as lost_requests,
            lost.example_trace_id as example_trace_id,
            lost.lost_spans + stored.stored_spans as sample_count,
            if(own.limit_name != '', own.max_share, general.max_share) as max_share,
            if(own.limit_name != '', own.min_sample, general.min_sample) as min_sample
        from lost
        left join stored on stored.day = lost.day and stored.service_name = lost.service_name
        left join (
            select *
            from rag_limits_in_force
            where limit_name = 'spans_lost' and service_name != ''
        ) as own on own.service_name = lost.service_name
        cross join (
            select *
            from rag_limits_in_force
            where limit_name = 'spans_lost' and service_name = ''
        ) as general
    )
select
    'capture_losses' as name,
    limited.service_name::String as service_name,
    '' as label_set,
    cause::String as subject,
    toDateTime64(day, 9, 'UTC') as window_at,
    lost_spans / sample_count as observed,
    assumeNotNull(max_share) as allowed,
    toUInt64(sample_count) as sample_count,
    example_trace_id,
    '' as example_request_id,
    concat(
        toString(lost_spans), ' of ', toString(sample_count), ' spans were lost (', cause, ')',
        if(lost_requests = 0, '.', concat(', of ', toString(lost_requests), if(lost_requests = 1, ' request.', ' requests.')))
    ) as message
from limited
where sample_count >= min_sample and lost_spans / sample_count > max_share
settings join_use_nulls = 0
