-- answers: where did the gold and the lures of a label stand in the list that each run and arm handed on?
-- grain:   one row per request × label, of requests that name a run or an arm
-- reads:   rag_requests, rag_request_labels, rag_labels, rag_request_flows, rag_gold_ranks, rag_stages, rag_request_grades, ab_lure_ranks
-- Ranks are those of the last ranked lists before assembly, the best one where there are several. A rank is null
-- where the list does not have it or cannot be read: passages_absent, passages_read and document_is_read tell
-- which. A label without a split falls into a half by the hash of its id.
create or replace view ab_answers as
with
    asked as (
        select trace_id, request_id, started_at, duration_ms, service_name, run_id, arm, outcome
        from rag_requests
        where run_id != '' or arm != ''
        limit 1 by trace_id, request_id
    ),
    labels as (
        select
            label_id,
            label_set,
            population,
            split,
            answerable,
            question,
            passage_count,
            notEmpty(lure_chunk_ids) or notEmpty(lure_spans) as has_lures
        from rag_labels
        order by loaded_at desc
        limit 1 by label_id
    ),
    golds as (
        select
            trace_id,
            request_id,
            label_id,
            groupArray(
                cast(
                    (
                        span_id,
                        passage,
                        ifNull(gold_rank, 0),
                        is_absent,
                        doc_rank,
                        is_document_absent
                    ),
                    'Tuple(span String, passage UInt16, rank UInt32, is_absent Bool, doc_rank UInt32, is_doc_absent Bool)'
                )
            ) as found
        from rag_gold_ranks
        where stage != 'assemble'
        group by trace_id, request_id, label_id
    ),
    lists as (
        select
            trace_id,
            request_id,
            groupArray(
                cast(
                    (
                        span_id,
                        candidate_count,
                        evidence,
                        arrayFilter((at, is_old) -> ifNull(is_old, 0), arrayEnumerate(candidate_superseded), candidate_superseded),
                        arrayExists(is_old -> is_old is not null, candidate_superseded)
                    ),
                    'Tuple(span String, count Nullable(UInt32), evidence String, superseded Array(UInt32), tells_superseded Bool)'
                )
            ) as recorded
        from rag_stages final
        where
            stage in ('retrieve', 'fuse', 'rerank', 'blend', 'filter')
            and (trace_id, request_id) in (select trace_id, request_id from asked)
        group by trace_id, request_id
    ),
    lures as (
        select
            trace_id,
            request_id,
            label_id,
            groupArray(
                cast(
                    (span_id, ifNull(lure_rank, 0), ifNull(unread_rank, 0)),
                    'Tuple(span String, rank UInt32, unread UInt32)'
                )
            ) as found
        from ab_lure_ranks
        group by trace_id, request_id, label_id
    ),
    grades_by_request as (
        select request_id, groupArray((trace_id, label_id, standing, toString(grade))) as grades
        from rag_request_grades
        where request_id != ''
        group by request_id
    ),
    grades_by_trace as (
        select trace_id, groupArray((trace_id, label_id, standing, toString(grade))) as grades
        from rag_request_grades
        where request_id = ''
        group by trace_id
    ),
    gathered as (
        select
            asked.trace_id as trace_id,
            asked.request_id as request_id,
            asked.started_at as started_at,
            asked.duration_ms as duration_ms,
            asked.service_name as service_name,
            asked.run_id as run_id,
            asked.arm as arm,
            labels.label_id as label_id,
            labels.label_set as label_set,
            if(labels.population = '', labels.label_set, labels.population) as population,
            if(
                labels.split = '',
                if(sipHash64(labels.label_id) % 2 = 0, 'diagnosis', 'measurement'),
                labels.split
            ) as split,
            labels.split != '' as is_split_declared,
            labels.question as question,
            labels.answerable as answerable,
            labels.passage_count as passage_count,
            labels.has_lures as has_lures,
            matched.matched_by as matched_by,
            flows.degraded or asked.outcome in ('error', 'cancelled') as degraded,
            flows.list_span_ids as list_span_ids,
            golds.found as gold_steps,
            lists.recorded as recorded,
            lures.found as lure_steps,
            arrayConcat(grades_by_request.grades, grades_by_trace.grades) as all_grades
        from asked
        inner join rag_request_labels as matched
            on matched.trace_id = asked.trace_id and matched.request_id = asked.request_id
        inner join labels on labels.label_id = matched.label_id
        left join rag_request_flows as flows
            on flows.trace_id = asked.trace_id and flows.request_id = asked.request_id
        left join golds
            on golds.trace_id = asked.trace_id
            and golds.request_id = asked.request_id
            and golds.label_id = matched.label_id
        left join lists
            on lists.trace_id = asked.trace_id and lists.request_id = asked.request_id
        left join lures
            on lures.trace_id = asked.trace_id
            and lures.request_id = asked.request_id
            and lures.label_id = matched.label_id
        left join grades_by_request on grades_by_request.request_id = asked.request_id
        left join grades_by_trace on grades_by_trace.trace_id = asked.trace_id
    ),
    handed as (
        select
            *,
            arrayFilter(step -> has(list_span_ids, step.span), gold_steps) as golds_here,
            arrayFilter(step -> has(list_span_ids, step.span), lure_steps) as lures_here,
            arrayFilter(step -> has(list_span_ids, step.span), recorded) as lists_here,
            arraySort(
                one -> one.3,
                arrayFilter(one -> one.1 in ('', trace_id) and one.2 in ('', label_id), all_grades)
            )[1].4 as grade
        from gathered
    ),
    seen as (
        select
            *,
            arrayMap(
                passage -> (
                    arrayFilter(step -> step.passage = passage, golds_here) as here,
                    arrayMin(step -> if(step.rank = 0, 4294967295, step.rank), here),
                    arrayAll(step -> step.is_absent, here) and length(here) = length(list_span_ids)
                ),
                arrayDistinct(golds_here.passage)
            ) as passages,
            arrayFilter(step -> step.doc_rank > 0, golds_here) as documents_here,
            arrayFilter(
                step -> step.rank > 0
                and not has(arrayFirst(one -> one.span = step.span, lists_here).superseded, step.rank),
                golds_here
            ) as current_here
        from handed
    ),
    ranked as (
        select
            *,
            arrayFilter(rank -> rank < 4294967295, arrayMap(one -> one.2, passages)) as found_ranks,
            arrayCount(one -> one.2 < 4294967295 or one.3, passages) as passages_read,
            arrayCount(one -> one.3, passages) as passages_absent,
            arrayMin(step -> step.doc_rank, documents_here) as best_document_rank,
            arrayMin(step -> step.rank, current_here) as best_current_rank,
            arrayMin(step -> step.rank, arrayFilter(step -> step.rank > 0, lures_here)) as best_lure_rank,
            arrayMin(step -> step.unread, arrayFilter(step -> step.unread > 0, lures_here)) as first_unread_rank,
            arrayMin(arrayFlatten(lists_here.superseded)) as first_superseded_rank
        from seen
    )
