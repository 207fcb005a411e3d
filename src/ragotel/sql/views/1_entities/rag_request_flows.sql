-- answers: which prompt fed the answer, which ranked lists fed that prompt, and what was the cut-off k?
-- grain:   one row per request that has stages
-- reads:   rag_stages
-- The prompt is the last one assembled before the last generation that ended well. Its lists are those of the
-- stages since the prompt before it. A list is final when no later stage took it in: a fuse takes all, another
-- stage those of its own run (a run is a group of retrieves and what follows), or all where it took in more
-- candidates than its run retrieved. A stage inside another list stage (a client call in a decorated function)
-- is that stage's inner working, not a list of its own. A stage that failed handed nothing on. A generation that
-- another instrumentation recorded has its prompt with it; one inside a search or a reranker serves that.
create or replace view rag_request_flows as
with
    gathered as (
        select
            trace_id,
            request_id,
            arraySort(
                step -> (step.started, step.ended, step.position, step.span),
                groupArray(
                    cast(
                        (
                            started_at,
                            ended_at,
                            transform(
                                stage,
                                ['retrieve', 'fuse', 'rerank', 'blend', 'filter', 'assemble', 'generate'],
                                [1, 2, 3, 4, 5, 6, 7],
                                9
                            ),
                            span_id,
                            parent_span_id,
                            stage,
                            stage_name,
                            outcome,
                            evidence,
                            candidate_count,
                            in_count,
                            limit_count,
                            top_k,
                            index_name,
                            index_version,
                            rerank_effect,
                            rerank_window_chars,
                            convention
                        ),
                        'Tuple(started DateTime64(9, \'UTC\'), ended DateTime64(9, \'UTC\'), position UInt8, span String, parent String, stage String, name String, outcome String, evidence String, count Nullable(UInt32), taken_in Nullable(UInt32), cut Nullable(UInt32), top_k Nullable(UInt32), index_name String, index_version String, effect String, window Nullable(UInt32), convention String)'
                    )
                )
            ) as steps
        from rag_stages final
        where stage in ('retrieve', 'fuse', 'rerank', 'blend', 'filter', 'assemble', 'generate')
        group by trace_id, request_id
    ),
    narrowed as (
        select
            *,
            if(
                arrayExists(step -> step.stage = 'generate' and step.convention != 'ragotel', steps),
                arrayFilter(
                    step -> step.stage != 'generate'
                    or not arrayExists(
                        around -> around.stage in ('retrieve', 'rerank')
                        and around.started <= step.started
                        and around.ended >= step.ended,
                        steps
                    ),
                    steps
                ),
                []
            ) as outer_steps
        from gathered
    ),
    asked_outside as (
        select
            * replace (
                if(arrayExists(step -> step.stage = 'generate', outer_steps), outer_steps, steps) as steps
            )
        from narrowed
    ),
    staged as (
        select
            *,
            arrayFilter(step -> step.stage = 'generate', steps) as generations,
            arrayFilter(
                step -> step.stage = 'assemble' or (step.stage = 'generate' and step.convention != 'ragotel'),
                steps
            ) as assemblies,
            arrayFilter(step -> step.stage = 'retrieve', steps) as all_legs
        from asked_outside
    ),
    generated as (
        select
            *,
            arrayFilter(step -> step.outcome in ('ok', 'stopped_early', ''), generations) as good_generations
        from staged
    ),
    chosen as (
        select
            *,
            if(empty(good_generations), generations, good_generations)[-1] as generation
        from generated
    ),
    last_prompted as (
        select
            *,
            if(
                empty(generations),
                assemblies,
                arrayFilter(step -> step.started <= generation.started, assemblies)
            ) as prompts
        from chosen
    ),
    listed as (
        select
            *,
            prompts[-1] as prompt
        from last_prompted
    ),
    bounded as (
        select
            *,
            arrayFilter(
                step -> step.stage in ('retrieve', 'fuse', 'rerank', 'blend', 'filter')
                and step.outcome not in ('error', 'cancelled')
                and (empty(prompts) or step.started <= prompt.started),
                steps
            ) as all_lists
        from listed
    ),
    fed_lists as (
        select
            *,
            arrayMax(
                arrayPushFront(
                    arrayMap(
                        step -> step.started,
                        arrayFilter(
                            step -> notEmpty(all_lists) and step.started < all_lists[-1].started,
                            prompts
                        )
                    ),
                    toDateTime64(0, 9, 'UTC')
                )
            ) as fed_since
        from bounded
    ),
    marked as (
        select
            *,
            arrayFilter(step -> step.started > fed_since, all_lists) as fed
        from fed_lists
    ),
    outer_listed as (
        select
            *,
            arrayMap(step -> step.span, fed) as fed_spans,
            arrayFilter(step -> step.stage = 'retrieve', fed) as legs,
            arrayFilter(step -> step.stage != 'retrieve', fed) as later_stages
        from marked
    ),
    running as (
        select
            *,
            arrayFilter(step -> not has(fed_spans, step.parent), fed) as outer_lists
        from outer_listed
    ),
    placing as (
        select
            *,
            arrayCumSum(
                (step, before) -> step.stage = 'retrieve' and before not in ('', 'retrieve'),
                outer_lists,
                arrayShiftRight(arrayMap(step -> step.stage, outer_lists), 1, '')
            ) as runs,
            arrayFirstIndex(step -> step.stage = 'rerank', outer_lists) as rerank_at
        from running
    ),
    settled as (
        select
            *,
            arrayMap(
                (step, run) -> (
                    step,
                    run,
                    arraySum(
                        (other, other_run) -> if(other_run = run and other.stage = 'retrieve', ifNull(other.count, 0), 0),
                        outer_lists,
                        runs
                    ) as retrieved
                ),
                outer_lists,
                runs
            ) as placed
        from placing
    ),
    prompted as (
        select
            *,
            arrayFilter(
                (step, run, at) -> not arrayExists(
                    (later, later_at) -> later_at > at
                    and later.1.stage != 'retrieve'
                    and not (later.1.stage = step.stage and later.1.started < step.ended)
                    and (
                        later.1.stage = 'fuse'
                        or later.2 = run
                        or (later.3 > 0 and ifNull(later.1.taken_in, 0) > later.3)
                    ),
                    placed,
                    arrayEnumerate(placed)
                ),
                outer_lists,
                runs,
                arrayEnumerate(outer_lists)
            ) as final_lists,
            arrayFilter(
                (step, run, at) -> at < rerank_at
                and not arrayExists(
                    (later, later_at) -> later_at > at
                    and later_at < rerank_at
                    and later.1.stage != 'retrieve'
                    and (later.1.stage = 'fuse' or later.2 = run),
                    placed,
                    arrayEnumerate(placed)
                ),
                outer_lists,
                runs,
                arrayEnumerate(outer_lists)
            ) as before_rerank
        from settled
    )
