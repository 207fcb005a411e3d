-- answers: which label did a person attach to which request?
-- grain:   one row per request × label
-- reads:   nothing
create table if not exists rag_label_attachments
(
    trace_id    String,
    request_id  String,
    label_id    String,
    attached_by String,
    attached_at DateTime64(6, 'UTC') default now64(6)
)
engine = ReplacingMergeTree(attached_at)
order by (trace_id, request_id, label_id)
