-- answers: which labels are being loaded?
-- grain:   keeps nothing; a row written here becomes a row of rag_labels
-- reads:   nothing
-- Labels are written here, so that their texts are normalised by the same function as the requests'.
create table if not exists rag_labels_in
(
    label_id        String,
    passage         UInt16,
    passage_count   UInt16,
    label_set       String,
    split           String,
    population      String,
    principal       String,
    question        String,
    expected_answer String,
    answerable      Bool,
    chunk_ids       Array(String),
    doc_ids         Array(String),
    spans           Array(String),
    text            String,
    lure_chunk_ids  Array(String),
    lure_spans      Array(String),
    extra           String,
    loaded_at       DateTime64(6, 'UTC')
)
engine = Null
