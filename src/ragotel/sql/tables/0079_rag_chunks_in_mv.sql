-- answers: what does this passage say?
-- grain:   fills rag_chunks at insert, one row per text of a manifest
-- reads:   rag_chunks_in
create materialized view if not exists rag_chunks_in_mv to rag_chunks as
select
    chunk_sha,
    text,
    rag_normalise(text) as text_norm
from rag_chunks_in
