-- answers: which lists did the stages of labelled requests return, with every candidate named as well as can be?
-- grain:   one row per list stage of a labelled request (a failed stage without a list handed nothing on)
-- reads:   rag_labelled_requests, rag_stages
-- keys name each candidate within its request: 'id:' and its id, else the hash of its text. A service writes the
-- hash of an id in one list of a request only, so whoever needs it looks it up once per request, not per list.
create or replace view rag_labelled_lists as
select
    *,
    arrayMap(
        (id, sha) -> if(id is null, sha, concat('id:', assumeNotNull(id))),
        chunk_ids,
        candidate_shas
    ) as keys
from (
    select
        *,
        max(stage = 'assemble' and evidence in ('whole', 'empty')) over (
            partition by trace_id, request_id
        ) as has_sent_list,
        groupUniqArrayIf(
            (toString(index_name), toString(index_version)),
            stage = 'retrieve' and index_version != ''
        ) over (partition by trace_id, request_id) as served
    from rag_stages final
    where
        (trace_id, request_id) in (select trace_id, request_id from rag_labelled_requests)
        and stage in ('retrieve', 'fuse', 'rerank', 'blend', 'filter', 'assemble')
)
where not (outcome in ('error', 'cancelled') and evidence = 'not_recorded')
