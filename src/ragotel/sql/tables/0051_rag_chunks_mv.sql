-- answers: what does this passage say?
-- grain:   fills rag_chunks at insert, one row per text that a span brings
-- reads:   otel_traces
create materialized view if not exists rag_chunks_mv to rag_chunks as
with arrayJoin(JSONExtractKeysAndValues(SpanAttributes['rag.chunks'], 'String')) as chunk
select
    if(
        match(chunk.1, '^(sha256:)?[0-9a-fA-F]{16,64}$'),
        concat('sha256:', lower(substring(replaceOne(chunk.1, 'sha256:', ''), 1, 16))),
        chunk.1
    ) as chunk_sha,
    chunk.2 as text,
    rag_normalise(text) as text_norm
from otel_traces
where SpanAttributes['rag.chunks'] != '' and chunk.1 != ''
