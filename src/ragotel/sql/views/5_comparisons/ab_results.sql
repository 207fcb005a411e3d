-- answers: how do two arms compare, population by population?
-- grain:   one row per pair of arms × label set × population × split (all beside each half) × measure × given × k
-- reads:   ab_pairs
-- Rates are over questions asked in both arms, each arm with its own denominator; gained and lost are over those
-- measured in both. p_value is the exact two-sided sign test, low and high Wilson's interval at 95 %.
-- Populations are never pooled here; no row says which arm is better.
create or replace view ab_results as
with
    scoped as (
        select
            *,
            split as half,
            scope,
            outcome not in ('only_a', 'only_b') as is_paired
        from ab_pairs
        array join arrayDistinct(['all', toString(split)]) as scope
    ),
    counted as (
        select
            kind,
            arm_a,
            arm_b,
            label_set,
            population,
            scope as split,
            measure,
            given,
            k,
            countIf(is_paired) as questions,
            countIf(outcome = 'only_a') as only_a,
            countIf(outcome = 'only_b') as only_b,
            countIf(outcome = 'unmeasured') as unmeasured,
            countIf(outcome = 'gained') as gained,
            countIf(outcome = 'lost') as lost,
            countIf(outcome = 'both') as both,
            countIf(outcome = 'neither') as neither,
            countIf(is_paired and value_a = 1) as numerator_a,
            countIf(is_paired and value_a is not null) as denominator_a,
            countIf(is_paired and value_b = 1) as numerator_b,
            countIf(is_paired and value_b is not null) as denominator_b,
            maxIf(repeats_a, is_paired) as most_repeats_a,
            maxIf(repeats_b, is_paired) as most_repeats_b,
            countIf(is_paired and flips_a > 0) as flipped_a,
            countIf(is_paired and flips_b > 0) as flipped_b,
            quantileExactInclusiveArrayIf(0.5)(durations_ms_a, is_paired) as p50_a,
            quantileExactInclusiveArrayIf(0.5)(durations_ms_b, is_paired) as p50_b,
            quantileExactInclusiveArrayIf(0.95)(durations_ms_a, is_paired) as p95_a,
            quantileExactInclusiveArrayIf(0.95)(durations_ms_b, is_paired) as p95_b,
            countIf(is_paired and half = 'diagnosis' and is_split_declared) as diagnosis_questions,
            arraySort(groupArrayIf(label_id, outcome = 'gained')) as gained_labels,
            arraySort(groupArrayIf(label_id, outcome = 'lost')) as lost_labels,
            arraySort(groupArrayIf(label_id, outcome = 'only_a')) as only_a_labels,
            arraySort(groupArrayIf(label_id, outcome = 'only_b')) as only_b_labels,
            arraySort(groupUniqArrayArrayIf(degraded_requests_a, is_paired)) as degraded_requests_a,
            arraySort(groupUniqArrayArrayIf(degraded_requests_b, is_paired)) as degraded_requests_b
        from scoped
        group by kind, arm_a, arm_b, label_set, population, scope, measure, given, k
    )
select
    kind,
    arm_a,
    arm_b,
    label_set,
    population,
    split,
    measure,
    given,
    k,
    questions,
    only_a,
    only_b,
    unmeasured,
    gained,
    lost,
    both,
    neither,
    rag_sign_test(gained, lost) as p_value,
    numerator_a,
    denominator_a,
    if(denominator_a = 0, null, numerator_a / denominator_a) as rate_a,
    rag_wilson(numerator_a, denominator_a).1 as low_a,
    rag_wilson(numerator_a, denominator_a).2 as high_a,
    if(denominator_a = 0, null, 1 / denominator_a) as one_question_a,
    numerator_b,
    denominator_b,
    if(denominator_b = 0, null, numerator_b / denominator_b) as rate_b,
    rag_wilson(numerator_b, denominator_b).1 as low_b,
    rag_wilson(numerator_b, denominator_b).2 as high_b,
    if(denominator_b = 0, null, 1 / denominator_b) as one_question_b,
    rate_b - rate_a as difference,
    most_repeats_a,
    most_repeats_b,
    flipped_a,
    flipped_b,
    if(questions = 0, null, p50_a) as p50_ms_a,
    if(questions = 0, null, p95_a) as p95_ms_a,
    if(questions = 0, null, p50_b) as p50_ms_b,
    if(questions = 0, null, p95_b) as p95_ms_b,
    diagnosis_questions,
    gained_labels,
    lost_labels,
    only_a_labels,
    only_b_labels,
    degraded_requests_a,
    degraded_requests_b
from counted
