-- answers: at which rank did each list of a run or an arm have a lure of the label?
-- grain:   one row per request × label with lures × ranked list that was recorded
-- reads:   rag_requests, rag_labels, rag_request_labels, rag_stages, rag_index_chunks, rag_chunks
-- A lure is found by its chunk id, or by its wording in the text of a hit, which is found by the one hash that the
-- request's lists or the manifests give its id. unread_rank is the first hit whose text had to be read and is not known.
create or replace view ab_lure_ranks as
with
    baits as (
        select
            label_id,
            lure_chunk_ids,
            arrayFilter(span -> span != '', arrayMap(span -> trimBoth(rag_normalise(span)), lure_spans)) as lures
        from (
            select label_id, lure_chunk_ids, lure_spans
            from rag_labels
            order by loaded_at desc
            limit 1 by label_id
        )
        where notEmpty(lure_chunk_ids) or notEmpty(lures)
    ),
    lists as (
        select trace_id, request_id, span_id, chunk_ids, candidate_shas
        from rag_stages final
        where
            stage in ('retrieve', 'fuse', 'rerank', 'blend', 'filter')
            and notEmpty(chunk_ids)
            and (trace_id, request_id) in (
                select trace_id, request_id
                from rag_requests
                where run_id != '' or arm != ''
            )
    ),
    met as (
        select
            matched.trace_id as trace_id,
            matched.request_id as request_id,
            matched.label_id as label_id,
            lists.span_id as span_id,
            lists.chunk_ids as chunk_ids,
            lists.candidate_shas as candidate_shas,
            baits.lures as lures,
            arrayMap(id -> has(baits.lure_chunk_ids, ifNull(id, '')) and id != '', lists.chunk_ids) as lure_flags
        from rag_request_labels as matched
        inner join baits on baits.label_id = matched.label_id
        inner join lists on lists.trace_id = matched.trace_id and lists.request_id = matched.request_id
    ),
    hits as (
        select
            trace_id,
            request_id,
            label_id,
            span_id,
            lures,
            hit.1 as position,
            hit.2 as chunk_id,
            if(
                hit.2 = '',
                if(hit.3 = '', [], [hit.3]),
                groupUniqArrayIf(hit.3, hit.3 != '') over (
                    partition by trace_id, request_id, label_id, hit.2
                )
            ) as shas,
            hit.4 as is_lure
        from met
        array join arrayMap(
            (at, id, sha, named) -> (at, ifNull(id, ''), sha, named),
            arrayEnumerate(chunk_ids),
            chunk_ids,
            candidate_shas,
            lure_flags
        ) as hit
        where notEmpty(lures)
    ),
    manifest_shas as (
        select chunk_id, any(chunk_sha) as only_sha
        from rag_index_chunks
        where
            deleted = 0
            and chunk_sha != ''
            and (select count() from rag_labels where notEmpty(lure_spans)) > 0
        group by chunk_id
        having uniqExact(chunk_sha) = 1
    ),
    keyed as (
        select
            hits.trace_id as trace_id,
            hits.request_id as request_id,
            hits.label_id as label_id,
            hits.span_id as span_id,
            hits.position as position,
            hits.lures as lures,
            multiIf(
                length(hits.shas) > 1, '',
                notEmpty(hits.shas), hits.shas[1],
                manifest_shas.only_sha
            ) as chunk_sha
        from hits
        left join manifest_shas on manifest_shas.chunk_id = hits.chunk_id
        where not hits.is_lure
    ),
    texts as (
        select chunk_sha, any(text_norm) as text_norm
        from rag_chunks
        where (select count() from rag_labels where notEmpty(lure_spans)) > 0
        group by chunk_sha
    )
select
    trace_id,
    request_id,
    label_id,
    span_id,
    nullIf(minIf(lure_at, lure_at > 0), 0)::Nullable(UInt32) as lure_rank,
    nullIf(minIf(unread_at, unread_at > 0), 0)::Nullable(UInt32) as unread_rank
from (
    select
        trace_id,
        request_id,
        label_id,
        span_id,
        toUInt32(indexOf(lure_flags, 1)) as lure_at,
        toUInt32(0) as unread_at
    from met
    union all
    select
        keyed.trace_id,
        keyed.request_id,
        keyed.label_id,
        keyed.span_id,
        toUInt32(if(arrayExists(lure -> rag_contains(texts.text_norm, lure), keyed.lures), keyed.position, 0)) as lure_at,
        toUInt32(if(texts.chunk_sha = '', keyed.position, 0)) as unread_at
    from keyed
    left join texts on texts.chunk_sha = keyed.chunk_sha and keyed.chunk_sha != ''
)
group by trace_id, request_id, label_id, span_id
settings join_use_nulls = 0
