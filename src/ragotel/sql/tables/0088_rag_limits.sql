-- answers: which limits were set, over those that are built in?
-- grain:   one row per limit × service ('' is all services); the newest counts
-- reads:   nothing
-- limit_name: a bucket, or failed_stage, reranker_fallback, docs_listed_drop, mean_chars_drop, docs_empty,
-- chunks_deleted, spans_lost. A null leaves that value to the row for all services, and then to what is built in.
create table if not exists rag_limits
(
    limit_name    LowCardinality(String),
    service_name  String,
    max_share     Nullable(Float64),
    max_deviation Nullable(Float64),
    min_sample    Nullable(UInt64),
    written_at    DateTime64(6, 'UTC') default now64(6)
)
engine = ReplacingMergeTree(written_at)
order by (limit_name, service_name)
