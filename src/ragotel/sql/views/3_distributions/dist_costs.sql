-- answers: how many input tokens does a query take, and how many of them does each passage add?
-- grain:   one row per day × service × template × version × run
-- reads:   rag_request_flows, rag_prompts, rag_stages, rag_requests
-- Input tokens are those that the model reported, else the prompt's. A passage's are counted where the service
-- counted them for all that was sent; else fitted over prompts with more and fewer passages; else estimated at four
-- characters each, as the record then has them; else null.
-- Tokens at another k: mean_input_tokens + (k - mean_passages) * tokens_per_passage. `ragotel costs` adds prices.
create or replace view dist_costs as
with
    asked as (
        select
            flows.trace_id as trace_id,
            flows.request_id as request_id,
            toDate(flows.started_at) as day,
            prompts.service_name as service_name,
            prompts.template_name as template_name,
            prompts.template_version as template_version,
            coalesce(generations.input_tokens, prompts.tokens) as input_tokens,
            if(generations.input_tokens is null, toString(prompts.tokens_source), 'reported') as tokens_source,
            if(prompts.evidence in ('whole', 'empty'), length(prompts.sent_ids), flows.sent_count)::Nullable(UInt32) as passages,
            if(
                sent.evidence = 'whole' and not has(sent.candidate_tokens, null),
                arraySum(tokens -> ifNull(tokens, 0), sent.candidate_tokens),
                null
            )::Nullable(UInt64) as passage_tokens,
            arrayAll(
                (tokens, kept, chars) -> tokens is not null and tokens = intDiv(ifNull(coalesce(kept, chars), 0) + 3, 4),
                sent.candidate_tokens,
                sent.candidate_kept_chars,
                sent.candidate_chars
            ) as is_estimated
        from rag_request_flows as flows
        inner join (
            select
                trace_id,
                request_id,
                span_id,
                service_name,
                template_name,
                template_version,
                tokens,
                tokens_source,
                sent_ids,
                evidence
            from rag_prompts final
            where not rag_is_canary(service_name)
        ) as prompts
            on prompts.trace_id = flows.trace_id
            and prompts.request_id = flows.request_id
            and prompts.span_id = flows.prompt_span_id
        left join (
            select
                trace_id,
                request_id,
                span_id,
                candidate_tokens,
                candidate_chars,
                candidate_kept_chars,
                evidence
            from rag_stages final
            where stage = 'assemble'
        ) as sent
            on sent.trace_id = flows.trace_id
            and sent.request_id = flows.request_id
            and sent.span_id = flows.prompt_span_id
        left join (
            select trace_id, request_id, span_id, input_tokens
            from rag_stages final
            where stage = 'generate' and input_tokens is not null
        ) as generations
            on generations.trace_id = flows.trace_id
            and generations.request_id = flows.request_id
            and generations.span_id = flows.generation_span_id
    ),
    placed as (
        select asked.*, origins.run_id as run_id
        from asked
        left join (
            select trace_id, request_id, run_id
            from rag_requests
            where run_id != ''
            limit 1 by trace_id, request_id
        ) as origins on origins.trace_id = asked.trace_id and origins.request_id = asked.request_id
    ),
    summed as (
        select
            day,
            service_name,
            template_name,
            template_version,
            run_id,
            count() as requests,
            count(input_tokens) as measured_requests,
            arraySort(groupUniqArrayIf(tokens_source, input_tokens is not null)) as tokens_sources,
            avg(input_tokens) as mean_input_tokens,
            avgIf(passages, input_tokens is not null) as mean_passages,
            sumIf(passage_tokens, input_tokens is not null and not is_estimated) as counted_tokens,
            sumIf(passages, passage_tokens is not null and input_tokens is not null and not is_estimated)
                as counted_passages,
            sumIf(passage_tokens, input_tokens is not null and is_estimated) as estimated_tokens,
            sumIf(passages, passage_tokens is not null and input_tokens is not null and is_estimated)
                as estimated_passages,
            varPopIf(ifNull(passages, 0), input_tokens is not null and passages is not null) as spread,
            covarPopIf(
                toFloat64(ifNull(passages, 0)),
                toFloat64(ifNull(input_tokens, 0)),
                input_tokens is not null and passages is not null
            ) as covariance
        from placed
        group by day, service_name, template_name, template_version, run_id
    )
select
    day,
    service_name,
    template_name,
    template_version,
    run_id,
    requests,
    measured_requests,
    tokens_sources,
    mean_input_tokens,
    mean_passages,
    multiIf(
        counted_passages > 0, counted_tokens / counted_passages,
        spread > 0 and covariance > 0, covariance / spread,
        estimated_passages > 0, estimated_tokens / estimated_passages,
        null
    )::Nullable(Float64) as tokens_per_passage,
    multiIf(counted_passages > 0, 'counted', spread > 0 and covariance > 0, 'fitted', estimated_passages > 0, 'estimated', '') as tokens_per_passage_source,
    mean_input_tokens - mean_passages * tokens_per_passage as fixed_tokens
from summed
settings join_use_nulls = 0
