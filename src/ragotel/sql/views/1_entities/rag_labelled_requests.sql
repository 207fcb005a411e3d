-- answers: which requests may a label be about?
-- grain:   one row per request that names a label, is named beside one, or asks a labelled question
-- reads:   rag_requests, rag_labels, rag_grades, rag_complaints, rag_label_attachments
-- A cheap filter for the views that read stages and prompts; which label meets which request, and whether one
-- does, is said by the view of the meetings that stands on this one. Beside ragotel's own record of a trace what
-- another instrumentation says is asked no more.
create or replace view rag_labelled_requests as
select distinct trace_id, request_id, label_id, query_hash
from rag_requests
where
    not rag_is_canary(service_name)
    and (
        convention = 'ragotel'
        or trace_id not in (
            select trace_id
            from rag_requests
            where
                convention = 'ragotel'
                and trace_id in (select trace_id from rag_requests where convention != 'ragotel')
        )
    )
    and (
        (label_id != '' and label_id in (select label_id from rag_labels))
        or (query_hash != 0 and query_hash in (select question_hash from rag_labels))
        or request_id in (select request_id from rag_grades where label_id != '' and request_id != '')
        or request_id in (select request_id from rag_complaints where label_id != '' and request_id != '')
        or request_id in (select request_id from rag_label_attachments where label_id != '' and request_id != '')
        or trace_id in (select trace_id from rag_grades where label_id != '' and request_id = '')
        or trace_id in (select trace_id from rag_complaints where label_id != '' and request_id = '')
        or trace_id in (select trace_id from rag_label_attachments where label_id != '' and request_id = '')
    )
