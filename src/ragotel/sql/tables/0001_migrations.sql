-- answers: which steps of the schema has this store taken?
-- grain:   one row per applied file
-- reads:   nothing
create table if not exists rag_migrations
(
    name       String,
    applied_at DateTime64(3, 'UTC') default now64(3)
)
engine = ReplacingMergeTree
order by name
