-- answers: which gold passages does each label ask for, as it was loaded last?
-- grain:   one row per label × gold passage (one row with passage 0 where a label has none)
-- reads:   rag_labels, rag_index_chunks
-- known_chunk_ids: the labelled ids, the hashes of their texts (a hit without an id goes by its hash) and, for
-- labelled documents, every chunk that a manifest counts to them.
-- known_doc_ids: the labelled documents and those of the labelled chunks, for recall by document.
-- claims: the wordings, any of which will do; the passage's own text where it has no wording.
create or replace view rag_label_passages as
with
    labels as (
        select *
        from (
            select *, max(loaded_at) over (partition by label_id) as newest_at
            from rag_labels final
        )
        where loaded_at = newest_at
    ),
    by_chunk as (
        select
            label_id,
            passage,
            groupUniqArrayIf(rows.chunk_sha, rows.chunk_sha != '') as hashes,
            groupUniqArrayIf(rows.doc_id, rows.doc_id != '') as gold_doc_ids
        from (select label_id, passage, arrayJoin(chunk_ids) as chunk_id from rag_labels final) as wanted
        inner join (
            select distinct chunk_id, chunk_sha, doc_id
            from rag_index_chunks
            where chunk_id in (select arrayJoin(chunk_ids) from rag_labels)
        ) as rows on rows.chunk_id = wanted.chunk_id
        group by label_id, passage
    ),
    by_document as (
        select label_id, passage, groupUniqArray(rows.chunk_id) as chunk_ids_of_docs
        from (select label_id, passage, arrayJoin(doc_ids) as doc_id from rag_labels final) as wanted
        inner join (
            select distinct doc_id, chunk_id
            from rag_index_chunks
            where doc_id in (select arrayJoin(doc_ids) from rag_labels) and deleted = 0
        ) as rows on rows.doc_id = wanted.doc_id
        group by label_id, passage
    )
select
    labels.label_id as label_id,
    labels.passage as passage,
    labels.passage_count as passage_count,
    labels.label_set as label_set,
    labels.split as split,
    labels.population as population,
    labels.principal as principal,
    labels.question as question,
    labels.question_hash as question_hash,
    labels.expected_answer as expected_answer,
    labels.answerable as answerable,
    labels.chunk_ids as chunk_ids,
    labels.doc_ids as doc_ids,
    labels.spans as spans,
    labels.text as text,
    arrayDistinct(
        arrayConcat(labels.chunk_ids, by_document.chunk_ids_of_docs, by_chunk.hashes)
    ) as known_chunk_ids,
    arrayDistinct(arrayConcat(labels.doc_ids, by_chunk.gold_doc_ids)) as known_doc_ids,
    if(
        notEmpty(labels.spans_norm),
        labels.spans_norm,
        if(labels.text_norm = '', [], [labels.text_norm])
    ) as claims,
    notEmpty(labels.chunk_ids) or notEmpty(labels.doc_ids) as has_ids,
    labels.lure_chunk_ids as lure_chunk_ids,
    labels.lure_spans as lure_spans
from labels
left join by_document on by_document.label_id = labels.label_id and by_document.passage = labels.passage
left join by_chunk on by_chunk.label_id = labels.label_id and by_chunk.passage = labels.passage
settings join_use_nulls = 0
