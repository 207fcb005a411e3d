-- answers: which misses may be faults of the label, and has a person decided?
-- grain:   one row per request × label × gold passage × suspicion
-- reads:   triage_verdicts, rag_request_decisions
-- A suspicion is no finding: sibling_chunk (a sent chunk that is not labelled states the claim: it answers too, or
-- holds the same words by chance), right_document (another chunk of the labelled document was ranked),
-- several_answer (the answer was graded correct without the gold), retired_target (the chunk was indexed once, and
-- is not in the version that served). `ragotel labels decide` writes what a person finds.
create or replace view triage_label_doubts as
with
    misses as (
        select
            trace_id,
            request_id,
            label_id,
            label_set,
            population,
            passage,
            started_at,
            service_name,
            question,
            bucket,
            loss_stage,
            gold_chunk_ids,
            via_other_chunk,
            document_rank,
            arrayFilter(
                name -> name != '',
                [
                    if(via_other_chunk is null, '', 'sibling_chunk'),
                    if(gold_rank is null and document_rank is not null, 'right_document', ''),
                    if(grade = 'correct', 'several_answer', ''),
                    if(bucket = 'corpus_gap' and is_known_to_index, 'retired_target', '')
                ]
            ) as suspicions
        from triage_verdicts
        where
            passage > 0
            and (
                bucket in ('corpus_gap', 'retrieval_miss', 'context_problem')
                or (bucket = 'unknown' and in_ranked_list = false)
            )
    )
select
    misses.trace_id as trace_id,
    misses.request_id as request_id,
    misses.label_id as label_id,
    misses.label_set as label_set,
    misses.population as population,
    misses.passage as passage,
    misses.started_at as started_at,
    misses.service_name as service_name,
    misses.question as question,
    misses.bucket as bucket,
    misses.loss_stage as loss_stage,
    misses.gold_chunk_ids as gold_chunk_ids,
    misses.via_other_chunk as via_other_chunk,
    misses.document_rank as document_rank,
    suspicion,
    nullIf(decisions.defect, '') as decided_defect,
    nullIf(decisions.note, '') as decided_note,
    nullIf(decisions.decided_by, '') as decided_by
from misses
left join rag_request_decisions as decisions
    on decisions.trace_id = misses.trace_id
    and decisions.request_id = misses.request_id
    and decisions.label_id = misses.label_id
array join misses.suspicions as suspicion
settings join_use_nulls = 0
