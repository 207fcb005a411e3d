-- answers: which chunks came into or left an index at which version?
-- grain:   one row per chunk × version in which it was added, changed or removed (not once per version)
-- reads:   nothing
create table if not exists rag_index_chunks
(
    index_name  LowCardinality(String),
    chunk_id    String,
    version     String,
    load_id     String,
    doc_id      String,
    doc_version String,
    chunk_sha   String,
    chars       Nullable(UInt32),
    superseded  UInt8,
    deleted     UInt8,
    position    UInt32,
    loaded_at   DateTime64(6, 'UTC') default now64(6)
)
engine = ReplacingMergeTree(loaded_at)
order by (index_name, chunk_id, version, load_id)
settings index_granularity = 1024
