-- answers: what did each ingest run list, parse, write and delete?
-- grain:   fills rag_ingest_runs at insert, one row per ingest span
-- reads:   otel_traces
create materialized view if not exists rag_ingest_runs_mv to rag_ingest_runs as
select
    TraceId as trace_id,
    SpanId as span_id,
    rag_storable_start(Timestamp) as started_at,
    Duration / 1e6 as duration_ms,
    ServiceName as service_name,
    SpanAttributes['gen_ai.data_source.id'] as index_name,
    SpanAttributes['rag.index.version'] as index_version,
    SpanAttributes['rag.index.parent_version'] as parent_version,
    SpanAttributes['rag.chunker'] as chunker,
    toUInt64OrNull(SpanAttributes['rag.ingest.docs_listed']) as docs_listed,
    toUInt64OrNull(SpanAttributes['rag.ingest.docs_parsed']) as docs_parsed,
    toUInt64OrNull(SpanAttributes['rag.ingest.docs_empty']) as docs_empty,
    toFloat64OrNull(SpanAttributes['rag.ingest.mean_chars_per_doc']) as mean_chars_per_doc,
    toUInt64OrNull(SpanAttributes['rag.ingest.chunks_written']) as chunks_written,
    toUInt64OrNull(SpanAttributes['rag.ingest.chunks_deleted']) as chunks_deleted,
    SpanAttributes['rag.outcome'] as outcome
from otel_traces
where SpanAttributes['rag.stage'] = 'ingest'
