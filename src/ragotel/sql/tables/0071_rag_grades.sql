-- answers: was the answer right?
-- grain:   one row per request × label × source × grader; the newest counts
-- reads:   nothing
create table if not exists rag_grades
(
    trace_id   String,
    request_id String,
    label_id   String,
    grade      LowCardinality(String),
    source     LowCardinality(String),
    graded_by  String,
    note       String,
    graded_at  DateTime64(6, 'UTC') default now64(6)
)
engine = ReplacingMergeTree(graded_at)
order by (trace_id, request_id, label_id, source, graded_by)
