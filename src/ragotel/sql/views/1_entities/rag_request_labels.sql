-- answers: which label is this request judged by, and how did they meet?
-- grain:   one row per request × label
-- reads:   rag_requests, rag_labels, rag_grades, rag_complaints, rag_label_attachments
-- First that holds: the label named on the request; a grade or complaint that names both; attached by a
-- person; the same normalised question. The rule that holds for one label of a set keeps weaker ones of that
-- set away. A reference may give the request id, the trace id or both.
create or replace view rag_request_labels as
with
    labels as (
        select label_id, any(question_hash) as label_question_hash, any(label_set) as label_set
        from (
            select label_id, question_hash, label_set
            from rag_labels
            order by loaded_at desc
            limit 1 by label_id
        )
        group by label_id
    ),
    refs as (
        select trace_id, request_id, label_id, 2 as tier, 'grade' as how
        from rag_grades
        where label_id != ''
        union all
        select trace_id, request_id, label_id, 2 as tier, 'complaint' as how
        from rag_complaints
        where label_id != ''
        union all
        select trace_id, request_id, label_id, 3 as tier, 'attached' as how
        from rag_label_attachments
        where label_id != ''
    ),
    requests as (
        select trace_id, request_id, label_id, query_hash
        from rag_requests
        limit 1 by trace_id, request_id
    ),
    meetings as (
        select requests.trace_id as trace_id, requests.request_id as request_id, requests.label_id as label_id, 1 as tier, 'label_id' as how
        from requests
        where requests.label_id in (select label_id from labels)
        union all
        select requests.trace_id, requests.request_id, refs.label_id, refs.tier, refs.how
        from requests
        inner join (select * from refs where request_id != '') as refs on refs.request_id = requests.request_id
        where refs.trace_id in ('', requests.trace_id)
        union all
        select requests.trace_id, requests.request_id, refs.label_id, refs.tier, refs.how
        from requests
        inner join (select * from refs where request_id = '' and trace_id != '') as refs
            on refs.trace_id = requests.trace_id
        union all
        select requests.trace_id, requests.request_id, labels.label_id, 4 as tier, 'question' as how
        from requests
        inner join labels on labels.label_question_hash = requests.query_hash
        where requests.query_hash != 0
    )
select
    trace_id,
    request_id,
    label_id,
    argMin(how, (tier, how != 'grade')) as matched_by
from (
    select
        meetings.trace_id as trace_id,
        meetings.request_id as request_id,
        meetings.label_id as label_id,
        meetings.tier as tier,
        meetings.how as how,
        min(meetings.tier) over (
            partition by meetings.trace_id, meetings.request_id, labels.label_set
        ) as best_tier
    from meetings
    inner join labels on labels.label_id = meetings.label_id
)
where tier = best_tier
group by trace_id, request_id, label_id
