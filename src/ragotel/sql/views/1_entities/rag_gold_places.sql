-- answers: where on its way did each gold passage stand: in the legs, fused, before the reranker, at the end, sent?
-- grain:   one row per request × label × gold passage
-- reads:   rag_labelled_requests, rag_request_labels, rag_label_passages, rag_gold_ranks, rag_search_legs, rag_request_flows, rag_requests
-- A rank is the best over the lists of that place, null where none has it; is_..._absent is true only where each of
-- them was read and has it not. legs: (leg, rank, whether it is known) of each search leg.
create or replace view rag_gold_places as
with
    flows as (
        select
            trace_id,
            request_id,
            list_span_ids,
            leg_span_ids,
            later_span_ids,
            rerank_input_span_ids,
            prompt_span_id,
            searched,
            top_k,
            sent_count,
            rerank_window_chars
        from rag_request_flows
        where (trace_id, request_id) in (select trace_id, request_id from rag_labelled_requests)
    ),
    sightings as (
        select
            ranks.trace_id as trace_id,
            ranks.request_id as request_id,
            ranks.label_id as label_id,
            ranks.passage as passage,
            ranks.gold_rank as gold_rank,
            ranks.is_absent as is_absent,
            ranks.gold_keys as gold_keys,
            ranks.claim_offset_chars as claim_offset_chars,
            ranks.started_at as started_at,
            legs.leg as leg,
            has(flows.list_span_ids, ranks.span_id) as is_final,
            has(flows.leg_span_ids, ranks.span_id) as is_leg,
            ranks.stage = 'fuse' and has(flows.later_span_ids, ranks.span_id) as is_fused,
            has(flows.rerank_input_span_ids, ranks.span_id) as is_input,
            ranks.span_id = flows.prompt_span_id as is_prompt
        from rag_gold_ranks as ranks
        inner join flows on flows.trace_id = ranks.trace_id and flows.request_id = ranks.request_id
        left join rag_search_legs as legs
            on legs.trace_id = ranks.trace_id
            and legs.request_id = ranks.request_id
            and legs.span_id = ranks.span_id
    ),
    places as (
        select
            trace_id,
            request_id,
            label_id,
            passage,
            minIf(gold_rank, is_leg) as candidate_rank,
            countIf(is_leg and is_absent) as absent_legs,
            minIf(gold_rank, is_fused) as fused_rank,
            countIf(is_fused) as fusions,
            countIf(is_fused and is_absent) as absent_fusions,
            minIf(gold_rank, is_input) as input_rank,
            countIf(is_input and is_absent) as absent_inputs,
            minIf(gold_rank, is_final) as final_rank,
            countIf(is_final and is_absent) as absent_finals,
            minIf(gold_rank, is_prompt) as sent_position,
            countIf(is_prompt and is_absent) as absent_prompts,
            argMinIf(claim_offset_chars, started_at, claim_offset_chars is not null) as first_claim_offset,
            arraySort(groupArrayIf((leg, gold_rank, gold_rank is not null or is_absent), leg != '')) as legs,
            arraySort(groupUniqArrayArrayIf(gold_keys, leg != '')) as gold_keys
        from sightings
        group by trace_id, request_id, label_id, passage
    ),
    requests as (
        select trace_id, request_id, started_at, service_name, run_id, arm
        from rag_requests
        where (trace_id, request_id) in (select trace_id, request_id from rag_labelled_requests)
        limit 1 by trace_id, request_id
    )
select
    matched.trace_id as trace_id,
    matched.request_id as request_id,
    requests.started_at as started_at,
    requests.service_name as service_name,
    requests.run_id as run_id,
    requests.arm as arm,
    matched.label_id as label_id,
    passages.label_set as label_set,
    passages.population as population,
    passages.passage as passage,
    arrayStringConcat(
        arrayFilter(name -> name != '', arrayDistinct(arrayMap(pair -> pair.2, flows.searched))),
        ', '
    ) as index_version,
    flows.top_k as top_k,
    flows.sent_count as k_prompt,
    places.candidate_rank as candidate_rank,
    candidate_rank is null
    and notEmpty(flows.leg_span_ids)
    and places.absent_legs = length(flows.leg_span_ids) as is_candidate_absent,
    places.fused_rank as fused_rank,
    fused_rank is null and places.fusions > 0 and places.absent_fusions = places.fusions as is_fused_absent,
    places.input_rank as input_rank,
    input_rank is null
    and notEmpty(flows.rerank_input_span_ids)
    and places.absent_inputs = length(flows.rerank_input_span_ids) as is_input_absent,
    places.final_rank as final_rank,
    final_rank is null
    and notEmpty(flows.list_span_ids)
    and places.absent_finals = length(flows.list_span_ids) as is_final_absent,
    places.sent_position as sent_position,
    sent_position is null and places.absent_prompts > 0 as is_sent_absent,
    multiIf(
        sent_position is not null, true,
        is_sent_absent, false,
        is_final_absent, false,
        k_prompt is null or final_rank is null, null,
        final_rank <= k_prompt
    )::Nullable(Bool) as is_sent,
    (places.first_claim_offset >= flows.rerank_window_chars)::Nullable(Bool) as beyond_rerank_window,
    places.legs as legs,
    places.gold_keys as gold_keys
from rag_request_labels as matched
inner join rag_label_passages as passages on passages.label_id = matched.label_id
inner join requests on requests.trace_id = matched.trace_id and requests.request_id = matched.request_id
left join flows on flows.trace_id = matched.trace_id and flows.request_id = matched.request_id
left join places
    on places.trace_id = matched.trace_id
    and places.request_id = matched.request_id
    and places.label_id = matched.label_id
    and places.passage = passages.passage
where passages.passage > 0 and passages.answerable
settings join_use_nulls = 0
