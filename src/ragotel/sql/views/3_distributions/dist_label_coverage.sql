-- answers: how many documents of an index has any label at all, and what does that leave unseen?
-- grain:   one row per index: the newest version whose manifest is whole
-- reads:   rag_index_chains, rag_index_versions, rag_index_chunks, rag_index_members, rag_label_passages, rag_ingest_runs
-- A gap is seen only where a label asks for it. labelled_documents are those that labels name, themselves or by a
-- chunk; gap_documents those of them of which a gold passage is not in this version. estimated_unseen_gaps is plain
-- arithmetic, gap_share × unlabelled_documents: what would be missing if the unlabelled were as often hit as the
-- labelled. It is no verdict: labels are no random sample.
create or replace view dist_label_coverage as
with
    newest as (
        select
            toString(chains.index_name) as index_name,
            argMax(chains.version, (runs.ran_at, loads.loaded_at)) as version
        from rag_index_chains as chains
        inner join (
            select index_name, version, loaded_at
            from rag_index_versions final
        ) as loads on loads.index_name = chains.index_name and loads.version = chains.version
        left join (
            select index_name, toString(index_version) as version, max(started_at) as ran_at
            from rag_ingest_runs
            group by index_name, version
        ) as runs on runs.index_name = chains.index_name and runs.version = chains.version
        where chains.is_whole
        group by index_name
    ),
    members as (
        select toString(index_name) as index_name, version, chunk_id, doc_id
        from rag_index_members
        where (toString(index_name), version) in (select index_name, version from newest)
    ),
    held as (
        select index_name, any(version) as version, uniqExactIf(doc_id, doc_id != '') as documents, count() as chunks, countIf(doc_id = '') as chunks_without_document
        from members
        group by index_name
    ),
    known_docs as (
        select distinct toString(index_name) as index_name, doc_id
        from rag_index_chunks
        where doc_id != ''
    ),
    passages as (
        select label_id, passage, known_chunk_ids, known_doc_ids
        from rag_label_passages
        where passage > 0 and notEmpty(known_doc_ids)
    ),
    found as (
        select
            members.index_name as index_name,
            wanted.label_id as label_id,
            wanted.passage as passage
        from members
        inner join (
            select label_id, passage, arrayJoin(known_chunk_ids) as chunk_id
            from passages
        ) as wanted on wanted.chunk_id = members.chunk_id
        group by index_name, label_id, passage
    ),
    labelled as (
        select
            indexes.index_name as index_name,
            wanted.doc_id as doc_id,
            max((indexes.index_name, wanted.label_id, wanted.passage) not in (select index_name, label_id, passage from found)) as has_gap
        from (
            select label_id, passage, arrayJoin(known_doc_ids) as doc_id
            from passages
        ) as wanted
        cross join (
            select index_name
            from newest
        ) as indexes
        where
            (indexes.index_name, wanted.doc_id) in (select index_name, doc_id from known_docs)
            or wanted.doc_id not in (select doc_id from known_docs)
        group by index_name, doc_id
    ),
    counted as (
        select
            labelled.index_name as index_name,
            count() as labelled_documents,
            countIf(labelled.has_gap) as gap_documents,
            countIf((labelled.index_name, labelled.doc_id) in (select index_name, doc_id from members)) as labelled_documents_held
        from labelled
        group by index_name
    )
select
    held.index_name as index_name,
    held.version as index_version,
    held.documents as documents,
    held.chunks as chunks,
    held.chunks_without_document as chunks_without_document,
    counted.labelled_documents_held as labelled_documents_held,
    held.documents - counted.labelled_documents_held as unlabelled_documents,
    if(held.documents = 0, null, counted.labelled_documents_held / held.documents)::Nullable(Float64) as labelled_share,
    counted.labelled_documents as labelled_documents,
    counted.gap_documents as gap_documents,
    if(counted.labelled_documents = 0, null, counted.gap_documents / counted.labelled_documents)::Nullable(Float64) as gap_share,
    gap_share * unlabelled_documents as estimated_unseen_gaps
from held
left join counted on counted.index_name = held.index_name
settings join_use_nulls = 0
