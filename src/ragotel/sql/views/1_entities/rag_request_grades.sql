-- answers: was the answer to this request right?
-- grain:   one row per request reference × label; label '' is a grade that names no label
-- reads:   rag_grades, rag_complaints
-- Precedence: human, exact, judge, then the newest. A grade given with a complaint is a person's.
create or replace view rag_request_grades as
select
    trace_id,
    request_id,
    label_id,
    argMin(grade, (precedence, -toUnixTimestamp64Micro(graded_at))) as grade,
    argMin(source, (precedence, -toUnixTimestamp64Micro(graded_at))) as source,
    min((precedence, -toUnixTimestamp64Micro(graded_at))) as standing
from (
    select
        trace_id,
        request_id,
        label_id,
        grade,
        source,
        graded_at,
        multiIf(source = 'human', 1, source = 'exact', 2, source = 'judge', 3, 4) as precedence
    from rag_grades
    union all
    select trace_id, request_id, label_id, grade, 'human', complained_at, 1
    from rag_complaints
    where grade != ''
)
group by trace_id, request_id, label_id
