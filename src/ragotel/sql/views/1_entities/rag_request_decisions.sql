-- answers: what did a person decide about a miss: is the label at fault, and how?
-- grain:   one row per request × label that has a decision
-- reads:   rag_request_labels, rag_label_decisions
-- A decision about this request comes before one about the label on every request; then the newest.
create or replace view rag_request_decisions as
select
    matched.trace_id as trace_id,
    matched.request_id as request_id,
    matched.label_id as label_id,
    argMax(decisions.defect, (decisions.request_id != '' or decisions.trace_id != '', decisions.decided_at)) as defect,
    argMax(decisions.note, (decisions.request_id != '' or decisions.trace_id != '', decisions.decided_at)) as note,
    argMax(decisions.decided_by, (decisions.request_id != '' or decisions.trace_id != '', decisions.decided_at)) as decided_by
from rag_request_labels as matched
inner join rag_label_decisions as decisions on decisions.label_id = matched.label_id
where
    decisions.trace_id in ('', matched.trace_id)
    and decisions.request_id in ('', matched.request_id)
group by trace_id, request_id, label_id
settings join_use_nulls = 0
