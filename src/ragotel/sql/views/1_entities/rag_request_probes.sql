-- answers: what did deep searches find for this request's gold passages?
-- grain:   one row per request × label × passage × leg × index version; the newest probe
-- reads:   rag_probes, rag_requests
create or replace view rag_request_probes as
with
    probes as (
        select *
        from rag_probes final
    ),
    requests as (
        select trace_id, request_id
        from rag_requests
        where
            request_id in (select request_id from probes where request_id != '')
            or trace_id in (select trace_id from probes where request_id = '')
        limit 1 by trace_id, request_id
    )
select
    requests.trace_id as trace_id,
    requests.request_id as request_id,
    probes.label_id as label_id,
    probes.passage as passage,
    probes.leg as leg,
    probes.principal as principal,
    probes.k as k,
    probes.deep_rank as deep_rank,
    probes.score as score,
    probes.index_version as index_version,
    probes.probed_at as probed_at
from requests
inner join probes on probes.request_id = requests.request_id
where probes.request_id != '' and probes.trace_id in ('', requests.trace_id)
union all
select
    requests.trace_id,
    requests.request_id,
    probes.label_id,
    probes.passage,
    probes.leg,
    probes.principal,
    probes.k,
    probes.deep_rank,
    probes.score,
    probes.index_version,
    probes.probed_at
from requests
inner join probes on probes.trace_id = requests.trace_id
where probes.request_id = ''
