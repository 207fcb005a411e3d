-- answers: which passages hold the answer to this question?
-- grain:   fills rag_labels at insert, one row per gold passage
-- reads:   rag_labels_in
create materialized view if not exists rag_labels_in_mv to rag_labels as
select
    label_id,
    passage,
    passage_count,
    label_set,
    split,
    population,
    principal,
    question,
    sipHash64(trimBoth(rag_normalise(question))) as question_hash,
    expected_answer,
    answerable,
    chunk_ids,
    doc_ids,
    spans,
    arrayFilter(
        span -> span != '',
        arrayMap(span -> trimBoth(rag_normalise(span)), spans)
    ) as spans_norm,
    text,
    trimBoth(rag_normalise(text)) as text_norm,
    lure_chunk_ids,
    lure_spans,
    extra,
    loaded_at
from rag_labels_in
