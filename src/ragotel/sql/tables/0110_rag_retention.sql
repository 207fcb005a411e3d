-- answers: how long is each kind of record kept?
-- grain:   one row per kind; the newest counts, a null keeps it for good
-- reads:   nothing
create table if not exists rag_retention
(
    kind       LowCardinality(String),
    days       Nullable(UInt32),
    written_at DateTime64(6, 'UTC') default now64(6)
)
engine = ReplacingMergeTree(written_at)
order by kind
