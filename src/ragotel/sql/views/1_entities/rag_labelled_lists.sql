-- answers: which lists did the stages of labelled requests return, with every candidate named as well as can be?
-- grain:   one row per list stage of a labelled request (a failed stage without a list handed nothing on)
-- reads:   rag_labelled_requests, rag_stages
-- keys name each candidate within its request: 'id:' and its id, else the hash of its text. A service writes the
-- hash of an id in one list of a request only, so whoever needs it looks it up once per request, not per list.
-- Other instrumentations lose ids on the way: a text takes the one id that the request's lists give it, else its
-- own hash. Without either it stays nameless.
create or replace view rag_labelled_lists as
select
    *,
    arrayMap(
        (id, sha) -> if(id is null, sha, concat('id:', assumeNotNull(id))),
        chunk_ids,
        candidate_shas
    ) as keys
from (
    select * except (named) replace (
        if(
            convention = 'ragotel',
            chunk_ids,
            arrayMap(
                (id, sha) -> if(
                    id is null and sha != '',
                    if(countEqual(named.1, sha) = 1, named.2[indexOf(named.1, sha)], sha),
                    id
                ),
                chunk_ids,
                candidate_shas
            )
        ) as chunk_ids
    )
    from (
        select
            *,
            max(stage = 'assemble' and evidence in ('whole', 'empty')) over (
                partition by trace_id, request_id
            ) as has_sent_list,
            groupUniqArrayIf(
                (toString(index_name), toString(index_version)),
                stage = 'retrieve' and index_version != ''
            ) over (partition by trace_id, request_id) as served,
            groupUniqArrayArray(
                if(
                    convention = 'ragotel',
                    [],
                    arrayFilter(
                        pair -> pair.1 != '' and pair.2 != '',
                        arrayMap((sha, id) -> (sha, ifNull(id, '')), candidate_shas, chunk_ids)
                    )
                )
            ) over (partition by trace_id, request_id) as named
        from rag_stages final
        prewhere (trace_id, request_id) in (select trace_id, request_id from rag_labelled_requests)
        where stage in ('retrieve', 'fuse', 'rerank', 'blend', 'filter', 'assemble')
    )
)
where not (outcome in ('error', 'cancelled') and evidence = 'not_recorded')
