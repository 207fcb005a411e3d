-- answers: was the answer right with the gold passage alone, or at another position?
-- grain:   one row per request × label × mode × position; the newest counts
-- reads:   nothing
create table if not exists rag_ablations
(
    trace_id   String,
    request_id String,
    label_id   String,
    mode       LowCardinality(String),
    position   UInt32,
    of         UInt32,
    correct    Bool,
    answer     String,
    ablated_at DateTime64(6, 'UTC') default now64(6)
)
engine = ReplacingMergeTree(ablated_at)
order by (trace_id, request_id, label_id, mode, position, of)
