-- answers: which spans did other instrumentations write?
-- grain:   fills rag_foreign_in at insert, one row per span by a convention that is read
-- reads:   otel_traces
-- A span of ours has rag.stage and is not read here. A request is a span without parent, or whose parent is a
-- server's or a root span of the same batch that no convention wrote: the chains among them, else the last
-- generation. Its request id is '' as that of all stages of its trace, since a batch does not hold the whole
-- trace; several requests of one trace are named by their span until their stages are told apart, so that
-- nothing is mixed.
-- What an event's time tells of the first token goes on as an attribute, ragotel.first_event_ms.
create materialized view if not exists rag_foreign_mv to rag_foreign_in as
select
    trace_id,
    if(is_request and chain_count > 1, span_id, '') as request_id,
    is_top and if(chain_count > 0, stage = 'chain', span_id = last_top) as is_request,
    span_id,
    parent_span_id,
    started_at,
    duration,
    service_name,
    span_name,
    scope_name,
    attributes,
    status_code,
    event_names,
    event_attributes,
    convention,
    stage
from (
    select
        *,
        countIf(is_top and stage = 'chain') over (partition by trace_id) as chain_count,
        argMaxIf(span_id, (stage = 'generate', started_at), is_top and stage != 'chain') over (partition by trace_id) as last_top
    from (
        select
            *,
            stage in ('retrieve', 'rerank', 'generate', 'chain')
            and (
                parent_span_id = ''
                or has(groupUniqArrayIf(span_id, convention = '') over (partition by trace_id), parent_span_id)
            ) as is_top
        from (
            select
                TraceId as trace_id,
                SpanId as span_id,
                ParentSpanId as parent_span_id,
                rag_storable_start(Timestamp) as started_at,
                Duration as duration,
                ServiceName as service_name,
                SpanName as span_name,
                ScopeName as scope_name,
                arrayFirst(
                    (at, name) -> at >= Timestamp and name in ('First Token Stream Event', 'gen_ai.content.completion.chunk', 'llm.content.completion.chunk'),
                    Events.Timestamp,
                    Events.Name
                ) as streamed_at,
                if(
                    streamed_at >= Timestamp,
                    mapUpdate(SpanAttributes, map('ragotel.first_event_ms', toString((toUnixTimestamp64Nano(streamed_at) - toUnixTimestamp64Nano(Timestamp)) / 1e6))),
                    SpanAttributes
                ) as attributes,
                StatusCode as status_code,
                Events.Name as event_names,
                Events.Attributes as event_attributes,
                rag_foreign_convention(SpanAttributes, ScopeName, Events.Name) as convention,
                rag_foreign_stage(convention, SpanAttributes, SpanName, ScopeName, Events.Name) as stage
            from otel_traces
            where
                not mapContains(SpanAttributes, 'rag.stage')
                and (
                    SpanKind in ('Server', 'Consumer')
                    or ParentSpanId = ''
                    or rag_foreign_convention(SpanAttributes, ScopeName, Events.Name) != ''
                )
        )
    )
)
where convention != '' and stage != 'other'
