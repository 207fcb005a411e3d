-- answers: which passages of the prompt contradicted the gold, and were they in the majority?
-- grain:   one row per request × label graded wrong whose prompt holds the claim, where a passage competed with it
-- reads:   triage_verdicts, rag_sent_statements
-- kind: superseded_twin (a sent passage that is out of date, and is of the gold's document or says what the answer
-- said), else competing_value. statements_right and _wrong count sent passages; the texts of unread_chunk_ids are
-- not known, so is_majority is null where they could turn it.
create or replace view triage_conflicts as
with
    stated as (
        select
            trace_id,
            request_id,
            label_id,
            countIf(ifNull(states_right, false)) as statements_right,
            countIf(ifNull(states_wrong, false) and not is_gold) as statements_wrong,
            arrayDistinct(
                arrayMap(pair -> pair.2, arraySort(groupArrayIf((position, chunk_id), ifNull(states_wrong, false) and not is_gold)))
            ) as competing_chunk_ids,
            arrayDistinct(
                arrayMap(pair -> pair.2, arraySort(groupArrayIf((position, chunk_id), is_superseded and (is_of_gold_document or ifNull(states_wrong, false)))))
            ) as superseded_chunk_ids,
            arrayDistinct(
                arrayMap(pair -> pair.2, arraySort(groupArrayIf((position, chunk_id), not is_read)))
            ) as unread_chunk_ids,
            arraySort(groupUniqArrayArrayIf(answer_values, not is_gold)) as answer_values
        from rag_sent_statements
        group by trace_id, request_id, label_id
        having notEmpty(competing_chunk_ids) or notEmpty(superseded_chunk_ids)
    ),
    held as (
        select
            trace_id,
            request_id,
            label_id,
            any(label_set) as label_set,
            any(started_at) as started_at,
            any(service_name) as service_name,
            any(question) as question,
            any(answer) as answer,
            any(index_name) as index_name,
            any(index_version) as index_version,
            any(template_name) as template_name,
            any(template_version) as template_version,
            any(run_id) as run_id
        from triage_verdicts
        where passage > 0 and grade = 'wrong'
        group by trace_id, request_id, label_id
        having min(ifNull(text_in_prompt, false))
    )
select
    held.trace_id as trace_id,
    held.request_id as request_id,
    held.label_id as label_id,
    held.label_set as label_set,
    held.started_at as started_at,
    held.service_name as service_name,
    held.question as question,
    held.answer as answer,
    held.index_name as index_name,
    held.index_version as index_version,
    held.template_name as template_name,
    held.template_version as template_version,
    held.run_id as run_id,
    if(notEmpty(stated.superseded_chunk_ids), 'superseded_twin', 'competing_value') as kind,
    stated.statements_right as statements_right,
    stated.statements_wrong as statements_wrong,
    multiIf(
        statements_wrong > statements_right + length(unread_chunk_ids), true,
        statements_wrong + length(unread_chunk_ids) <= statements_right, false,
        null
    )::Nullable(Bool) as is_majority,
    stated.answer_values as answer_values,
    stated.competing_chunk_ids as competing_chunk_ids,
    stated.superseded_chunk_ids as superseded_chunk_ids,
    stated.unread_chunk_ids as unread_chunk_ids
from held
inner join stated
    on stated.trace_id = held.trace_id
    and stated.request_id = held.request_id
    and stated.label_id = held.label_id
