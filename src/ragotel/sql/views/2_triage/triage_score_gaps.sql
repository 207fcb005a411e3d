-- answers: how sure was the ranking, and how far below the cut-off was the gold passage?
-- grain:   one row per request × label × gold passage (label '' and passage 0 where the request has no label)
-- reads:   rag_request_flows, rag_stages, rag_gold_ranks, rag_request_probes
-- Scores of the list handed to the prompt; a gap is positive where the rank above is better. A probe's score is
-- compared only with the list of the leg that was probed, since kinds of score are never compared.
create or replace view triage_score_gaps as
with
    lists as (
        select
            flows.trace_id as trace_id,
            flows.request_id as request_id,
            flows.top_k as top_k,
            stages.span_id as span_id,
            stages.started_at as started_at,
            stages.service_name as service_name,
            stages.stage as stage,
            stages.stage_name as stage_name,
            stages.score_kind as score_kind,
            stages.chunk_ids as chunk_ids,
            if(
                ifNull(stages.higher_is_better, true),
                stages.scores,
                arrayMap(score -> -score, stages.scores)
            ) as oriented_scores,
            stages.higher_is_better as higher_is_better
        from (
            select trace_id, request_id, top_k, list_span_ids[-1] as list_span_id
            from rag_request_flows
            where notEmpty(list_span_ids)
        ) as flows
        inner join (
            select trace_id, request_id, span_id, started_at, service_name, stage, stage_name, score_kind, chunk_ids, scores, higher_is_better
            from rag_stages final
            where stage in ('retrieve', 'fuse', 'rerank', 'blend', 'filter')
        ) as stages
            on stages.trace_id = flows.trace_id
            and stages.request_id = flows.request_id
            and stages.span_id = flows.list_span_id
    ),
    golds as (
        select trace_id, request_id, label_id, passage, span_id, gold_rank
        from rag_gold_ranks
    ),
    probes as (
        select
            trace_id,
            request_id,
            label_id,
            passage,
            arraySort(
                probe -> (probe.1 = '', probe.2),
                groupArray((toString(leg), -toUnixTimestamp64Micro(probed_at), score, deep_rank))
            ) as found
        from rag_request_probes
        group by trace_id, request_id, label_id, passage
    ),
    joined as (
        select
            lists.trace_id as trace_id,
            lists.request_id as request_id,
            lists.top_k as top_k,
            lists.started_at as started_at,
            lists.service_name as service_name,
            lists.stage as stage,
            lists.stage_name as stage_name,
            lists.score_kind as score_kind,
            lists.chunk_ids as chunk_ids,
            lists.oriented_scores as oriented_scores,
            lists.higher_is_better as higher_is_better,
            golds.label_id as label_id,
            golds.passage as passage,
            golds.gold_rank as gold_rank,
            arrayFirst(
                probe -> lists.stage = 'retrieve' and probe.1 in ('', lists.stage_name),
                probes.found
            ) as probe,
            probe.3 as probe_score,
            probe.4 as probe_rank
        from lists
        left join golds
            on golds.trace_id = lists.trace_id
            and golds.request_id = lists.request_id
            and golds.span_id = lists.span_id
        left join probes
            on probes.trace_id = lists.trace_id
            and probes.request_id = lists.request_id
            and probes.label_id = golds.label_id
            and probes.passage = golds.passage
    )
select
    trace_id,
    request_id,
    started_at,
    service_name,
    label_id,
    passage,
    stage,
    stage_name,
    score_kind,
    higher_is_better,
    top_k,
    gold_rank,
    probe_rank,
    round(oriented_scores[1] - oriented_scores[least(5, length(oriented_scores))], 9) as score_spread_top5,
    if(length(oriented_scores) < 2, null, round(oriented_scores[1] - oriented_scores[2], 9)) as score_gap_1_2,
    if(length(oriented_scores) < 3, null, round(oriented_scores[2] - oriented_scores[3], 9)) as score_gap_2_3,
    least(ifNull(top_k, length(oriented_scores)), length(oriented_scores)) as k,
    multiIf(
        gold_rank is not null and gold_rank > k, oriented_scores[gold_rank],
        gold_rank is null, if(ifNull(higher_is_better, true), probe_score, -probe_score),
        null
    ) as gold_score_below_k,
    round(oriented_scores[k] - gold_score_below_k, 9) as gold_gap_below_k,
    (gold_gap_below_k > score_spread_top5)::Nullable(Bool) as gap_exceeds_spread,
    arrayMap(
        (score, next) -> round(score - next, 9),
        arraySlice(oriented_scores, 1, k - 1),
        arraySlice(oriented_scores, 2, k - 1)
    ) as gaps,
    if(
        empty(gaps) or arrayExists(gap -> gap is null, gaps),
        null,
        arrayFirstIndex(gap -> gap = arrayMax(gaps), gaps)
    )::Nullable(UInt32) as largest_gap_after_rank,
    if(largest_gap_after_rank is null, [], arraySlice(chunk_ids, 1, ifNull(largest_gap_after_rank, 0))) as kept_by_gap_cut,
    if(
        largest_gap_after_rank is null or gold_rank is null,
        null,
        gold_rank <= largest_gap_after_rank
    )::Nullable(Bool) as gold_kept_by_gap_cut
from joined
settings join_use_nulls = 0
