-- answers: at which stage were the answers lost, population by population, and how near were they?
-- grain:   one row per day × service × run × arm × label set × population × split × cutoff × outcome × loss stage
-- reads:   triage_verdicts, rag_request_decisions
-- cutoff 0 is each request's own k, and what came after it; another cutoff asks the final ranked list alone. Take
-- one cutoff, never their sum. Of several passages the one lost first counts. The shapes of the misses (near_misses:
-- rank above the cutoff, up to twice it; the right document by another chunk; nothing of it) leave out what was
-- not recorded. A miss that a person holds to be the label's fault is an outcome of its own.
create or replace view triage_losses as
with
    passages as (
        select
            trace_id,
            request_id,
            label_id,
            started_at,
            service_name,
            run_id,
            arm,
            label_set,
            population,
            split,
            bucket,
            loss_stage,
            top_k,
            gold_rank,
            in_index,
            in_ranked_list,
            document_rank,
            is_document_absent,
            beyond_rerank_window,
            journey
        from triage_verdicts
        where bucket != 'not_answerable'
    ),
    -- A step of its own: arrayJoin() would multiply all that the verdicts are made from.
    spread as (
        select *, cutoff
        from passages
        array join [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 50, 100]::Array(UInt32) as cutoff
    ),
    placed as (
        select
            *,
            if(cutoff = 0, ifNull(top_k, 4294967295), cutoff) as k,
            arrayLastIndex(mark -> mark.rank <= k, journey.trail) as last_within
        from spread
    ),
    moved as (
        select
            *,
            multiIf(
                notEmpty(journey.trail) and last_within = 0, 'retrieve',
                last_within < length(journey.trail), journey.trail[last_within + 1].stage,
                gold_rank is null and journey.has_next, journey.next_stage,
                ''
            ) as mover
        from placed
    ),
    named as (
        select
            *,
            rag_moved_past(mover, journey.is_fused) as moved_past
        from moved
    ),
    lost as (
        select
            *,
            multiIf(
                cutoff = 0, loss_stage,
                in_index = false, 'not_indexed',
                gold_rank is not null, if(gold_rank <= k, 'none', moved_past),
                in_ranked_list = true, 'unknown',
                journey.is_in_no_leg, 'not_retrieved_by_any_leg',
                journey.is_gone_next and journey.next_stage = 'fuse', 'fusion_limit',
                notEmpty(journey.trail) and journey.trail[-1].rank > k, moved_past,
                not journey.is_gone_next, 'unknown',
                journey.is_filtered_next, 'filtered',
                moved_past
            ) as lost_at,
            multiIf(
                gold_rank > k and gold_rank <= 2 * k, 'near',
                gold_rank is not null, 'far',
                document_rank <= 2 * k, 'document',
                is_document_absent or document_rank is not null, 'nothing',
                ''
            ) as shape
        from named
    ),
    per_request as (
        select
            trace_id,
            request_id,
            label_id,
            cutoff,
            argMin(
                tuple(
                    started_at,
                    service_name,
                    run_id,
                    arm,
                    label_set,
                    population,
                    split,
                    lost_at,
                    shape,
                    beyond_rerank_window
                ),
                indexOf(
                    ['not_indexed', 'not_retrieved_by_any_leg', 'retrieved_beyond_cutoff', 'fusion_limit', 'fused_beyond_cutoff', 'filtered', 'rerank_demoted', 'blend_demoted', 'assemble', 'unknown', 'none'],
                    lost_at
                )
            ) as deciding
        from lost
        group by trace_id, request_id, label_id, cutoff
    ),
    decided as (
        select
            per_request.trace_id as trace_id,
            toDate(per_request.deciding.1) as day,
            per_request.deciding.2 as service_name,
            per_request.deciding.3 as run_id,
            per_request.deciding.4 as arm,
            per_request.deciding.5 as label_set,
            per_request.deciding.6 as population,
            per_request.deciding.7 as split,
            per_request.cutoff as cutoff,
            per_request.deciding.8 as loss_stage,
            per_request.deciding.9 as shape,
            per_request.deciding.10 as beyond_rerank_window,
            multiIf(
                loss_stage = 'none', 'hit',
                decisions.defect not in ('', 'none'), 'evaluation_defect',
                loss_stage = 'unknown', 'unknown',
                'miss'
            ) as outcome,
            if(outcome = 'evaluation_defect', decisions.defect, '') as defect
        from per_request
        left join rag_request_decisions as decisions
            on decisions.trace_id = per_request.trace_id
            and decisions.request_id = per_request.request_id
            and decisions.label_id = per_request.label_id
    )
select
    day,
    service_name,
    run_id,
    arm,
    label_set,
    population,
    split,
    cutoff,
    outcome,
    defect,
    loss_stage,
    count() as requests,
    countIf(loss_stage not in ('none', 'unknown') and shape = 'near') as near_misses,
    countIf(loss_stage not in ('none', 'unknown') and shape = 'document') as right_document_other_chunk,
    countIf(loss_stage not in ('none', 'unknown') and shape = 'nothing') as nothing_of_the_document,
    countIf(beyond_rerank_window = true) as beyond_rerank_window,
    min(trace_id) as example_trace_id,
    sum(count()) over group_of_all as labelled_requests,
    sum(countIf(outcome = 'miss')) over group_of_all as misses,
    if(outcome = 'miss', requests / misses, null)::Nullable(Float64) as share_of_misses
from decided
group by day, service_name, run_id, arm, label_set, population, split, cutoff, outcome, defect, loss_stage
window group_of_all as (partition by day, service_name, run_id, arm, label_set, population, split, cutoff)
settings join_use_nulls = 0
