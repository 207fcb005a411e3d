-- answers: what did each stage return, in a service that another instrumentation traces?
-- grain:   fills rag_stages at insert, one row per span that retrieves, reranks or generates
-- reads:   rag_foreign_read
create materialized view if not exists rag_foreign_stages_mv to rag_stages as
select
    trace_id,
    request_id,
    span_id,
    parent_span_id,
    started_at,
    started_at + toIntervalNanosecond(least(duration, 86400000000000)) as ended_at,
    duration / 1e6 as duration_ms,
    service_name,
    stage,
    span_name as stage_name,
    transform(status_code, ['Error', 'Ok'], ['error', 'ok'], '') as outcome,
    arrayMap(document -> document.id, documents) as chunk_ids,
    arrayMap(document -> document.score, documents) as scores,
    arrayMap(
        document -> if(
            trimBoth(ifNull(document.text, '')) = '',
            '',
            concat('sha256:', lower(substring(hex(SHA256(rag_normalise(assumeNotNull(document.text)))), 1, 16)))
        ),
        documents
    ) as candidate_shas,
    arrayMap(document -> document.doc_id, documents) as candidate_doc_ids,
    arrayMap(document -> '', documents) as candidate_doc_versions,
    arrayMap(document -> null, documents)::Array(Nullable(UInt32)) as candidate_tokens,
    arrayMap(document -> if(document.text is null, null, toUInt32(lengthUTF8(document.text))), documents)::Array(Nullable(UInt32)) as candidate_chars,
    arrayMap(document -> null, documents)::Array(Nullable(UInt32)) as candidate_kept_chars,
    arrayMap(document -> null, documents)::Array(Nullable(Bool)) as candidate_superseded,
    arrayMap(document -> '', documents) as candidate_legs,
    candidate_count,
    in_count,
    index_name,
    index_version,
    filter,
    if(stage = 'generate', '', question) as query,
    model,
    provider,
    top_k,
    if(stage = 'rerank', top_k, null) as limit_count,
    if(is_distance, 'distance', '') as score_kind,
    if(is_distance, false, null)::Nullable(Bool) as higher_is_better,
    input_tokens,
    output_tokens,
    finish_reasons,
    temperature,
    first_token_ms as time_to_first_token_ms,
    if(stage = 'generate', prompt_state, '') as content_mode,
    convention,
    if(stage = 'generate', 'not_recorded', evidence) as evidence,
    'not_recorded' as dropped_evidence
from rag_foreign_read
where stage in ('retrieve', 'rerank', 'generate')
