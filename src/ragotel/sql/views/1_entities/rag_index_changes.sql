-- answers: in which versions of which index did this chunk come, change or go?
-- grain:   one row per chunk × index
-- reads:   rag_index_chunks, rag_index_versions
-- Only rows of the load that completed the version: those of a load that broke off prove nothing.
create or replace view rag_index_changes as
select
    chunks.chunk_id as chunk_id,
    chunks.index_name as index_name,
    groupArray((chunks.version, chunks.deleted, chunks.chunk_sha)) as changes,
    groupUniqArrayIf(chunks.doc_id, chunks.doc_id != '') as doc_ids
from rag_index_chunks as chunks final
inner join (
    select index_name, version, load_id
    from rag_index_versions final
) as versions
    on versions.index_name = chunks.index_name
    and versions.version = chunks.version
    and versions.load_id = chunks.load_id
group by chunk_id, index_name
