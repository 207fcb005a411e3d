-- answers: which passages hold the answer to this question?
-- grain:   one row per gold passage; a label that has none has one row with passage_count 0
-- reads:   nothing
-- All passages of a label are needed; within one, any chunk id, document id or wording will do.
create table if not exists rag_labels
(
    label_id        String,
    passage         UInt16,
    passage_count   UInt16,
    label_set       LowCardinality(String),
    split           LowCardinality(String),
    population      LowCardinality(String),
    principal       String,
    question        String,
    question_hash   UInt64,
    expected_answer String,
    answerable      Bool,
    chunk_ids       Array(String),
    doc_ids         Array(String),
    spans           Array(String),
    spans_norm      Array(String),
    text            String,
    text_norm       String,
    lure_chunk_ids  Array(String),
    lure_spans      Array(String),
    extra           String,
    loaded_at       DateTime64(6, 'UTC') default now64(6)
)
engine = ReplacingMergeTree(loaded_at)
order by (label_id, passage)
