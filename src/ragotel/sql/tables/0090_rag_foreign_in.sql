-- answers: which spans of other instrumentations are being read?
-- grain:   keeps nothing; a span written here becomes rows of rag_requests, rag_stages, rag_prompts, rag_chunks
-- reads:   nothing
create table if not exists rag_foreign_in
(
    trace_id         String,
    request_id       String,
    is_request       UInt8,
    span_id          String,
    parent_span_id   String,
    started_at       DateTime64(9, 'UTC'),
    duration         UInt64,
    service_name     LowCardinality(String),
    span_name        LowCardinality(String),
    scope_name       String,
    attributes       Map(LowCardinality(String), String),
    status_code      LowCardinality(String),
    event_names      Array(LowCardinality(String)),
    event_attributes Array(Map(LowCardinality(String), String)),
    convention       LowCardinality(String),
    stage            LowCardinality(String)
)
engine = Null
