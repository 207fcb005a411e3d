-- answers: how much of the evidence does each service record, and what was lost on the way?
-- grain:   one row per day × service
-- reads:   rag_requests, rag_stages, rag_prompts, rag_losses, rag_request_labels, rag_request_grades
-- Shares are 0 to 1 of the requests of that day and service.
create or replace view dist_coverage as
with
    recorded as (
        select
            trace_id,
            request_id,
            maxIf(evidence in ('whole', 'empty') , stage = 'retrieve') as has_candidates,
            maxIf(evidence in ('malformed', 'truncated'), true) as has_damaged_list,
            maxIf(arrayExists(id -> id is not null, chunk_ids) or evidence = 'empty', stage = 'retrieve') as has_ids,
            maxIf(arrayExists(score -> score is not null, scores) or evidence = 'empty', stage = 'retrieve') as has_scores,
            maxIf(index_version != '', stage = 'retrieve') as has_index_version,
            maxIf(evidence in ('whole', 'empty'), stage = 'assemble') as has_sent_list,
            sum(capture_errors) as capture_errors
        from rag_stages final
        group by trace_id, request_id
    ),
    prompted as (
        select
            trace_id,
            request_id,
            max(prompt != '') as has_prompt,
            max(is_whole) as has_whole_prompt,
            max(template_version != '') as has_template_version
        from rag_prompts final
        group by trace_id, request_id
    ),
    labelled as (
        select distinct trace_id, request_id
        from rag_request_labels
    ),
    graded as (
        select distinct request_id
        from rag_request_grades
        where request_id != ''
    ),
    lost as (
        select
            day,
            service_name,
            sum(cause_spans) as lost_spans,
            sum(cause_requests) as lost_requests,
            cast((groupArray(cause), groupArray(cause_spans)), 'Map(String, UInt64)') as lost_spans_by_cause
        from (
            select
                toDate(lost_at) as day,
                service_name,
                toString(cause) as cause,
                sum(spans) as cause_spans,
                sum(requests) as cause_requests
            from rag_losses final
            where not rag_is_canary(service_name)
            group by day, service_name, cause
        )
        group by day, service_name
    ),
    covered as (
        select
            toDate(requests.started_at) as day,
            requests.service_name as service_name,
            count() as requests,
            avg(recorded.has_candidates) as share_with_candidates,
            avg(recorded.has_ids) as share_with_ids,
            avg(recorded.has_scores) as share_with_scores,
            avg(recorded.has_index_version) as share_with_index_version,
            avg(recorded.has_sent_list) as share_with_sent_list,
            avg(prompted.has_prompt) as share_with_prompt,
            avg(prompted.has_whole_prompt) as share_with_whole_prompt,
            avg(prompted.has_template_version) as share_with_template_version,
            avg(recorded.has_damaged_list) as share_with_damaged_list,
            avg(labelled.trace_id != '') as share_labelled,
            avg(graded.request_id != '') as share_graded,
            sum(requests.capture_errors + recorded.capture_errors) as capture_errors
        from (
            select trace_id, request_id, started_at, service_name, capture_errors
            from rag_requests final
            where not rag_is_canary(service_name)
        ) as requests
        left join recorded
            on recorded.trace_id = requests.trace_id and recorded.request_id = requests.request_id
        left join prompted
            on prompted.trace_id = requests.trace_id and prompted.request_id = requests.request_id
        left join labelled
            on labelled.trace_id = requests.trace_id and labelled.request_id = requests.request_id
        left join graded on graded.request_id = requests.request_id
        group by day, service_name
    )
select
    covered.*,
    lost.lost_spans as lost_spans,
    lost.lost_requests as lost_requests,
    lost.lost_spans_by_cause as lost_spans_by_cause
from covered
left join lost on lost.day = covered.day and lost.service_name = covered.service_name
union all
select
    lost.day,
    lost.service_name,
    0, null, null, null, null, null, null, null, null, null, null, null, 0,
    lost.lost_spans,
    lost.lost_requests,
    lost.lost_spans_by_cause
from lost
where (lost.day, lost.service_name) not in (select day, service_name from covered)
settings join_use_nulls = 0
