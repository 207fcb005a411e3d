-- answers: which spans with gen_ai keys are being read?
-- grain:   keeps nothing; a span written here is read by its convention
-- reads:   nothing
-- A table of its own: what other conventions write is not even planned for these spans.
create table if not exists rag_genai_in
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
