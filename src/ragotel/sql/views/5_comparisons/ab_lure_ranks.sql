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
    hits as (
        select
            trace_id,
            request_id,
            span_id,
            hit.1 as position,
            ifNull(hit.2, '') as chunk_id,
            hit.3 as chunk_sha
        from (
            select trace_id, request_id, span_id, chunk_ids, candidate_shas
            from rag_stages final
            where
                stage in ('retrieve', 'fuse', 'rerank', 'blend', 'filter')
                and (trace_id, request_id) in (
                    select trace_id, request_id
                    from rag_requests
                    where run_id != '' or arm != ''
                )
        )
        array join arrayMap(
            (at, id, sha) -> (at, id, sha),
            arrayEnumerate(chunk_ids),
            chunk_ids,
            candidate_shas
        ) as hit
    ),
    met as (
        select
            matched.trace_id as trace_id,
            matched.request_id as request_id,
            matched.label_id as label_id,
            hits.span_id as span_id,
            hits.position as position,
            hits.chunk_id as chunk_id,
            baits.lures as lures,
            has(baits.lure_chunk_ids, hits.chunk_id) and hits.chunk_id != '' as is_named,
            if(
                hits.chunk_id = '',
                if(hits.chunk_sha = '', [], [hits.chunk_sha]),
                groupUniqArrayIf(hits.chunk_sha, hits.chunk_sha != '') over (
                    partition by matched.trace_id, matched.request_id, matched.label_id, hits.chunk_id
                )
            ) as shas
        from rag_request_labels as matched
        inner join baits on baits.label_id = matched.label_id
        inner join hits on hits.trace_id = matched.trace_id and hits.request_id = matched.request_id
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
            met.trace_id as trace_id,
            met.request_id as request_id,
            met.label_id as label_id,
            met.span_id as span_id,
            met.position as position,
            met.is_named as is_named,
            met.lures as lures,
            multiIf(
                empty(met.lures) or met.is_named or length(met.shas) > 1, '',
                notEmpty(met.shas), met.shas[1],
                manifest_shas.only_sha
            ) as chunk_sha
        from met
        left join manifest_shas on manifest_shas.chunk_id = met.chunk_id
    ),
    texts as (
        select chunk_sha, any(text_norm) as text_norm
        from rag_chunks
        where (select count() from rag_labels where notEmpty(lure_spans)) > 0
        group by chunk_sha
    )
select
    keyed.trace_id as trace_id,
    keyed.request_id as request_id,
    keyed.label_id as label_id,
    keyed.span_id as span_id,
    nullIf(
        minIf(
            keyed.position,
            keyed.is_named or arrayExists(lure -> rag_contains(texts.text_norm, lure), keyed.lures)
        ),
        0
    )::Nullable(UInt32) as lure_rank,
    nullIf(
        minIf(
            keyed.position,
            not keyed.is_named and notEmpty(keyed.lures) and texts.chunk_sha = ''
        ),
        0
    )::Nullable(UInt32) as unread_rank
from keyed
left join texts on texts.chunk_sha = keyed.chunk_sha and keyed.chunk_sha != ''
group by trace_id, request_id, label_id, span_id
settings join_use_nulls = 0
