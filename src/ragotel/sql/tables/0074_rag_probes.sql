-- answers: at which rank does a deep search of the same index find the gold passage?
-- grain:   one row per request × label × passage × leg; the newest counts
-- reads:   nothing
create table if not exists rag_probes
(
    trace_id      String,
    request_id    String,
    label_id      String,
    passage       UInt16,
    leg           LowCardinality(String),
    principal     String,
    k             UInt32,
    deep_rank     Nullable(UInt32),
    score         Nullable(Float64),
    index_version String,
    probed_at     DateTime64(6, 'UTC') default now64(6)
)
engine = ReplacingMergeTree(probed_at)
order by (trace_id, request_id, label_id, passage, leg, index_version)
