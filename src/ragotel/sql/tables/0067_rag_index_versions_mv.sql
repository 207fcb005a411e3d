-- answers: which index versions have a manifest that arrived whole?
-- grain:   fills rag_index_versions at insert from ingest spans whose chunk list is whole
-- reads:   otel_traces
create materialized view if not exists rag_index_versions_mv to rag_index_versions as
with
    SpanAttributes as attributes,
    attributes['rag.candidates'] as list_text,
    attributes['rag.dropped'] as dropped_text
select
    attributes['gen_ai.data_source.id'] as index_name,
    attributes['rag.index.version'] as version,
    attributes['rag.index.parent_version'] as parent_version,
    SpanId as load_id,
    toUInt64(JSONLength(list_text)) as chunk_rows
from otel_traces
where
    SpanAttributes['rag.stage'] = 'ingest'
    and version != ''
    and isValidJSON(list_text)
    and JSONType(list_text) = 'Array'
    and JSONLength(list_text) = toUInt64OrNull(attributes['rag.candidates.count'])
    and (dropped_text = '' or isValidJSON(dropped_text))
