-- answers: what did users complain about?
-- grain:   one row per complaint
-- reads:   nothing
create table if not exists rag_complaints
(
    complaint_id  String,
    trace_id      String,
    request_id    String,
    label_id      String,
    text          String,
    grade         LowCardinality(String),
    reported_by   String,
    complained_at DateTime64(6, 'UTC') default now64(6)
)
engine = ReplacingMergeTree(complained_at)
order by complaint_id
