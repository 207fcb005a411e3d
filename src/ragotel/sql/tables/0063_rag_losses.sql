-- answers: how much of the record was lost on the way, and why?
-- grain:   one row per loss report of a service
-- reads:   nothing
create table if not exists rag_losses
(
    trace_id     String,
    span_id      String,
    lost_at      DateTime64(9, 'UTC'),
    service_name LowCardinality(String),
    cause        LowCardinality(String),
    spans        UInt64,
    requests     UInt64,
    ingested_at  DateTime64(3, 'UTC') default now64(3)
)
engine = ReplacingMergeTree(ingested_at)
order by (lost_at, span_id, cause)
