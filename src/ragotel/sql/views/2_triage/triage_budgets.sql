-- answers: where did the token budget cut the ranked list?
-- grain:   one row per request that assembled a prompt
-- reads:   rag_request_flows, rag_stages, rag_prompts
-- running_tokens adds up the ranked list's own order; budget_left_tokens is what the sent passages left over.
create or replace view triage_budgets as
with
    sent as (
        select
            trace_id,
            request_id,
            span_id,
            started_at,
            service_name,
            budget_tokens,
            tokens as prompt_tokens,
            tokens_source,
            template_name,
            template_version,
            sent_ids,
            sent_tokens as token_counts,
            evidence
        from rag_prompts final
    ),
    lists as (
        select trace_id, request_id, span_id, chunk_ids, candidate_tokens
        from rag_stages final
        where stage in ('retrieve', 'fuse', 'rerank', 'blend', 'filter')
    )
select
    flows.trace_id as trace_id,
    flows.request_id as request_id,
    sent.started_at as started_at,
    sent.service_name as service_name,
    sent.template_name as template_name,
    sent.template_version as template_version,
    lists.chunk_ids as candidate_ids,
    arrayMap(
        (tokens, id) -> coalesce(
            tokens,
            if(has(sent.sent_ids, id), sent.token_counts[indexOf(sent.sent_ids, id)], null)
        ),
        lists.candidate_tokens,
        lists.chunk_ids
    ) as candidate_tokens,
    arrayMap(
        (at) -> if(
            arrayExists(tokens -> tokens is null, arraySlice(candidate_tokens, 1, at)),
            null,
            arraySum(tokens -> ifNull(tokens, 0), arraySlice(candidate_tokens, 1, at))
        ),
        arrayEnumerate(candidate_tokens)
    ) as running_tokens,
    arrayMap(id -> has(sent.sent_ids, id), lists.chunk_ids) as is_sent,
    if(sent.evidence in ('whole', 'empty'), length(sent.sent_ids), flows.sent_count)::Nullable(UInt32) as sent_count,
    multiIf(
        sent.evidence = 'empty', 0,
        sent.evidence != 'whole' or arrayExists(tokens -> tokens is null, sent.token_counts), null,
        arraySum(tokens -> ifNull(tokens, 0), sent.token_counts)
    )::Nullable(UInt64) as sent_tokens,
    sent.prompt_tokens as prompt_tokens,
    sent.tokens_source as tokens_source,
    sent.budget_tokens as budget_tokens,
    (toInt64(sent.budget_tokens) - toInt64(sent_tokens))::Nullable(Int64) as budget_left_tokens,
    arrayFirst((id, kept) -> not kept, lists.chunk_ids, is_sent) as first_refused_chunk_id,
    arrayFirst((tokens, kept) -> not kept, candidate_tokens, is_sent) as first_refused_tokens,
    toBool(flows.reranked_after_truncation) as reranked_after_truncation
from rag_request_flows as flows
inner join sent
    on sent.trace_id = flows.trace_id
    and sent.request_id = flows.request_id
    and sent.span_id = flows.prompt_span_id
left join lists
    on lists.trace_id = flows.trace_id
    and lists.request_id = flows.request_id
    and lists.span_id = flows.list_span_ids[-1]
settings join_use_nulls = 0
