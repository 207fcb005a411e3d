-- answers: what exactly did the model read, in a service that another instrumentation traces?
-- grain:   fills rag_prompts at insert, one row per generation whose messages were recorded
-- reads:   rag_foreign_read
-- The prompt is the text of all messages in order, joined by a blank line. No convention lists what was sent.
create materialized view if not exists rag_foreign_prompts_mv to rag_prompts as
select
    trace_id,
    request_id,
    span_id,
    started_at,
    service_name,
    prompt,
    rag_normalise(prompt) as prompt_norm,
    lower(hex(SHA256(prompt))) as prompt_sha256,
    if(prompt_state = 'full', toUInt64(lengthUTF8(prompt)), null) as chars,
    input_tokens as tokens,
    if(input_tokens is null, '', 'reported') as tokens_source,
    prompt_state as content_mode,
    prompt_state = 'full' as is_whole,
    template_name,
    template_version,
    convention,
    'not_recorded' as evidence
from rag_foreign_read
where stage = 'generate' and prompt != ''
