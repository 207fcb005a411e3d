-- answers: is the gold missing from the list that entered the reranker, buried in it, or first already?
-- grain:   one row per day × service × run × arm × label set × index version × grain
-- reads:   rag_labelled_requests, rag_gold_places, rag_document_ranks, rag_request_flows
-- Gold passages are counted. missing: no reranker can help; buried: a reranker can; top: there is nothing to gain.
-- Without a reranker it is the list that was handed to assembly. undecided ones are in no share.
create or replace view dist_recall_classes as
with
    inputs as (
        select trace_id, request_id, rerank_input_span_ids
        from rag_request_flows
        where (trace_id, request_id) in (select trace_id, request_id from rag_labelled_requests)
    ),
    documents as (
        select
            ranks.trace_id as trace_id,
            ranks.request_id as request_id,
            ranks.label_id as label_id,
            ranks.passage as passage,
            min(ranks.document_rank) as best_rank,
            best_rank is null
            and countIf(ranks.is_absent) = any(length(inputs.rerank_input_span_ids)) as is_gone
        from rag_document_ranks as ranks
        inner join inputs on inputs.trace_id = ranks.trace_id and inputs.request_id = ranks.request_id
        where has(inputs.rerank_input_span_ids, ranks.span_id)
        group by trace_id, request_id, label_id, passage
    ),
    passages as (
        select
            places.started_at as started_at,
            places.service_name as service_name,
            places.run_id as run_id,
            places.arm as arm,
            places.label_set as label_set,
            places.index_version as index_version,
            [
                ('chunk', places.input_rank, places.is_input_absent),
                ('document', documents.best_rank, documents.is_gone)
            ]::Array(Tuple(String, Nullable(UInt32), UInt8)) as readings
        from rag_gold_places as places
        left join documents
            on documents.trace_id = places.trace_id
            and documents.request_id = places.request_id
            and documents.label_id = places.label_id
            and documents.passage = places.passage
    ),
    counted as (
        select
            toDate(started_at) as day,
            service_name,
            run_id,
            arm,
            label_set,
            index_version,
            reading.1 as grain,
            countIf(reading.2 is not null or reading.3) as passages,
            countIf(reading.2 is null and reading.3) as missing,
            countIf(reading.2 > 1) as buried,
            countIf(reading.2 = 1) as top,
            countIf(reading.2 is null and not reading.3) as undecided
        from passages
        array join readings as reading
        group by day, service_name, run_id, arm, label_set, index_version, grain
    )
select
    *,
    if(passages = 0, null, missing / passages) as missing_share,
    if(passages = 0, null, buried / passages) as buried_share,
    if(passages = 0, null, top / passages) as top_share
from counted
settings join_use_nulls = 0
