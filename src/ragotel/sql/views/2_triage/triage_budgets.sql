-- answers: where did the token budget cut the ranked list?
-- grain:   one row per request that assembled a prompt
-- reads:   rag_request_flows, rag_stages, rag_prompts, rag_chunks
-- running_tokens adds up the ranked list's own order; budget_left_tokens is what the sent passages left over.
-- Tokens that the final list does not have are taken from another list of the request, or from the prompt's own,
-- where all that say so agree; the first refused passage's from its text, if the prompt's were estimated, at four
-- characters each as those. is_sent is null where the sent list was not recorded whole.
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
    ),
    known as (
        select
            trace_id,
            request_id,
            groupUniqArrayArray(
                arrayFilter(
                    pair -> pair.1 is not null and pair.2 is not null,
                    arrayMap(
                        (id, tokens, kept, chars) -> (id, if(kept < chars, null, tokens)),
                        chunk_ids,
                        candidate_tokens,
                        candidate_kept_chars,
                        candidate_chars
                    )
                )
            ) as counts,
            groupUniqArrayArray(
                arrayFilter(
                    pair -> pair.1 is not null and pair.2 != '',
                    arrayMap((id, sha) -> (id, sha), chunk_ids, candidate_shas)
                )
            ) as hashes,
            groupArrayIf((span_id, dropped_ids, drop_reasons), stage = 'assemble') as drops
        from rag_stages final
        where stage in ('retrieve', 'fuse', 'rerank', 'blend', 'filter', 'assemble')
        group by trace_id, request_id
    ),
    joined as (
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
                    if(has(sent.sent_ids, id), sent.token_counts[indexOf(sent.sent_ids, id)], null),
                    if(
                        countEqual(known.counts.1, id) = 1,
                        arrayFirst(pair -> pair.1 = id, known.counts).2,
                        null
                    )
                ),
                lists.candidate_tokens,
                lists.chunk_ids
            ) as candidate_tokens,
            sent.evidence in ('whole', 'empty') as is_whole,
            arrayMap(
                id -> multiIf(has(sent.sent_ids, id), 1, is_whole, 0, null)::Nullable(UInt8),
                lists.chunk_ids
            ) as is_sent,
            if(is_whole, length(sent.sent_ids), flows.sent_count)::Nullable(UInt32) as sent_count,
            multiIf(
                sent.evidence = 'empty', 0,
                sent.evidence != 'whole' or arrayExists(tokens -> tokens is null, sent.token_counts), null,
                arraySum(tokens -> ifNull(tokens, 0), sent.token_counts)
            )::Nullable(UInt64) as sent_tokens,
            sent.prompt_tokens as prompt_tokens,
            sent.tokens_source as tokens_source,
            sent.budget_tokens as budget_tokens,
            (toInt64(sent.budget_tokens) - toInt64(sent_tokens))::Nullable(Int64) as budget_left_tokens,
            arrayFirstIndex(kept -> ifNull(kept = 0, false), is_sent) as refused_at,
            if(refused_at = 0, null, candidate_ids[refused_at])::Nullable(String) as first_refused_chunk_id,
            if(refused_at = 0, null, candidate_tokens[refused_at])::Nullable(UInt32) as counted_tokens,
            if(
                counted_tokens is null
                and sent.tokens_source = 'estimated'
                and countEqual(known.hashes.1, first_refused_chunk_id) = 1,
                arrayFirst(pair -> pair.1 = first_refused_chunk_id, known.hashes).2,
                ''
            ) as estimated_sha,
            arrayFirst(one -> one.1 = flows.prompt_span_id, known.drops) as dropped,
            if(
                has(dropped.2, first_refused_chunk_id),
                dropped.3[indexOf(dropped.2, first_refused_chunk_id)],
                ''
            ) as first_refused_reason,
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
        left join known
            on known.trace_id = flows.trace_id and known.request_id = flows.request_id
    ),
    measured as (
        select
            joined.*,
            coalesce(
                joined.counted_tokens,
                if(texts.chunk_sha = '', null, toUInt32(ceil(texts.chars / 4)))
            )::Nullable(UInt32) as first_refused_tokens
        from joined
        left join (
            select chunk_sha, any(lengthUTF8(text)) as chars
            from rag_chunks
            where chunk_sha in (
                select arrayJoin(arrayFilter((sha, tokens) -> tokens is null, candidate_shas, candidate_tokens))
                from rag_stages
                where stage in ('retrieve', 'fuse', 'rerank', 'blend', 'filter')
            )
            group by chunk_sha
        ) as texts on texts.chunk_sha = joined.estimated_sha
    )
select
    trace_id,
    request_id,
    started_at,
    service_name,
    template_name,
    template_version,
    candidate_ids,
    candidate_tokens,
    arrayMap(
        (at) -> if(
            arrayExists(tokens -> tokens is null, arraySlice(candidate_tokens, 1, at)),
            null,
            arraySum(tokens -> ifNull(tokens, 0), arraySlice(candidate_tokens, 1, at))
        ),
        arrayEnumerate(candidate_tokens)
    ) as running_tokens,
    is_sent,
    sent_count,
    sent_tokens,
    prompt_tokens,
    tokens_source,
    budget_tokens,
    budget_left_tokens,
    first_refused_chunk_id,
    first_refused_tokens,
    first_refused_reason,
    reranked_after_truncation,
    if(
        budget_tokens is null,
        '',
        concat(
            if(
                sent_tokens is null,
                concat('The budget is ', toString(budget_tokens), ' tokens; what the sent passages took of it was not recorded'),
                concat('The sent passages took ', toString(sent_tokens), ' of ', toString(budget_tokens), ' budget tokens')
            ),
            multiIf(
                refused_at = 0, '.',
                first_refused_tokens is null, concat('; how many the next, ', ifNull(first_refused_chunk_id, '?'), ', would have needed was not recorded.'),
                concat(
                    '; the next, ', ifNull(first_refused_chunk_id, '?'), ', would have needed ', toString(first_refused_tokens), if(estimated_sha = '', '', ' (estimated)'),
                    multiIf(
                        budget_left_tokens is null, '.',
                        budget_left_tokens < first_refused_tokens, concat(', and ', toString(budget_left_tokens), if(budget_left_tokens = 1, ' was left.', ' were left.')),
                        concat(', which fits into the ', toString(budget_left_tokens), ' left: it was not the budget that left it out.')
                    )
                )
            )
        )
    ) as why
from measured
settings join_use_nulls = 0