select
    trace_id,
    request_id,
    generation.span as generation_span_id,
    steps[1].started as started_at,
    prompt.span as prompt_span_id,
    prompt.started as prompt_started_at,
    prompt.evidence in ('whole', 'empty') as prompt_list_is_whole,
    if(empty(prompts), null, prompt.count)::Nullable(UInt32) as sent_count,
    arrayMap(step -> step.span, final_lists) as list_span_ids,
    notEmpty(final_lists)
    and arrayAll(step -> step.evidence in ('whole', 'empty'), final_lists) as lists_are_whole,
    arrayExists(
        step -> step.evidence in ('whole', 'empty', 'truncated', 'malformed'),
        final_lists
    ) as lists_are_recorded,
    arrayMap(step -> step.span, if(rerank_at = 0, final_lists, before_rerank)) as rerank_input_span_ids,
    notEmpty(if(rerank_at = 0, final_lists, before_rerank))
    and arrayAll(
        step -> step.evidence in ('whole', 'empty'),
        if(rerank_at = 0, final_lists, before_rerank)
    ) as rerank_input_is_whole,
    arrayMap(step -> step.span, legs) as leg_span_ids,
    notEmpty(legs) and arrayAll(step -> step.evidence in ('whole', 'empty'), legs) as legs_are_whole,
    arrayMap(step -> step.span, later_stages) as later_span_ids,
    arrayAll(step -> step.evidence in ('whole', 'empty'), later_stages) as later_are_whole,
    arrayMap(step -> step.stage, later_stages) as later_stage_kinds,
    arrayMax(arrayMap(step -> ifNull(step.top_k, 0), legs)) as largest_top_k,
    coalesce(
        arrayFilter(step -> step.cut is not null, later_stages)[-1].cut,
        nullIf(largest_top_k, 0)
    ) as top_k,
    arrayDistinct(arrayMap(step -> (step.index_name, step.index_version), all_legs)) as searched,
    arrayExists(step -> step.outcome in ('error', 'cancelled') and step.stage in ('retrieve', 'rerank'), steps)
    or arrayExists(step -> step.stage = 'rerank' and step.effect = 'identity', fed) as degraded,
    arrayExists(
        step -> step.stage = 'rerank'
        and arrayExists(
            other -> other.started < step.started
            -- A search in between begins another turn of an agent: what it reranks was not cut before.
            and not arrayExists(leg -> leg.started > other.started and leg.started < step.started, all_legs),
            assemblies
        ),
        fed
    ) as reranked_after_truncation,
    arrayFilter(step -> step.stage = 'rerank', fed)[1].window as rerank_window_chars,
    length(generations) > 0 as has_generation
from prompted
