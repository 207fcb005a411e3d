-- answers: how many answers could be right at most, given what was found and sent, and how many were?
-- grain:   one row per day × service × run × arm × label set × index version
-- reads:   rag_gold_places, rag_label_grades
-- ceiling_candidates: share of requests whose legs together held all gold; ceiling_prompt: whose prompt was sent all
-- of it (by the sent list, else by the final rank within k_prompt). passes_ceiling: of the requests that are graded
-- and could be read more were right than had their gold; those come from the model's memory, or a label is wrong.
create or replace view dist_ceilings as
with
    per_request as (
        select
            trace_id,
            request_id,
            label_id,
            any(started_at) as started_at,
            any(service_name) as service_name,
            any(run_id) as run_id,
            any(arm) as arm,
            any(label_set) as label_set,
            any(index_version) as index_version,
            avg(candidate_rank is not null) as candidate_share,
            min(candidate_rank is not null) as is_found,
            max(candidate_rank is null and not is_candidate_absent) as is_finding_unknown,
            max(is_candidate_absent) as is_unfound,
            avg(ifNull(is_sent, false)) as sent_share,
            min(ifNull(is_sent, false)) as is_complete,
            max(is_sent is null) as is_sending_unknown,
            max(is_sent = false) as is_incomplete
        from rag_gold_places
        group by trace_id, request_id, label_id
    ),
    judged as (
        select
            per_request.*,
            is_found or is_unfound as is_finding_decided,
            is_complete or is_incomplete as is_sending_decided,
            grades.grade != '' as is_graded,
            grades.grade = 'correct' as is_right
        from per_request
        left join rag_label_grades as grades
            on grades.trace_id = per_request.trace_id
            and grades.request_id = per_request.request_id
            and grades.label_id = per_request.label_id
    ),
    counted as (
        select
            toDate(started_at) as day,
            service_name,
            run_id,
            arm,
            label_set,
            index_version,
            count() as requests,
            countIf(is_finding_decided) as candidates_measured,
            countIf(is_found) as in_candidates,
            countIf(is_sending_decided) as prompts_measured,
            countIf(is_complete) as in_prompt,
            avgOrNullIf(candidate_share, not is_finding_unknown) as recall_candidates,
            avgOrNullIf(sent_share, not is_sending_unknown) as recall_prompt,
            countIf(is_graded) as graded,
            countIf(is_right) as correct,
            countIf(is_graded and is_sending_decided) as compared,
            countIf(is_right and is_sending_decided) as compared_correct,
            countIf(is_graded and is_complete) as compared_in_prompt,
            countIf(is_right and is_incomplete) as right_without_gold,
            minIf(trace_id, is_right and is_incomplete) as example_trace_id
        from judged
        group by day, service_name, run_id, arm, label_set, index_version
    )
select
    *,
    if(candidates_measured = 0, null, in_candidates / candidates_measured) as ceiling_candidates,
    if(prompts_measured = 0, null, in_prompt / prompts_measured) as ceiling_prompt,
    if(graded = 0, null, correct / graded) as accuracy,
    toBool(compared_correct > compared_in_prompt) as passes_ceiling
from counted
settings join_use_nulls = 0
