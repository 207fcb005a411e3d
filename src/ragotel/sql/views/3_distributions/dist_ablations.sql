-- answers: how many wrong answers come right once the passages beside the gold one are gone?
-- grain:   one row per day × service × label set × index version × template version
-- reads:   triage_requests, rag_request_ablations
-- cases: gold-only runs of requests whose claim stood in the prompt and whose full context has a result: the newest
-- full run, else the request's grade. distraction_delta = (gold_only_correct - full_context_correct) / cases.
create or replace view dist_ablations as
with
    runs as (
        select
            trace_id,
            request_id,
            label_id,
            argMaxIf(correct, ablated_at, mode = 'gold_only') as gold_only,
            countIf(mode = 'full') > 0 as has_full_run,
            argMaxIf(correct, ablated_at, mode = 'full') as full_run
        from rag_request_ablations
        where mode in ('gold_only', 'full')
        group by trace_id, request_id, label_id
        having countIf(mode = 'gold_only') > 0
    ),
    judged as (
        select
            toDate(requests.started_at) as day,
            requests.service_name as service_name,
            requests.label_set as label_set,
            requests.index_name as index_name,
            requests.index_version as index_version,
            requests.template_name as template_name,
            requests.template_version as template_version,
            runs.gold_only as gold_only,
            runs.has_full_run as has_full_run,
            if(runs.has_full_run, runs.full_run, ifNull(requests.grade, '') = 'correct') as full_context
        from triage_requests as requests
        inner join runs
            on runs.trace_id = requests.trace_id
            and runs.request_id = requests.request_id
            and runs.label_id = requests.label_id
        where
            requests.bucket in ('generation_error', 'passed', 'ungraded')
            and (runs.has_full_run or requests.grade is not null)
    )
select
    day,
    service_name,
    label_set,
    index_name,
    index_version,
    template_name,
    template_version,
    count() as cases,
    countIf(gold_only) as gold_only_correct,
    countIf(full_context) as full_context_correct,
    countIf(gold_only and not full_context) as distraction,
    countIf(not gold_only and not full_context) as misuse,
    countIf(not gold_only and full_context) as right_in_full_context_only,
    countIf(has_full_run) as full_runs,
    gold_only_correct / cases as gold_only_accuracy,
    full_context_correct / cases as full_context_accuracy,
    (toInt64(gold_only_correct) - toInt64(full_context_correct)) / cases as distraction_delta
from judged
group by
    day,
    service_name,
    label_set,
    index_name,
    index_version,
    template_name,
    template_version
settings join_use_nulls = 0
