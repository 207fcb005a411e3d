-- answers: what was answered to this request's question with the gold passage alone, elsewhere, or as before?
-- grain:   one row per request × label × mode × position × number of passages; the newest run
-- reads:   rag_ablations, rag_requests
create or replace view rag_request_ablations as
with
    runs as (
        select *
        from rag_ablations final
    ),
    requests as (
        select trace_id, request_id, started_at, service_name
        from rag_requests
        where
            request_id in (select request_id from runs where request_id != '')
            or trace_id in (select trace_id from runs where request_id = '')
        limit 1 by trace_id, request_id
    ),
    met as (
        select
            requests.trace_id as trace_id,
            requests.request_id as request_id,
            requests.started_at as started_at,
            requests.service_name as service_name,
            runs.label_id as label_id,
            runs.mode as mode,
            runs.position as position,
            runs.of as of,
            runs.correct as correct,
            runs.answer as answer,
            runs.ablated_at as ablated_at
        from requests
        inner join runs on runs.request_id = requests.request_id
        where runs.request_id != '' and runs.trace_id in ('', requests.trace_id)
        union all
        select
            requests.trace_id,
            requests.request_id,
            requests.started_at,
            requests.service_name,
            runs.label_id,
            runs.mode,
            runs.position,
            runs.of,
            runs.correct,
            runs.answer,
            runs.ablated_at
        from requests
        inner join runs on runs.trace_id = requests.trace_id
        where runs.request_id = ''
    )
select *
from met
order by ablated_at desc
limit 1 by trace_id, request_id, label_id, mode, position, of
