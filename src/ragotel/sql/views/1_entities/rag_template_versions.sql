-- answers: which versions of each prompt template were in use, and from when to when?
-- grain:   one row per service × template × version
-- reads:   rag_prompts
-- An edited template shows as two versions: without a version of its own its text's hash is the version.
create or replace view rag_template_versions as
select
    service_name,
    template_name as name,
    template_version as version,
    min(started_at) as first_seen,
    max(started_at) as last_seen,
    uniqExact(trace_id, request_id) as requests,
    uniqExact(trace_id, request_id, span_id) as prompts,
    avg(tokens) as mean_prompt_tokens
from rag_prompts final
where (template_name != '' or template_version != '') and not rag_is_canary(service_name)
group by service_name, name, version
