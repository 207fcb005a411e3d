-- answers: which chunks came into or left an index at which version?
-- grain:   fills rag_index_chunks at insert from ingest spans that carry their chunks
-- reads:   otel_traces
create materialized view if not exists rag_index_chunks_mv to rag_index_chunks as
with
    SpanAttributes as attributes,
    arrayMap(
        (e, i) -> (
            JSONExtract(e, 'id', 'Nullable(String)'),
            JSONExtractString(e, 'doc_id'),
            JSONExtractString(e, 'doc_version'),
            JSONExtractString(e, 'sha'),
            JSONExtract(e, 'chars', 'Nullable(UInt32)'),
            JSONExtractBool(e, 'superseded'),
            0,
            i
        ),
        JSONExtractArrayRaw(attributes['rag.candidates']) as written,
        arrayEnumerate(written)
    ) as added,
    arrayMap(
        (e, i) -> (
            JSONExtract(e, 'id', 'Nullable(String)'), '', '', '', cast(null, 'Nullable(UInt32)'), 0, 1, i
        ),
        JSONExtractArrayRaw(attributes['rag.dropped']) as removed,
        arrayEnumerate(removed)
    ) as gone,
    arrayJoin(arrayConcat(added, gone)) as chunk
select
    attributes['gen_ai.data_source.id'] as index_name,
    ifNull(chunk.1, '') as chunk_id,
    attributes['rag.index.version'] as version,
    SpanId as load_id,
    chunk.2 as doc_id,
    chunk.3 as doc_version,
    chunk.4 as chunk_sha,
    chunk.5 as chars,
    toUInt8(chunk.6) as superseded,
    toUInt8(chunk.7) as deleted,
    toUInt32(chunk.8) as position
from otel_traces
where SpanAttributes['rag.stage'] = 'ingest' and ifNull(chunk.1, '') != ''
