-- answers: which misses does a person hold to be faults of the label, not of the search?
-- grain:   one row per request × label (request and trace '' speak of the label on every request); the newest counts
-- reads:   nothing
-- defect: right_document (the scorer wanted another chunk), sibling_chunk (the next chunk answers as well),
-- several_answer, retired_target, other; 'none' says that it was looked at and is a fault of the search.
create table if not exists rag_label_decisions
(
    trace_id   String,
    request_id String,
    label_id   String,
    defect     LowCardinality(String),
    note       String,
    decided_by String,
    decided_at DateTime64(6, 'UTC') default now64(6)
)
engine = ReplacingMergeTree(decided_at)
order by (label_id, trace_id, request_id)
