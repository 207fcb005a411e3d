-- answers: how much of the record was lost on the way, and why?
-- grain:   fills rag_losses at insert, one row per loss report
-- reads:   otel_traces
create materialized view if not exists rag_losses_mv to rag_losses as
select
    TraceId as trace_id,
    SpanId as span_id,
    Timestamp as lost_at,
    ServiceName as service_name,
    SpanAttributes['rag.loss.cause'] as cause,
    toUInt64OrZero(SpanAttributes['rag.loss.spans']) as spans,
    toUInt64OrZero(SpanAttributes['rag.loss.requests']) as requests
from otel_traces
where SpanAttributes['rag.loss.cause'] != ''
