-- answers: what was asked, by whom, and what was answered?
-- grain:   one row per request (a batch delivered twice collapses at merge; the views read it once)
-- reads:   nothing
create table if not exists rag_requests
(
    trace_id       String,
    request_id     String,
    span_id        String,
    session_id     String,
    user_id        String,
    tenant         LowCardinality(String),
    principal      String,
    tags           String,
    started_at     DateTime64(9, 'UTC') codec(Delta, ZSTD(1)),
    duration_ms    Float64,
    service_name   LowCardinality(String),
    query          String codec(ZSTD(3)),
    query_norm     String codec(ZSTD(3)),
    query_hash     UInt64,
    answer         String codec(ZSTD(3)),
    answer_norm    String codec(ZSTD(3)),
    outcome        LowCardinality(String),
    content_mode   LowCardinality(String),
    run_id         String,
    arm            LowCardinality(String),
    label_id       String,
    convention     LowCardinality(String),
    capture_errors UInt32,
    ingested_at    DateTime64(3, 'UTC') default now64(3),
    index idx_trace trace_id type bloom_filter(0.001) granularity 1,
    index idx_request request_id type bloom_filter(0.001) granularity 1,
    index idx_user user_id type bloom_filter(0.01) granularity 1,
    index idx_query_words query_norm type tokenbf_v1(16384, 3, 0) granularity 1,
    index idx_answer_words answer_norm type tokenbf_v1(65536, 3, 0) granularity 1
)
engine = ReplacingMergeTree(ingested_at)
partition by toYYYYMM(started_at)
order by (started_at, trace_id, request_id)
settings index_granularity = 1024
