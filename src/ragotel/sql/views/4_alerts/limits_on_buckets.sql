-- answers: which limits does the share of each triage bucket break, day by day?
-- grain:   one row per day × service × label set × bucket; broken is empty where all is within limits
-- reads:   dist_bucket_series, rag_limits_in_force
-- The one reading of the verdicts that the alerts on buckets share. A deviation counts only upwards (downwards for
-- passed), from 30 requests on, against at least three days and 30 requests before, and where it is more than
-- chance: standard_errors above 3, which a small sample does not reach by one or two stray requests.
create or replace view limits_on_buckets as
with
    limited as (
        select
            series.day as day,
            series.service_name as service_name,
            series.label_set as label_set,
            series.bucket as bucket,
            series.requests as requests,
            series.labelled_requests as labelled_requests,
            series.sample_count as sample_count,
            series.share as share,
            series.baseline_days as baseline_days,
            series.baseline_sample_count as baseline_sample_count,
            series.baseline_share as baseline_share,
            series.deviation as deviation,
            series.standard_errors as standard_errors,
            series.passed_share as passed_share,
            series.passed_deviation as passed_deviation,
            series.example_trace_id as example_trace_id,
            series.example_request_id as example_request_id,
            if(own.limit_name != '', own.max_share, general.max_share) as max_share,
            if(own.limit_name != '', own.max_deviation, general.max_deviation) as max_deviation,
            if(own.limit_name != '', own.min_sample, general.min_sample) as min_sample
        from dist_bucket_series as series
        left join (
            select *
            from rag_limits_in_force
            where service_name != ''
        ) as own on own.limit_name = series.bucket and own.service_name = series.service_name
        left join (
            select *
            from rag_limits_in_force
            where service_name = ''
        ) as general on general.limit_name = series.bucket
    ),
    judged as (
        select
            *,
            ifNull(sample_count >= min_sample and share > max_share, false) as is_over,
            if(bucket = 'passed', -1, 1) as direction,
            ifNull(
                sample_count >= greatest(min_sample, 30)
                and baseline_days >= 3
                and baseline_sample_count >= 30
                and direction * deviation > max_deviation
                and direction * standard_errors > 3,
                false
            ) as is_deviant,
            concat(
                toString(round(100 * share, 1)),
                ' % of ',
                toString(sample_count),
                if(bucket = 'not_answerable', ' labelled', ' answerable labelled'),
                if(sample_count = 1, ' request', ' requests')
            ) as measured
        from limited
    )
select
    * except (is_over, direction, is_deviant, measured),
    arrayConcat(
        if(
            is_over,
            [
                (
                    if(bucket = 'corpus_gap', 'corpus_gap', 'bucket_limits'),
                    assumeNotNull(share),
                    assumeNotNull(max_share),
                    concat(
                        bucket,
                        ' is ',
                        measured,
                        ', the limit is ',
                        toString(round(100 * max_share, 1)),
                        ' %',
                        if(
                            bucket != 'corpus_gap',
                            '.',
                            concat(
                                ': an ingest incident, whatever the pass rate did (',
                                toString(round(100 * passed_share, 1)),
                                ' %',
                                if(passed_deviation is null, '', concat(', before ', toString(round(100 * (passed_share - passed_deviation), 1)), ' %')),
                                ').'
                            )
                        )
                    )
                )
            ],
            []
        ),
        if(
            is_deviant,
            [
                (
                    'bucket_deviation',
                    assumeNotNull(share),
                    assumeNotNull(baseline_share + direction * max_deviation),
                    concat(
                        bucket,
                        ' is ',
                        measured,
                        ', the mean of the ',
                        toString(baseline_days),
                        ' days before was ',
                        toString(round(100 * baseline_share, 1)),
                        ' %: ',
                        toString(round(abs(standard_errors), 1)),
                        ' standard errors away.'
                    )
                )
            ],
            []
        )
    ) as broken
from judged
settings join_use_nulls = 0
