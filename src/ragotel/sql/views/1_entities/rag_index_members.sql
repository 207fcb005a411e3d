-- answers: which chunks does an index version hold?
-- grain:   one row per chunk × index version
-- reads:   rag_index_chunks, rag_index_versions, rag_index_chains
-- The newest change along the version's chain of parents counts. Ask for one index and version: a whole history
-- of versions times chunks is long.
create or replace view rag_index_members as
select
    chains.index_name as index_name,
    chains.version as version,
    chunks.chunk_id as chunk_id,
    argMin(chunks.doc_id, link.2) as doc_id,
    argMin(chunks.doc_version, link.2) as doc_version,
    argMin(chunks.chunk_sha, link.2) as chunk_sha,
    argMin(chunks.chars, link.2) as chars,
    argMin(chunks.superseded, link.2) as superseded
from (
    select
        index_name,
        version,
        arrayJoin(arrayZip(chain, arrayEnumerate(chain))) as link
    from rag_index_chains
) as chains
inner join (
    select index_name, version, load_id
    from rag_index_versions final
) as versions on versions.index_name = chains.index_name and versions.version = chains.link.1
inner join (
    select *
    from rag_index_chunks final
) as chunks
    on chunks.index_name = chains.index_name
    and chunks.version = chains.link.1
    and chunks.load_id = versions.load_id
group by index_name, version, chunk_id
having argMin(chunks.deleted, link.2) = 0
settings join_use_nulls = 0
