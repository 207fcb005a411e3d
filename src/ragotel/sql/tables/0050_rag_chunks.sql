-- answers: what does this passage say?
-- grain:   one row per text, keyed by 'sha256:' and 16 hex digits of its normalised text's SHA-256
-- reads:   nothing
create table if not exists rag_chunks
(
    chunk_sha     String,
    text          String codec(ZSTD(3)),
    text_norm     String codec(ZSTD(3)),
    first_seen_at DateTime64(3, 'UTC') default now64(3)
)
engine = ReplacingMergeTree
order by chunk_sha
settings index_granularity = 64
