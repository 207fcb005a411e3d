-- answers: which searches, each by itself, brought the candidates of a labelled request?
-- grain:   one row per search leg that fed the prompt of a labelled request
-- reads:   rag_labelled_requests, rag_labelled_lists, rag_request_flows
-- A client call inside of a leg is that leg's inner working; a search that holds several searches joins them and is
-- no leg of its own.
create or replace view rag_search_legs as
with
    searches as (
        select
            trace_id,
            request_id,
            groupArray(parent_span_id) as parents,
            groupArray((span_id, parent_span_id, started_at, stage_name, evidence, has(keys, ''))) as runs
        from rag_labelled_lists
        where stage = 'retrieve'
        group by trace_id, request_id
    ),
    spread as (
        select trace_id, request_id, parents, arrayMap(one -> one.1, runs) as spans, run
        from searches
        array join runs as run
    )
select
    spread.trace_id as trace_id,
    spread.request_id as request_id,
    spread.run.1 as span_id,
    spread.run.3 as started_at,
    if(spread.run.4 = '', 'retrieve', toString(spread.run.4)) as leg,
    spread.run.5 in ('whole', 'empty') as is_whole,
    spread.run.6 as has_nameless
from spread
inner join (
    select trace_id, request_id, leg_span_ids
    from rag_request_flows
    where (trace_id, request_id) in (select trace_id, request_id from rag_labelled_requests)
) as flows on flows.trace_id = spread.trace_id and flows.request_id = spread.request_id
where
    has(flows.leg_span_ids, spread.run.1)
    and countEqual(spread.parents, spread.run.1) < 2
    and not (has(spread.spans, spread.run.2) and countEqual(spread.parents, spread.run.2) = 1)
settings join_use_nulls = 0
