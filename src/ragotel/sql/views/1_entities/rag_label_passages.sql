-- answers: which gold passages does each label ask for, as it was loaded last?
-- grain:   one row per label × gold passage (one row with passage 0 where a label has none)
-- reads:   rag_labels, rag_index_chunks
-- known_chunk_ids: the labelled ids, the hashes of their texts (a hit without an id goes by its hash) and, for
-- labelled documents, every chunk that a manifest counts to them.
-- known_doc_ids: the labelled documents and those of the labelled chunks, for recall by document.
-- claims: the wordings, any of which will do; the passage's own text where it has no wording.
create or replace view rag_label_passages as
with
    newest as (
        select label_id as newest_id, max(loaded_at) as newest_at
        from rag_labels
        group by label_id
    ),
    labels as (
        select labels.*
        from rag_labels as labels final
        inner join newest on newest.newest_id = labels.label_id and newest.newest_at = labels.loaded_at
    ),
    wanted_docs as (
        select distinct arrayJoin(doc_ids) as doc_id
        from rag_labels
    ),
    doc_chunks as (
        select doc_id, groupUniqArray(chunk_id) as chunk_ids
        from rag_index_chunks
        where doc_id in (select doc_id from wanted_docs) and deleted = 0
        group by doc_id
    ),
    gold_hashes as (
        select label_id, passage, groupUniqArray(rows.chunk_sha) as hashes
        from (select label_id, passage, arrayJoin(chunk_ids) as chunk_id from labels) as wanted
        inner join (
            select distinct chunk_id, chunk_sha
            from rag_index_chunks
            where chunk_id in (select arrayJoin(chunk_ids) from rag_labels) and chunk_sha != ''
        ) as rows on rows.chunk_id = wanted.chunk_id
        group by label_id, passage
    ),
    gold_docs as (
        select label_id, passage, groupUniqArray(docs.doc_id) as doc_ids
        from (select label_id, passage, arrayJoin(chunk_ids) as chunk_id from labels) as wanted
        inner join (
            select distinct chunk_id, doc_id
            from rag_index_chunks
            where chunk_id in (select arrayJoin(chunk_ids) from rag_labels) and doc_id != ''
        ) as docs on docs.chunk_id = wanted.chunk_id
        group by label_id, passage
    ),
    expanded as (
        select label_id, passage, groupUniqArrayArray(doc_chunks.chunk_ids) as chunk_ids
        from (select label_id, passage, arrayJoin(doc_ids) as doc_id from labels) as wanted
        inner join doc_chunks on doc_chunks.doc_id = wanted.doc_id
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
        arrayConcat(labels.chunk_ids, expanded.chunk_ids, gold_hashes.hashes)
    ) as known_chunk_ids,
    arrayDistinct(arrayConcat(labels.doc_ids, gold_docs.doc_ids)) as known_doc_ids,
    if(
        notEmpty(labels.spans_norm),
        labels.spans_norm,
        if(labels.text_norm = '', [], [labels.text_norm])
    ) as claims,
    notEmpty(labels.chunk_ids) or notEmpty(labels.doc_ids) as has_ids,
    labels.lure_chunk_ids as lure_chunk_ids,
    labels.lure_spans as lure_spans
from labels
left join expanded on expanded.label_id = labels.label_id and expanded.passage = labels.passage
left join gold_hashes on gold_hashes.label_id = labels.label_id and gold_hashes.passage = labels.passage
left join gold_docs on gold_docs.label_id = labels.label_id and gold_docs.passage = labels.passage
settings join_use_nulls = 0
