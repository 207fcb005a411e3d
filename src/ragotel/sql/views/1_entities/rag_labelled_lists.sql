-- answers: which lists did the stages of labelled requests return, with every candidate named as well as can be?
-- grain:   one row per list stage of a labelled request (a failed stage without a list handed nothing on)
-- reads:   rag_request_labels, rag_stages
-- keys name each candidate: the hash of its text, else 'id:' and its id. A service writes the hash once per
-- request and candidate; another list of the same request takes it from there, where the id has only one.
create or replace view rag_labelled_lists as
select
    *,
    arrayMap(
        (id, sha) -> if(
            sha != '' or id is null,
            sha,
            if(
                arrayCount(pair -> pair.1 = ifNull(id, ''), shas_by_id) = 1,
                arrayFirst(pair -> pair.1 = ifNull(id, ''), shas_by_id).2,
                ''
            )
        ),
        chunk_ids,
        candidate_shas
    ) as shas,
    arrayMap((id, sha) -> if(sha != '', sha, concat('id:', ifNull(id, ''))), chunk_ids, shas) as keys
from (
    select
        *,
        groupUniqArrayArray(
            arrayFilter(
                pair -> pair.1 != '' and pair.2 != '',
                arrayMap((id, sha) -> (ifNull(id, ''), sha), chunk_ids, candidate_shas)
            )
        ) over (partition by trace_id, request_id) as shas_by_id,
        max(stage = 'assemble' and evidence in ('whole', 'empty')) over (
            partition by trace_id, request_id
        ) as has_sent_list,
        groupUniqArrayIf(
            (toString(index_name), toString(index_version)),
            stage = 'retrieve' and index_version != ''
        ) over (partition by trace_id, request_id) as served
    from rag_stages final
    where
        (trace_id, request_id) in (select trace_id, request_id from rag_request_labels)
        and stage in ('retrieve', 'fuse', 'rerank', 'blend', 'filter', 'assemble')
)
where not (outcome in ('error', 'cancelled') and evidence = 'not_recorded')
