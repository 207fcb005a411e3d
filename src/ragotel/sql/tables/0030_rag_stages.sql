-- answers: what did each stage return, in which order, from which index?
-- grain:   one row per stage run
-- reads:   nothing
-- The arrays that begin with candidate_ or kept_ run parallel to chunk_ids, best first.
create table if not exists rag_stages
(
    trace_id              String,
    request_id            String,
    span_id               String,
    parent_span_id        String,
    started_at            DateTime64(9, 'UTC') codec(Delta, ZSTD(1)),
    ended_at              DateTime64(9, 'UTC') codec(Delta, ZSTD(1)),
    duration_ms           Float64,
    service_name          LowCardinality(String),
    stage                 LowCardinality(String),
    stage_name            LowCardinality(String),
    outcome               LowCardinality(String),
    chunk_ids             Array(Nullable(String)) codec(ZSTD(3)),
    scores                Array(Nullable(Float64)) codec(ZSTD(3)),
    candidate_shas        Array(String) codec(ZSTD(3)),
    candidate_doc_ids     Array(String) codec(ZSTD(3)),
    candidate_doc_versions Array(String) codec(ZSTD(3)),
    candidate_tokens      Array(Nullable(UInt32)) codec(ZSTD(3)),
    candidate_chars       Array(Nullable(UInt32)) codec(ZSTD(3)),
    candidate_kept_chars  Array(Nullable(UInt32)) codec(ZSTD(3)),
    candidate_superseded  Array(Nullable(Bool)) codec(ZSTD(3)),
    candidate_legs        Array(String) codec(ZSTD(3)),
    candidate_count       Nullable(UInt32),
    in_count              Nullable(UInt32),
    dropped_ids           Array(Nullable(String)) codec(ZSTD(3)),
    drop_reasons          Array(String) codec(ZSTD(3)),
    drop_inferred         Array(UInt8) codec(ZSTD(3)),
    index_name            LowCardinality(String),
    index_version         LowCardinality(String),
    filter                String,
    filter_excluded_count Nullable(UInt32),
    query                 String codec(ZSTD(3)),
    model                 LowCardinality(String),
    provider              LowCardinality(String),
    top_k                 Nullable(UInt32),
    limit_count           Nullable(UInt32),
    score_kind            LowCardinality(String),
    higher_is_better      Nullable(Bool),
    fuse_method           LowCardinality(String),
    rerank_window_chars   Nullable(UInt32),
    rerank_effect         LowCardinality(String),
    input_tokens          Nullable(UInt64),
    output_tokens         Nullable(UInt64),
    finish_reasons        Array(String),
    temperature           Nullable(Float64),
    time_to_first_token_ms Nullable(Float64),
    citations             Array(String),
    content_mode          LowCardinality(String),
    convention            LowCardinality(String),
    evidence              LowCardinality(String),
    dropped_evidence      LowCardinality(String),
    capture_errors        UInt32,
    ingested_at           DateTime64(3, 'UTC') default now64(3)
)
engine = ReplacingMergeTree(ingested_at)
partition by toYYYYMM(started_at)
order by (trace_id, request_id, span_id)
settings index_granularity = 512
