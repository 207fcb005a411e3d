-- answers: which index versions have a manifest that was loaded whole?
-- grain:   one row per index version and load; written last, so that a half load proves nothing
-- reads:   nothing
create table if not exists rag_index_versions
(
    index_name     LowCardinality(String),
    version        String,
    parent_version String,
    load_id        String,
    chunk_rows     UInt64,
    loaded_at      DateTime64(6, 'UTC') default now64(6)
)
engine = ReplacingMergeTree(loaded_at)
order by (index_name, version)
