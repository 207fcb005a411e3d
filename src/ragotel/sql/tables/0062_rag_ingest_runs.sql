-- answers: what did each ingest run list, parse, write and delete?
-- grain:   one row per ingest run
-- reads:   nothing
create table if not exists rag_ingest_runs
(
    trace_id           String,
    span_id            String,
    started_at         DateTime64(9, 'UTC'),
    duration_ms        Float64,
    service_name       LowCardinality(String),
    index_name         LowCardinality(String),
    index_version      String,
    parent_version     String,
    chunker            String,
    docs_listed        Nullable(UInt64),
    docs_parsed        Nullable(UInt64),
    docs_empty         Nullable(UInt64),
    mean_chars_per_doc Nullable(Float64),
    chunks_written     Nullable(UInt64),
    chunks_deleted     Nullable(UInt64),
    outcome            LowCardinality(String),
    ingested_at        DateTime64(3, 'UTC') default now64(3)
)
engine = ReplacingMergeTree(ingested_at)
order by (index_name, started_at, span_id)
