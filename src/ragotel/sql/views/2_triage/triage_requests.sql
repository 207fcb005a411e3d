-- answers: in which triage bucket does each labelled request fall, and why?
-- grain:   one row per request × label
-- reads:   triage_verdicts, rag_competing_passages
-- The earliest factor known to fail over the passages; where none is known to fail and one could not be tested,
-- unknown. A bucket is the first divergence, not the cause: why says where a later failure is visible too.
create or replace view triage_requests as
with
    ranked as (
        select
            *,
            transform(
                bucket,
                ['not_answerable', 'corpus_gap', 'retrieval_miss', 'context_problem', 'unknown', 'generation_error', 'passed', 'ungraded'],
                [0, 1, 2, 3, 4, 5, 6, 7],
                8
            ) as severity
        from triage_verdicts
    ),
    folded as (
        select
            trace_id,
            request_id,
            label_id,
            argMin(
                tuple(
                    started_at,
                    service_name,
                    user_id,
                    session_id,
                    label_set,
                    population,
                    split,
                    matched_by,
                    question,
                    answer,
                    index_name,
                    index_version,
                    template_name,
                    template_version,
                    run_id,
                    arm,
                    bucket,
                    state,
                    attribution,
                    loss_stage,
                    drop_reason,
                    recall_class,
                    gold_rank,
                    deep_rank,
                    near_miss,
                    rerank_reachable_within,
                    top_k,
                    k_prompt,
                    sent_count,
                    sent_tokens,
                    budget_tokens,
                    grade,
                    grade_source,
                    decided_by,
                    via_other_chunk,
                    degraded,
                    why,
                    passage
                ),
                (severity, passage)
            ) as deciding,
            arraySort(groupUniqArrayArray(missing)) as all_missing,
            arraySort(groupArray((passage, bucket))) as passage_buckets,
            countIf(passage > 0) as passages
        from ranked
        group by trace_id, request_id, label_id
    )
select
    folded.trace_id as trace_id,
    folded.request_id as request_id,
    folded.deciding.1 as started_at,
    folded.deciding.2 as service_name,
    folded.deciding.3 as user_id,
    folded.deciding.4 as session_id,
    folded.label_id as label_id,
    folded.deciding.5 as label_set,
    folded.deciding.6 as population,
    folded.deciding.7 as split,
    folded.deciding.8 as matched_by,
    folded.deciding.9 as question,
    folded.deciding.10 as answer,
    folded.deciding.11 as index_name,
    folded.deciding.12 as index_version,
    folded.deciding.13 as template_name,
    folded.deciding.14 as template_version,
    folded.deciding.15 as run_id,
    folded.deciding.16 as arm,
    folded.deciding.17 as bucket,
    folded.deciding.18 as state,
    folded.deciding.19 as attribution,
    folded.deciding.20 as loss_stage,
    folded.deciding.21 as drop_reason,
    folded.deciding.22 as recall_class,
    folded.deciding.23 as gold_rank,
    folded.deciding.24 as deep_rank,
    folded.deciding.25 as near_miss,
    folded.deciding.26 as rerank_reachable_within,
    folded.deciding.27 as top_k,
    folded.deciding.28 as k_prompt,
    folded.deciding.29 as sent_count,
    folded.deciding.30 as sent_tokens,
    folded.deciding.31 as budget_tokens,
    folded.deciding.32 as grade,
    folded.deciding.33 as grade_source,
    folded.deciding.34 as decided_by,
    folded.deciding.35 as via_other_chunk,
    folded.deciding.36 as degraded,
    competing.competing_chunk_ids as competing_chunk_ids,
    folded.deciding.38 as deciding_passage,
    folded.passages as passage_count,
    ifNull(grade = 'correct', false) and bucket not in ('passed', 'not_answerable') as right_without_gold,
    ifNull(grade = 'abstained', false) as abstained,
    if(
        bucket in ('corpus_gap', 'retrieval_miss', 'context_problem')
        and not arrayExists(pair -> pair.2 = 'unknown', folded.passage_buckets),
        arrayFilter(name -> name = 'probe', folded.all_missing),
        folded.all_missing
    ) as missing,
    concat(
        folded.deciding.37,
        if(
            folded.passages > 1,
            concat(' (Passage ', toString(deciding_passage), ' of ', toString(folded.passages), '; by passage: ', arrayStringConcat(arrayMap(pair -> pair.2, folded.passage_buckets), ', '), '.)'),
            ''
        ),
        if(notEmpty(competing_chunk_ids), concat(' The prompt also held ', toString(length(competing_chunk_ids)), if(length(competing_chunk_ids) = 1, ' passage that states', ' passages that state'), ' what the answer said: ', arrayStringConcat(competing_chunk_ids, ', '), '.'), ''),
        if(right_without_gold, ' The answer was graded correct all the same.', ''),
        if(degraded, ' A search leg failed or the reranker changed nothing on this request.', '')
    ) as why
from folded
left join rag_competing_passages as competing
    on competing.trace_id = folded.trace_id
    and competing.request_id = folded.request_id
    and competing.label_id = folded.label_id
settings join_use_nulls = 0
