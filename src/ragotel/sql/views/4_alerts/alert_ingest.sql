-- answers: which ingest runs listed less, read less, parsed more to nothing or deleted more than their limits allow?
-- grain:   one row per ingest run × counter that breaks its limit
-- reads:   dist_ingest_runs, rag_limits_in_force
-- observed and allowed are shares of the run before, or of what was listed (docs_empty), or counts (chunks_deleted).
create or replace view alert_ingest as
with
    measured as (
        select
            toString(service_name) as service_name,
            started_at,
            trace_id,
            toString(index_name) as index_name,
            toString(index_version) as index_version,
            flags,
            counter.1 as subject,
            counter.2 as value,
            counter.3 as usual,
            counter.4 as counted,
            counter.5 as says
        from dist_ingest_runs
        array join cast(
            [
                (
                    'docs_listed_drop', docs_listed_drop, null, ifNull(previous_docs_listed, 0),
                    concat('listed ', ifNull(toString(docs_listed), '?'), ' documents, the run before ', ifNull(toString(previous_docs_listed), '?'))
                ),
                (
                    'mean_chars_drop', mean_chars_drop, null, ifNull(docs_parsed, ifNull(docs_listed, 0)),
                    concat('has ', ifNull(toString(round(mean_chars_per_doc)), '?'), ' characters per document, the run before ', ifNull(toString(round(previous_mean_chars_per_doc)), '?'))
                ),
                (
                    'docs_empty', if(docs_empty > ifNull(previous_docs_empty, 0), docs_empty_share, null), null, ifNull(docs_listed, 0),
                    concat('parsed ', ifNull(toString(docs_empty), '?'), ' of ', ifNull(toString(docs_listed), '?'), ' documents to nothing, the run before ', ifNull(toString(previous_docs_empty), '?'))
                ),
                (
                    'chunks_deleted', toFloat64(chunks_deleted), usual_chunks_deleted, ifNull(chunks_deleted, 0),
                    concat('deleted ', ifNull(toString(chunks_deleted), '?'), ' chunks, usual are ', ifNull(toString(usual_chunks_deleted), '?'))
                )
            ],
            'Array(Tuple(String, Nullable(Float64), Nullable(Float64), UInt64, String))'
        ) as counter
    ),
    limited as (
        select
            measured.service_name as service_name,
            measured.started_at as started_at,
            measured.trace_id as trace_id,
            measured.index_name as index_name,
            measured.index_version as index_version,
            measured.flags as flags,
            measured.subject as subject,
            measured.value as value,
            measured.usual as usual,
            measured.counted as counted,
            measured.says as says,
            if(own.limit_name != '', own.max_share, general.max_share) as max_share,
            if(own.limit_name != '', own.max_deviation, general.max_deviation) as max_deviation,
            if(own.limit_name != '', own.min_sample, general.min_sample) as min_sample
        from measured
        left join (
            select *
            from rag_limits_in_force
            where service_name != ''
        ) as own on own.limit_name = measured.subject and own.service_name = measured.service_name
        left join (
            select *
            from rag_limits_in_force
            where service_name = ''
        ) as general on general.limit_name = measured.subject
    )
select
    'ingest' as name,
    limited.service_name::String as service_name,
    '' as label_set,
    limited.subject::String as subject,
    started_at as window_at,
    assumeNotNull(value) as observed,
    assumeNotNull(if(subject = 'chunks_deleted', usual * max_deviation, max_share)) as allowed,
    counted as sample_count,
    trace_id as example_trace_id,
    '' as example_request_id,
    concat(
        'The run that wrote ', index_name, ' ', index_version, ' ', says,
        if(has(flags, 'docs_listed_short') and has(flags, 'chunks_deleted_spike'), ': what a truncated crawl does not list, reconciliation deletes.', '.')
    ) as message
from limited
where
    counted >= min_sample
    and value is not null
    and value > if(subject = 'chunks_deleted', usual * max_deviation, max_share)
settings join_use_nulls = 0
