-- answers: what exactly did the model read?
-- grain:   one row per assembled prompt
-- reads:   nothing
-- Small granules: one look-up must not unpack hundreds of prompts of 16 KB.
create table if not exists rag_prompts
(
    trace_id         String,
    request_id       String,
    span_id          String,
    started_at       DateTime64(9, 'UTC') codec(Delta, ZSTD(1)),
    service_name     LowCardinality(String),
    prompt           String codec(ZSTD(3)),
    prompt_norm      String codec(ZSTD(3)),
    prompt_sha256    String,
    chars            Nullable(UInt64),
    tokens           Nullable(UInt64),
    tokens_source    LowCardinality(String),
    content_mode     LowCardinality(String),
    is_whole         UInt8,
    template_name    LowCardinality(String),
    template_version LowCardinality(String),
    budget_tokens    Nullable(UInt64),
    sent_ids         Array(Nullable(String)) codec(ZSTD(3)),
    sent_tokens      Array(Nullable(UInt32)) codec(ZSTD(3)),
    convention       LowCardinality(String),
    evidence         LowCardinality(String),
    ingested_at      DateTime64(3, 'UTC') default now64(3)
)
engine = ReplacingMergeTree(ingested_at)
partition by toYYYYMM(started_at)
order by (trace_id, request_id, span_id)
settings index_granularity = 8, min_compress_block_size = 8192, max_compress_block_size = 262144
