-- answers: what does this passage say?
-- grain:   fills rag_chunks at insert, one row per text that a span of another instrumentation brings
-- reads:   rag_foreign_read
create materialized view if not exists rag_foreign_chunks_mv to rag_chunks as
select
    concat('sha256:', lower(substring(hex(SHA256(text_norm)), 1, 16))) as chunk_sha,
    passage as text,
    rag_normalise(passage) as text_norm
from rag_foreign_read
array join arrayDistinct(
    arrayConcat(arrayMap(document -> ifNull(document.text, ''), documents), taken_in)
) as passage
where stage in ('retrieve', 'rerank') and trimBoth(passage) != ''
