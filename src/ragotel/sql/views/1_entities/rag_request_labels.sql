-- answers: which label is this request judged by, and how did they meet?
-- grain:   one row per request × label
-- reads:   rag_labelled_requests, rag_labels, rag_grades, rag_complaints, rag_label_attachments
-- First that holds: the label named on the request; a grade or complaint that names both; attached by a
-- person; the same normalised question, unless a label of that set is named. A reference may give the request id, the trace id or both.
create or replace view rag_request_labels as
with
    labels as (
        select label_id, label_set, question_hash
        from rag_labels
        order by loaded_at desc
        limit 1 by label_id
    ),
    refs as (
        select trace_id, request_id, label_id, 2 as tier, 'grade' as how
        from rag_grades
        where label_id != ''
        union all
        select trace_id, request_id, label_id, 3 as tier, 'complaint' as how
        from rag_complaints
        where label_id != ''
        union all
        select trace_id, request_id, label_id, 4 as tier, 'attached' as how
        from rag_label_attachments
        where label_id != ''
    ),
    by_request as (
        select request_id, groupUniqArray((trace_id, label_id, toUInt8(tier), how)) as options
        from refs
        where request_id != ''
        group by request_id
    ),
    by_trace as (
        select trace_id, groupUniqArray((trace_id, label_id, toUInt8(tier), how)) as options
        from refs
        where request_id = ''
        group by trace_id
    ),
    by_question as (
        select question_hash, groupUniqArray(('', label_id, toUInt8(5), 'question')) as options
        from labels
        group by question_hash
    ),
    met as (
        select
            requests.trace_id as trace_id,
            requests.request_id as request_id,
            arrayJoin(
                arrayConcat(
                    if(requests.label_id = '', [], [('', requests.label_id, toUInt8(1), 'label_id')]),
                    arrayFilter(option -> option.1 in ('', requests.trace_id), by_request.options),
                    by_trace.options,
                    if(requests.query_hash = 0, [], by_question.options)
                )
            ) as option
        from rag_labelled_requests as requests
        left join by_request on by_request.request_id = requests.request_id
        left join by_trace on by_trace.trace_id = requests.trace_id
        left join by_question on by_question.question_hash = requests.query_hash
    ),
    gathered as (
        select
            met.trace_id as trace_id,
            met.request_id as request_id,
            groupUniqArray((met.option.2, met.option.3, met.option.4, labels.label_set)) as options
        from met
        inner join labels on labels.label_id = met.option.2
        group by trace_id, request_id
    )
select
    trace_id,
    request_id,
    meeting.1 as label_id,
    meeting.4 as label_set,
    meeting.3 as matched_by
from gathered
array join arrayFilter(
    option -> not arrayExists(
        other -> other.4 = option.4
        and (
            (option.2 = 5 and other.2 < 5)
            or (other.1 = option.1 and other.2 < option.2)
        ),
        options
    ),
    options
) as meeting
settings join_use_nulls = 0
