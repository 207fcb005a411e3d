-- answers: which chunks did an index version hold?
-- grain:   one row per index version × chunk that is in it (changes since its parents are applied)
-- reads:   rag_index_chunks, rag_index_lineage
create or replace view rag_index_members as
select
    lineage.index_name as index_name,
    lineage.version as version,
    chunks.chunk_id as chunk_id,
    argMin(chunks.doc_id, lineage.depth) as doc_id,
    argMin(chunks.doc_version, lineage.depth) as doc_version,
    argMin(chunks.chunk_sha, lineage.depth) as chunk_sha,
    argMin(chunks.chars, lineage.depth) as chars,
    argMin(chunks.superseded, lineage.depth) as superseded
from rag_index_chunks as chunks final
inner join rag_index_lineage as lineage
    on lineage.index_name = chunks.index_name
    and lineage.ancestor = chunks.version
    and lineage.load_id = chunks.load_id
group by index_name, version, chunk_id
having argMin(chunks.deleted, lineage.depth) = 0
