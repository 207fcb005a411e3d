-- answers: where would reciprocal rank fusion of the recorded legs have put each gold passage?
-- grain:   one row per request × label × gold passage × rrf_k
-- reads:   rag_gold_places, rag_search_legs, rag_labelled_lists
-- A candidate scores the sum over the legs of 1 / (rrf_k + rank). Equal scores have no order: what_if_rank is the
-- first of their places, what_if_rank_last the last. Both are null where a leg's list is not whole or holds candidates
-- without a name, and where no leg has the passage (is_absent then says that this is proven).
create or replace view what_if_rrf as
with
    placed as (
        select
            lists.trace_id as trace_id,
            lists.request_id as request_id,
            key,
            groupArray(toUInt32(place)) as positions
        from rag_labelled_lists as lists
        inner join rag_search_legs as legs
            on legs.trace_id = lists.trace_id
            and legs.request_id = lists.request_id
            and legs.span_id = lists.span_id
        array join lists.keys as key, arrayEnumerate(lists.keys) as place
        group by trace_id, request_id, key
    ),
    pooled as (
        select
            trace_id,
            request_id,
            groupArray(key) as keys,
            groupArray(positions) as all_positions
        from placed
        group by trace_id, request_id
    ),
    wholeness as (
        select trace_id, request_id, count() as legs, min(is_whole) and not max(has_nameless) as is_whole
        from rag_search_legs
        group by trace_id, request_id
    ),
    candidates as (
        select
            places.trace_id as trace_id,
            places.request_id as request_id,
            places.started_at as started_at,
            places.service_name as service_name,
            places.run_id as run_id,
            places.arm as arm,
            places.label_id as label_id,
            places.label_set as label_set,
            places.passage as passage,
            places.index_version as index_version,
            places.fused_rank as recorded_rank,
            places.is_fused_absent as is_recorded_absent,
            places.candidate_rank as best_leg_rank,
            places.is_candidate_absent as is_absent,
            places.legs as legs,
            wholeness.is_whole as is_whole,
            wholeness.legs as leg_count,
            pooled.all_positions as all_positions,
            arrayFilter(
                (positions, key) -> has(places.gold_keys, key),
                pooled.all_positions,
                pooled.keys
            ) as gold_positions
        from rag_gold_places as places
        inner join wholeness
            on wholeness.trace_id = places.trace_id and wholeness.request_id = places.request_id
        left join pooled on pooled.trace_id = places.trace_id and pooled.request_id = places.request_id
    ),
    scored as (
        select
            * except (all_positions, gold_positions),
            rrf_k,
            arrayMap(
                positions -> round(arraySum(place -> 1 / (rrf_k + place), positions), 12),
                all_positions
            ) as scores,
            if(
                is_whole and notEmpty(gold_positions),
                arrayMax(positions -> round(arraySum(place -> 1 / (rrf_k + place), positions), 12), gold_positions),
                null
            ) as gold_score
        from candidates
        array join [10, 30, 60, 100]::Array(UInt32) as rrf_k
    )
select
    trace_id,
    request_id,
    started_at,
    service_name,
    run_id,
    arm,
    label_id,
    label_set,
    passage,
    index_version,
    rrf_k,
    recorded_rank,
    is_recorded_absent,
    best_leg_rank,
    is_absent,
    legs,
    leg_count,
    is_whole,
    gold_score,
    if(gold_score is null, null, 1 + arrayCount(score -> score > gold_score, scores))::Nullable(UInt32) as what_if_rank,
    if(gold_score is null, null, arrayCount(score -> score >= gold_score, scores))::Nullable(UInt32) as what_if_rank_last
from scored
settings join_use_nulls = 0
