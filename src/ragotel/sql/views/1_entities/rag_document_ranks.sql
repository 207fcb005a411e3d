-- answers: at which rank did each stage have the first chunk of a gold document?
-- grain:   one row per request × label × gold passage × stage run
-- reads:   rag_request_labels, rag_label_passages, rag_labelled_lists, rag_index_chunks
-- Documents are counted, not chunks. A candidate without a document id takes the one that every manifest gives its
-- chunk; where they differ, or know none, it stays unknown, and so does the rank of what comes after it.
create or replace view rag_document_ranks as
with
    documents as (
        select chunk_id, any(doc_id) as only_doc_id
        from rag_index_chunks
        where doc_id != ''
        group by chunk_id
        having uniqExact(doc_id) = 1
    ),
    gaps as (
        select trace_id, request_id, span_id, place, assumeNotNull(gap_id) as chunk_id
        from rag_labelled_lists
        array join
            arrayEnumerate(chunk_ids) as place,
            chunk_ids as gap_id,
            candidate_doc_ids as gap_doc_id
        where gap_doc_id = '' and gap_id is not null
    ),
    found as (
        select
            gaps.trace_id as trace_id,
            gaps.request_id as request_id,
            gaps.span_id as span_id,
            groupArrayInsertAt('')(documents.only_doc_id, toUInt32(gaps.place - 1)) as doc_ids
        from gaps
        inner join documents on documents.chunk_id = gaps.chunk_id
        group by trace_id, request_id, span_id
    ),
    lists as (
        select
            stage_rows.trace_id as trace_id,
            stage_rows.request_id as request_id,
            stage_rows.span_id as span_id,
            stage_rows.service_name as service_name,
            stage_rows.stage as stage,
            stage_rows.stage_name as stage_name,
            stage_rows.evidence as evidence,
            arrayMap(
                (own, known) -> if(own = '', known, own),
                stage_rows.candidate_doc_ids,
                arrayResize(found.doc_ids, length(stage_rows.candidate_doc_ids), '')
            ) as doc_ids
        from rag_labelled_lists as stage_rows
        left join found
            on found.trace_id = stage_rows.trace_id
            and found.request_id = stage_rows.request_id
            and found.span_id = stage_rows.span_id
    ),
    wanted as (
        select
            matched.trace_id as trace_id,
            matched.request_id as request_id,
            matched.label_id as label_id,
            passages.label_set as label_set,
            passages.passage as passage,
            passages.known_doc_ids as known_doc_ids
        from rag_request_labels as matched
        inner join rag_label_passages as passages on passages.label_id = matched.label_id
        where passages.passage > 0
    ),
    placed as (
        select
            wanted.*,
            lists.span_id as span_id,
            lists.service_name as service_name,
            lists.stage as stage,
            lists.stage_name as stage_name,
            lists.evidence as evidence,
            lists.doc_ids as doc_ids,
            arrayFirstIndex(doc -> doc != '' and has(wanted.known_doc_ids, doc), lists.doc_ids) as place
        from wanted
        inner join lists on lists.trace_id = wanted.trace_id and lists.request_id = wanted.request_id
    )
select
    trace_id,
    request_id,
    label_id,
    label_set,
    passage,
    span_id,
    service_name,
    stage,
    stage_name,
    if(
        place = 0 or has(arraySlice(doc_ids, 1, place), ''),
        null,
        length(arrayDistinct(arraySlice(doc_ids, 1, place)))
    )::Nullable(UInt32) as document_rank,
    place = 0 and notEmpty(known_doc_ids) and evidence in ('whole', 'empty') and not has(doc_ids, '') as is_absent
from placed
settings join_use_nulls = 0
