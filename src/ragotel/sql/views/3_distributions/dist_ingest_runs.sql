-- answers: what did each ingest run list, parse, write and delete, beside the run before it?
-- grain:   one row per ingest run
-- reads:   rag_ingest_runs
-- The run before is the last one of the same index that ended well. Shares are 0 to 1: docs_listed_drop and
-- mean_chars_drop of what the run before had, docs_empty_share of what this run listed; usual_chunks_deleted is the
-- median of the seven runs before. Read the flags as a set: each counter is blind to what the others see.
create or replace view dist_ingest_runs as
with compared as (
    select
        trace_id,
        span_id,
        started_at,
        duration_ms,
        service_name,
        index_name,
        index_version,
        parent_version,
        chunker,
        outcome,
        docs_listed,
        docs_parsed,
        docs_empty,
        mean_chars_per_doc,
        chunks_written,
        chunks_deleted,
        outcome in ('ok', '') as is_well,
        anyLastIf(
            tuple(
                trace_id,
                started_at,
                toString(index_version),
                docs_listed,
                docs_parsed,
                docs_empty,
                mean_chars_per_doc,
                chunks_written,
                chunks_deleted
            ),
            is_well
        ) over earlier as before,
        quantileExactIf(0.5)(chunks_deleted, is_well) over seven_before as usual_deleted
    from (
        select *
        from rag_ingest_runs final
    )
    window
        earlier as (partition by index_name order by started_at, span_id rows between unbounded preceding and 1 preceding),
        seven_before as (partition by index_name order by started_at, span_id rows between 7 preceding and 1 preceding)
)
select
    trace_id,
    span_id,
    started_at,
    duration_ms,
    service_name,
    index_name,
    index_version,
    parent_version,
    chunker,
    outcome,
    docs_listed,
    docs_parsed,
    docs_empty,
    mean_chars_per_doc,
    chunks_written,
    chunks_deleted,
    before.1 as previous_trace_id,
    if(previous_trace_id = '', null, before.2) as previous_started_at,
    before.3 as previous_version,
    before.4 as previous_docs_listed,
    before.5 as previous_docs_parsed,
    before.6 as previous_docs_empty,
    before.7 as previous_mean_chars_per_doc,
    before.8 as previous_chunks_written,
    before.9 as previous_chunks_deleted,
    if(isNaN(usual_deleted), null, usual_deleted)::Nullable(Float64) as usual_chunks_deleted,
    toInt64(docs_listed) - toInt64(previous_docs_listed) as docs_listed_delta,
    toInt64(docs_empty) - toInt64(previous_docs_empty) as docs_empty_delta,
    mean_chars_per_doc - previous_mean_chars_per_doc as mean_chars_delta,
    toInt64(chunks_written) - toInt64(previous_chunks_written) as chunks_written_delta,
    toInt64(chunks_deleted) - toInt64(previous_chunks_deleted) as chunks_deleted_delta,
    if(previous_docs_listed > 0, greatest(0., 1 - docs_listed / previous_docs_listed), null)::Nullable(Float64) as docs_listed_drop,
    if(previous_mean_chars_per_doc > 0, greatest(0., 1 - mean_chars_per_doc / previous_mean_chars_per_doc), null)::Nullable(Float64) as mean_chars_drop,
    if(docs_listed > 0, docs_empty / docs_listed, null)::Nullable(Float64) as docs_empty_share,
    arrayConcat(
        if(docs_listed_drop > 0.05, ['docs_listed_short'], []),
        if(mean_chars_drop > 0.1, ['mean_chars_low'], []),
        if(docs_empty > ifNull(previous_docs_empty, 0), ['docs_empty_up'], []),
        if(chunks_deleted >= 20 and chunks_deleted > 3 * usual_chunks_deleted, ['chunks_deleted_spike'], []),
        if(is_well, [], ['failed'])
    ) as flags
from compared
