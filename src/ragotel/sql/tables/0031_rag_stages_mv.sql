-- answers: what did each stage return, in which order, from which index?
-- grain:   fills rag_stages at insert, one row per stage span (a stage of unknown kind is kept as well)
-- reads:   otel_traces
-- A list that cannot be parsed is 'malformed', one shorter than its count 'truncated': never 'empty'.
-- JSONExtract of the whole list at once is fast but may skip elements that are no objects; where its length
-- differs from the list's, each element is read alone, so that ranks stay true. An id that is a content hash
-- is the candidate's hash too.
create materialized view if not exists rag_stages_mv to rag_stages as
with
    SpanAttributes as attributes,
    attributes['rag.stage'] as stage_kind,
    if(
        stage_kind = 'retrieve' and attributes['gen_ai.retrieval.documents'] != '',
        attributes['gen_ai.retrieval.documents'],
        if(
            attributes['rag.candidates'] != '',
            attributes['rag.candidates'],
            attributes['gen_ai.retrieval.documents']
        )
    ) as list_text,
    toUInt32OrNull(attributes['rag.candidates.count']) as stated_count,
    isValidJSON(list_text) and JSONType(list_text) = 'Array' as list_is_array,
    if(list_is_array, JSONLength(list_text), 0) as list_length,
    if(
        list_is_array,
        JSONExtract(
            list_text,
            'Array(Tuple(id Nullable(String), score Nullable(Float64), sha Nullable(String), doc_id Nullable(String), doc_version Nullable(String), tokens Nullable(UInt32), chars Nullable(UInt32), kept_chars Nullable(UInt32), superseded Nullable(Bool), leg Nullable(String)))'
        ),
        []
    ) as fast_elements,
    if(
        length(fast_elements) = list_length,
        fast_elements,
        arrayMap(
            element -> JSONExtract(
                element,
                'Tuple(id Nullable(String), score Nullable(Float64), sha Nullable(String), doc_id Nullable(String), doc_version Nullable(String), tokens Nullable(UInt32), chars Nullable(UInt32), kept_chars Nullable(UInt32), superseded Nullable(Bool), leg Nullable(String))'
            ),
            JSONExtractArrayRaw(list_text)
        )
    ) as elements,
    attributes['rag.dropped'] as dropped_text,
    isValidJSON(dropped_text) and JSONType(dropped_text) = 'Array' as dropped_is_array,
    if(
        dropped_is_array,
        arrayMap(
            element -> JSONExtract(
                element,
                'Tuple(id Nullable(String), reason Nullable(String), inferred Nullable(Bool))'
            ),
            JSONExtractArrayRaw(dropped_text)
        ),
        []
    ) as dropped_elements,
    rag_json_reasons(attributes['gen_ai.response.finish_reasons']) as reasons
select
    TraceId as trace_id,
    attributes['rag.request.id'] as request_id,
    SpanId as span_id,
    ParentSpanId as parent_span_id,
    rag_storable_start(Timestamp) as started_at,
    started_at + toIntervalNanosecond(least(Duration, 86400000000000)) as ended_at,
    Duration / 1e6 as duration_ms,
    ServiceName as service_name,
    stage_kind as stage,
    attributes['rag.stage.name'] as stage_name,
    if(
        attributes['rag.outcome'] = '',
        if(StatusCode = 'Error', 'error', ''),
        attributes['rag.outcome']
    ) as outcome,
    arrayMap(e -> nullIf(e.id, ''), elements) as chunk_ids,
    arrayMap(e -> e.score, elements) as scores,
    arrayMap(
        e -> if(
            match(ifNull(e.sha, ''), '^(sha256:)?[0-9a-fA-F]{16,64}$'),
            concat('sha256:', lower(substring(replaceOne(e.sha, 'sha256:', ''), 1, 16))),
            if(
                ifNull(e.sha, '') = '' and match(ifNull(e.id, ''), '^sha256:[0-9a-f]{16}$'),
                ifNull(e.id, ''),
                ifNull(e.sha, '')
            )
        ),
        elements
    ) as candidate_shas,
    arrayMap(e -> ifNull(e.doc_id, ''), elements) as candidate_doc_ids,
    arrayMap(e -> ifNull(e.doc_version, ''), elements) as candidate_doc_versions,
    arrayMap(e -> e.tokens, elements) as candidate_tokens,
    arrayMap(e -> e.chars, elements) as candidate_chars,
    arrayMap(e -> e.kept_chars, elements) as candidate_kept_chars,
    arrayMap(e -> e.superseded, elements) as candidate_superseded,
    arrayMap(e -> ifNull(e.leg, ''), elements) as candidate_legs,
    if(stated_count is null and list_is_array, toUInt32(list_length), stated_count) as candidate_count,
    toUInt32OrNull(attributes['rag.candidates.in_count']) as in_count,
    arrayMap(e -> nullIf(e.id, ''), dropped_elements) as dropped_ids,
    arrayMap(e -> ifNull(e.reason, ''), dropped_elements) as drop_reasons,
    arrayMap(e -> toUInt8(ifNull(e.inferred, false)), dropped_elements) as drop_inferred,
    attributes['gen_ai.data_source.id'] as index_name,
    attributes['rag.index.version'] as index_version,
    attributes['rag.filter'] as filter,
    toUInt32OrNull(attributes['rag.filter.excluded_count']) as filter_excluded_count,
    toValidUTF8(attributes['gen_ai.retrieval.query.text']) as query,
    attributes['gen_ai.request.model'] as model,
    attributes['gen_ai.provider.name'] as provider,
    toUInt32OrNull(attributes['gen_ai.retrieval.top_k']) as top_k,
    toUInt32OrNull(attributes['rag.limit']) as limit_count,
    attributes['rag.score.kind'] as score_kind,
    if(
        attributes['rag.score.higher_is_better'] in ('true', 'false'),
        attributes['rag.score.higher_is_better'] = 'true',
        null
    )::Nullable(Bool) as higher_is_better,
    attributes['rag.fuse.method'] as fuse_method,
    toUInt32OrNull(attributes['rag.rerank.window_chars']) as rerank_window_chars,
    attributes['rag.rerank.effect'] as rerank_effect,
    toUInt64OrNull(attributes['gen_ai.usage.input_tokens']) as input_tokens,
    toUInt64OrNull(attributes['gen_ai.usage.output_tokens']) as output_tokens,
    reasons as finish_reasons,
    toFloat64OrNull(attributes['gen_ai.request.temperature']) as temperature,
    toFloat64OrNull(attributes['rag.time_to_first_token_ms']) as time_to_first_token_ms,
    JSONExtract(attributes['rag.citations'], 'Array(String)') as citations,
    attributes['rag.content_mode'] as content_mode,
    'ragotel' as convention,
    multiIf(
        list_text = '' and stated_count = 0, 'empty',
        list_text = '' and content_mode = 'off' and stated_count > 0, 'off',
        list_text = '', 'not_recorded',
        not list_is_array, 'malformed',
        list_length < ifNull(stated_count, 0), 'truncated',
        list_length = 0, 'empty',
        'whole'
    ) as evidence,
    multiIf(
        dropped_text = '', 'not_recorded',
        not dropped_is_array, 'malformed',
        length(dropped_elements) = 0, 'empty',
        'whole'
    ) as dropped_evidence,
    toUInt32OrZero(attributes['rag.capture.errors']) as capture_errors
from otel_traces
where SpanAttributes['rag.stage'] not in ('', 'request')
