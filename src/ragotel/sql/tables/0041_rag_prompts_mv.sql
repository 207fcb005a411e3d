-- answers: what exactly did the model read?
-- grain:   fills rag_prompts at insert, one row per assemble span (also where the text is off)
-- reads:   otel_traces
-- A text shorter than its stated length was cut on the way: is_whole is 0 then, whatever the mode says.
create materialized view if not exists rag_prompts_mv to rag_prompts as
with
    SpanAttributes as attributes,
    attributes['rag.candidates'] as list_text,
    toUInt32OrNull(attributes['rag.candidates.count']) as stated_count,
    isValidJSON(list_text) and JSONType(list_text) = 'Array' as list_is_array,
    if(list_is_array, JSONExtractArrayRaw(list_text), []) as elements
select
    TraceId as trace_id,
    attributes['rag.request.id'] as request_id,
    SpanId as span_id,
    rag_storable_start(Timestamp) as started_at,
    ServiceName as service_name,
    toValidUTF8(attributes['rag.prompt.text']) as prompt,
    rag_normalise(prompt) as prompt_norm,
    attributes['rag.prompt.sha256'] as prompt_sha256,
    toUInt64OrNull(attributes['rag.prompt.chars']) as chars,
    toUInt64OrNull(attributes['rag.prompt.tokens']) as tokens,
    attributes['rag.prompt.tokens_source'] as tokens_source,
    attributes['rag.content_mode'] as content_mode,
    prompt != ''
    and content_mode in ('', 'full')
    and lengthUTF8(prompt) >= ifNull(chars, 0) as is_whole,
    attributes['gen_ai.prompt.name'] as template_name,
    attributes['gen_ai.prompt.version'] as template_version,
    toUInt64OrNull(attributes['rag.budget.tokens']) as budget_tokens,
    arrayMap(e -> nullIf(JSONExtract(e, 'id', 'Nullable(String)'), ''), elements) as sent_ids,
    arrayMap(e -> JSONExtract(e, 'tokens', 'Nullable(UInt32)'), elements) as sent_tokens,
    'ragotel' as convention,
    multiIf(
        list_text = '' and stated_count = 0, 'empty',
        list_text = '' and content_mode = 'off' and stated_count > 0, 'off',
        list_text = '', 'not_recorded',
        not list_is_array, 'malformed',
        length(elements) < ifNull(stated_count, 0), 'truncated',
        length(elements) = 0, 'empty',
        'whole'
    ) as evidence
from otel_traces
where SpanAttributes['rag.stage'] = 'assemble'
