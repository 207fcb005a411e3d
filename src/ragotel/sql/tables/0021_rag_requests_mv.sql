-- answers: what was asked, by whom, and what was answered?
-- grain:   fills rag_requests at insert, one row per request span
-- reads:   otel_traces
create materialized view if not exists rag_requests_mv to rag_requests as
select
    TraceId as trace_id,
    SpanAttributes['rag.request.id'] as request_id,
    SpanId as span_id,
    SpanAttributes['gen_ai.conversation.id'] as session_id,
    SpanAttributes['user.id'] as user_id,
    SpanAttributes['rag.tenant'] as tenant,
    SpanAttributes['rag.principal'] as principal,
    SpanAttributes['rag.tags'] as tags,
    rag_storable_start(Timestamp) as started_at,
    Duration / 1e6 as duration_ms,
    ServiceName as service_name,
    toValidUTF8(SpanAttributes['rag.query']) as query,
    rag_normalise(query) as query_norm,
    if(trimBoth(query_norm) = '', 0, sipHash64(trimBoth(query_norm))) as query_hash,
    toValidUTF8(SpanAttributes['rag.answer']) as answer,
    rag_normalise(answer) as answer_norm,
    if(
        SpanAttributes['rag.outcome'] = '',
        if(StatusCode = 'Error', 'error', ''),
        SpanAttributes['rag.outcome']
    ) as outcome,
    SpanAttributes['rag.content_mode'] as content_mode,
    SpanAttributes['rag.run.id'] as run_id,
    SpanAttributes['rag.arm'] as arm,
    SpanAttributes['rag.label.id'] as label_id,
    'ragotel' as convention,
    toUInt32OrZero(SpanAttributes['rag.capture.errors']) as capture_errors
from otel_traces
where SpanAttributes['rag.stage'] = 'request'