select
    trace_id,
    request_id,
    started_at,
    duration_ms,
    service_name,
    run_id,
    arm,
    label_id,
    label_set,
    population,
    split,
    is_split_declared,
    matched_by,
    question,
    answerable,
    grade,
    degraded,
    passage_count,
    passages_read,
    passages_absent,
    nullIf(arrayMin(found_ranks), 0)::Nullable(UInt32) as gold_rank,
    nullIf(arrayMax(found_ranks), 0)::Nullable(UInt32) as last_gold_rank,
    nullIf(best_current_rank, 0)::Nullable(UInt32) as current_rank,
    nullIf(best_document_rank, 0)::Nullable(UInt32) as document_rank,
    notEmpty(documents_here)
    or (
        notEmpty(golds_here)
        and arrayAll(step -> step.is_doc_absent, golds_here)
    ) as document_is_read,
    has_lures,
    nullIf(best_lure_rank, 0)::Nullable(UInt32) as lure_rank,
    nullIf(first_unread_rank, 0)::Nullable(UInt32) as unread_rank,
    arrayExists(one -> one.tells_superseded, lists_here) as tells_superseded,
    notEmpty(lists_here) and arrayAll(one -> one.evidence in ('whole', 'truncated', 'empty'), lists_here) as top_is_read,
    notEmpty(lists_here) and arrayAll(one -> one.evidence in ('whole', 'empty'), lists_here) as list_is_whole,
    nullIf(
        arrayMin(arrayFilter(rank -> rank > 0, [best_lure_rank, first_superseded_rank])),
        0
    )::Nullable(UInt32) as stale_rank,
    if(
        empty(lists_here) or arrayExists(one -> one.count is null, lists_here),
        null,
        arraySum(one -> ifNull(one.count, 0), lists_here)
    )::Nullable(UInt32) as returned_count
from ranked
settings join_use_nulls = 0
