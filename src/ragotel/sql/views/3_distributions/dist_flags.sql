-- answers: which ways of searching that are known to fail does each service use?
-- grain:   one row per day × service × flag that could be checked
-- reads:   rag_stages, dist_recall_drift
-- checked counts the requests that recorded what the flag needs; requests those that show it, share their part.
-- k_raised_without_recall and beyond_rerank_window need labels, the others do not. Nothing of a text is shown.
create or replace view dist_flags as
with
    gathered as (
        select
            trace_id,
            request_id,
            any(service_name) as service,
            min(started_at) as first_at,
            countIf(stage = 'fuse' and fuse_method != '') as named_fusions,
            countIf(
                stage = 'fuse'
                and match(lower(fuse_method), 'weight|linear|score|convex|alpha')
                and not match(lower(fuse_method), 'rrf|reciprocal|rank')
            ) as weighted_fusions,
            countIf(stage = 'retrieve') as searches,
            countIf(stage = 'retrieve' and (filter != '' or filter_excluded_count is not null)) as filtered_searches,
            countIf(stage != 'retrieve' and has(drop_reasons, 'permission')) as permission_drops,
            countIf(stage = 'rerank' and outcome not in ('error', 'cancelled')) as reranks,
            countIf(stage = 'rerank' and rerank_effect = 'identity') as idle_reranks,
            countIf(stage = 'assemble') as assemblies,
            arrayStringConcat(
                arrayMap(
                    step -> step.3,
                    arraySort(
                        groupArrayIf(
                            (
                                started_at,
                                indexOf(['retrieve', 'rerank', 'assemble', 'generate'], stage),
                                transform(stage, ['retrieve', 'rerank', 'assemble', 'generate'], ['s', 'r', 'a', 'g'], '')
                            ),
                            stage in ('retrieve', 'rerank', 'assemble', 'generate')
                            and outcome not in ('error', 'cancelled')
                        )
                    )
                ),
                ''
            ) as sequence,
            groupArrayIf(
                (coalesce(limit_count, top_k), in_count),
                stage = 'rerank' and outcome not in ('error', 'cancelled')
            ) as depths,
            multiIf(
                countIf(stage = 'fuse') > 0, argMaxIf(candidate_count, started_at, stage = 'fuse'),
                searches = 1, maxIf(candidate_count, stage = 'retrieve'),
                null
            ) as last_count
        from rag_stages final
        where
            stage in ('retrieve', 'fuse', 'rerank', 'blend', 'filter', 'assemble', 'generate')
            and not rag_is_canary(service_name)
        group by trace_id, request_id
    ),
    deepened as (
        select
            *,
            arrayFilter(
                depth -> depth.1 is not null and depth.2 is not null,
                arrayMap(depth -> (depth.1, coalesce(depth.2, last_count)), depths)
            ) as known_depths
        from gathered
    ),
    observed as (
        select
            toDate(first_at) as day,
            service as service_name,
            trace_id,
            arrayJoin(
                arrayFilter(
                    one -> one.2,
                    [
                        ('fused_by_weighted_scores', named_fusions > 0, weighted_fusions > 0),
                        (
                            'permission_filtered_after_retrieval',
                            searches > 0,
                            permission_drops > 0 and filtered_searches = 0
                        ),
                        ('reranked_after_truncation', reranks > 0 and assemblies > 0, match(sequence, 'a[^sg]*r')),
                        (
                            'reranker_deeper_than_its_list',
                            notEmpty(known_depths),
                            arrayExists(depth -> depth.1 > depth.2, known_depths)
                        ),
                        ('reranker_idle', reranks > 0, idle_reranks > 0)
                    ]::Array(Tuple(String, UInt8, UInt8))
                )
            ) as observation
        from deepened
    ),
    series as (
        select
            day,
            service_name,
            arrayJoin(
                arrayFilter(
                    one -> one.3 > 0,
                    [
                        ('beyond_rerank_window', beyond_rerank_window, window_requests, beyond_example_trace_id),
                        (
                            'k_raised_without_recall',
                            if(is_raised, requests, 0),
                            if(is_raised is null, 0, requests),
                            if(is_raised, example_trace_id, '')
                        )
                    ]::Array(Tuple(String, UInt64, UInt64, String))
                )
            ) as observation
        from (
            select
                *,
                mean_top_k >= 1.5 * former_mean_top_k and recall_at_k_prompt <= former_recall_at_k_prompt as is_raised
            from dist_recall_drift
        )
    ),
    counted as (
        select
            day,
            service_name,
            observation.1 as flag,
            countIf(observation.3) as flagged,
            count() as all_checked,
            minIf(trace_id, observation.3) as example
        from observed
        group by day, service_name, flag
        union all
        select
            day,
            service_name,
            observation.1 as flag,
            sum(observation.2) as flagged,
            sum(observation.3) as all_checked,
            minIf(observation.4, observation.4 != '') as example
        from series
        group by day, service_name, flag
    )
select
    day,
    service_name,
    flag,
    flagged as requests,
    all_checked as checked,
    flagged / all_checked as share,
    example as example_trace_id,
    transform(
        flag,
        [
            'fused_by_weighted_scores',
            'permission_filtered_after_retrieval',
            'k_raised_without_recall',
            'reranked_after_truncation',
            'reranker_deeper_than_its_list',
            'reranker_idle',
            'beyond_rerank_window'
        ],
        [
            'The legs were joined by a weighted sum of scores. Scores of different kinds have no common scale, so the weight drifts as the index grows: fuse by rank.',
            'Passages were taken out for permission after a search that carried no filter: forbidden passages take up places of the list and pass through the service. Filter in the search.',
            'k is at least half as large again as in the seven days before, and no more of the gold is among what is sent: more tokens, the same recall.',
            'A reranker ran after the prompt was cut: it could no longer bring back what the cut took.',
            'The reranker is set to a depth that the list it is given does not have: raise the k of the legs or the limit of the fusion, or expect less of it.',
            'The reranker gave back the order it was given: it cost time and changed nothing.',
            'The sentence that answers begins behind the part of the passage that the reranker reads: shorten the passages or widen the window.'
        ],
        ''
    ) as meaning
from counted
settings join_use_nulls = 0
