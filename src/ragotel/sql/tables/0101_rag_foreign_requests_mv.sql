-- answers: what was asked and answered in a service that another instrumentation traces?
-- grain:   fills rag_requests at insert, one row per span that is a request
-- reads:   rag_foreign_read
-- Where the span itself does not say what was asked, the first search of the same batch does, else the last
-- message of the user; the answer is the last generation's then.
create materialized view if not exists rag_foreign_requests_mv to rag_requests as
select
    trace_id,
    request_id,
    span_id,
    if(session_id = '', any_session, session_id) as session_id,
    if(user_id = '', any_user, user_id) as user_id,
    '' as tenant,
    '' as principal,
    '' as tags,
    started_at,
    duration / 1e6 as duration_ms,
    service_name,
    multiIf(
        stage != 'generate' and question != '', question,
        searched != '', searched,
        question != '', question,
        last_said
    ) as query,
    rag_normalise(query) as query_norm,
    if(trimBoth(query_norm) = '', 0, sipHash64(trimBoth(query_norm))) as query_hash,
    if(answer = '', last_answer, answer) as answer,
    rag_normalise(answer) as answer_norm,
    transform(status_code, ['Error', 'Ok'], ['error', 'ok'], '') as outcome,
    multiIf(query = '' and answer = '', '', 'full') as content_mode,
    '' as run_id,
    '' as arm,
    '' as label_id,
    convention,
    toUInt32(0) as capture_errors
from (
    select
        trace_id,
        request_id,
        span_id,
        session_id,
        user_id,
        started_at,
        duration,
        service_name,
        question,
        status_code,
        convention,
        stage,
        is_request,
        rag_foreign_read.answer as answer,
        argMinIf(question, started_at, stage in ('retrieve', 'rerank') and question != '') over whole as searched,
        argMaxIf(question, started_at, stage = 'generate' and question != '') over whole as last_said,
        argMaxIf(rag_foreign_read.answer, started_at, stage = 'generate' and rag_foreign_read.answer != '') over whole as last_answer,
        argMinIf(session_id, started_at, session_id != '') over whole as any_session,
        argMinIf(user_id, started_at, user_id != '') over whole as any_user
    from rag_foreign_read
    window whole as (partition by trace_id, request_id)
)
where is_request
