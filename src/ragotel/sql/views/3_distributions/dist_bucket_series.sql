-- answers: how did the share of each triage bucket go from day to day, and how far is it from its baseline?
-- grain:   one row per day × service × label set × bucket, with zeros, for days that have labelled requests
-- reads:   triage_requests
-- share is of the answerable labelled requests of the day, so that questions which the corpus does not answer thin
-- out no other bucket; not_answerable is a category of its own, of all labelled requests, and so is share_of_labelled.
-- The baseline is the mean of the daily shares of the 14 days before, deviation is the distance to it. standard_errors tells
-- whether that is more than chance: the difference of the arcsines of both shares' roots in standard errors of both
-- samples (the 14 days pooled), which holds for shares near 0 too; one stray request among 30 stays below 3.
create or replace view dist_bucket_series as
with
    tallies as (
        select
            toDate(started_at) as day,
            service_name,
            label_set,
            toString(bucket) as bucket,
            count() as requests,
            countIf(abstained) as abstained,
            argMax((trace_id, request_id), (started_at, trace_id, request_id)) as example
        from triage_requests
        group by day, service_name, label_set, bucket
    ),
    days as (
        select
            day,
            service_name,
            label_set,
            sum(requests) as labelled_requests,
            sumIf(requests, bucket != 'not_answerable') as answerable_requests,
            mapFromArrays(groupArray(bucket), groupArray((requests, abstained, example))) as by_bucket
        from tallies
        group by day, service_name, label_set
    ),
    spread as (
        select
            day,
            service_name,
            label_set,
            name as bucket,
            by_bucket[name] as entry,
            by_bucket['passed'].1 as passed_requests,
            labelled_requests,
            answerable_requests,
            if(name = 'not_answerable', labelled_requests, answerable_requests) as sample_count
        from days
        array join [
            'corpus_gap', 'retrieval_miss', 'context_problem', 'generation_error',
            'passed', 'ungraded', 'unknown', 'not_answerable'
        ] as name
    ),
    shared as (
        select
            *,
            entry.1 as requests,
            if(sample_count = 0, null, requests / sample_count)::Nullable(Float64) as share,
            if(answerable_requests = 0, null, passed_requests / answerable_requests)::Nullable(Float64) as passed_share
        from spread
    ),
    based as (
        select
            *,
            avg(share) over before as mean_before,
            avg(passed_share) over before as passed_before,
            countIf(sample_count > 0) over before as baseline_days,
            sum(sample_count) over before as baseline_sample_count,
            sum(requests) over before as baseline_requests
        from shared
        window before as (
            partition by service_name, label_set, bucket
            order by toUInt16(day)
            range between 14 preceding and 1 preceding
        )
    )
select
    day,
    service_name,
    label_set,
    bucket,
    requests,
    entry.2 as abstained,
    labelled_requests,
    answerable_requests,
    sample_count,
    share,
    100 * share as share_percent,
    requests / labelled_requests as share_of_labelled,
    baseline_days,
    baseline_sample_count,
    baseline_requests,
    if(baseline_days = 0, null, mean_before)::Nullable(Float64) as baseline_share,
    share - baseline_share as deviation,
    if(
        baseline_sample_count = 0 or sample_count = 0,
        null,
        2 * (asin(sqrt(share)) - asin(sqrt(baseline_requests / baseline_sample_count)))
        / sqrt(1 / sample_count + 1 / baseline_sample_count)
    )::Nullable(Float64) as standard_errors,
    passed_share,
    passed_share - if(baseline_days = 0, null, passed_before) as passed_deviation,
    entry.3 .1 as example_trace_id,
    entry.3 .2 as example_request_id
from based
