-- answers: was the answer to this request right, as this label asks?
-- grain:   one row per request × label that has a grade
-- reads:   rag_request_labels, rag_request_grades
-- A grade that names no label counts for each label of its request.
create or replace view rag_label_grades as
with
    given as (
        select
            matched.trace_id as trace_id,
            matched.request_id as request_id,
            matched.label_id as label_id,
            grades.grade as grade,
            grades.source as source,
            grades.standing as standing
        from rag_request_labels as matched
        inner join rag_request_grades as grades on grades.request_id = matched.request_id
        where
            grades.request_id != ''
            and grades.trace_id in ('', matched.trace_id)
            and grades.label_id in ('', matched.label_id)
        union all
        select
            matched.trace_id as trace_id,
            matched.request_id as request_id,
            matched.label_id as label_id,
            grades.grade as grade,
            grades.source as source,
            grades.standing as standing
        from rag_request_labels as matched
        inner join rag_request_grades as grades on grades.trace_id = matched.trace_id
        where grades.request_id = '' and grades.label_id in ('', matched.label_id)
    )
select
    trace_id,
    request_id,
    label_id,
    argMin(grade, standing) as grade,
    argMin(source, standing) as grade_source
from given
group by trace_id, request_id, label_id
settings join_use_nulls = 0
