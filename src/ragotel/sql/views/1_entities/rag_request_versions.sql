-- answers: which index versions served this request, and is their content known whole?
-- grain:   one row per labelled request that searched
-- reads:   rag_request_labels, rag_request_flows, rag_requests, rag_stages, rag_ingest_runs, rag_index_chains
-- served: (index, recorded version, version, is_whole, chain). Where the version was not recorded, it is every
-- version in force within the request's hour: recorded by others, or written by an ingest run.
create or replace view rag_request_versions as
with
    searched as (
        select
            flows.trace_id as trace_id,
            flows.request_id as request_id,
            pair.1 as index_name,
            pair.2 as index_version,
            toStartOfHour(flows.started_at) as hour
        from (
            select trace_id, request_id, searched, started_at
            from rag_request_flows
            where (trace_id, request_id) in (select trace_id, request_id from rag_request_labels)
        ) as flows
        array join flows.searched as pair
    ),
    recorded as (
        select index_name, toStartOfHour(started_at) as hour, groupUniqArray(index_version) as versions
        from rag_stages
        where stage = 'retrieve' and index_version != '' and index_name != ''
        group by index_name, hour
    ),
    written as (
        select
            index_name,
            groupArray((toString(index_version), from_at, until_at)) as runs
        from (
            select
                index_name,
                index_version,
                started_at + toIntervalMillisecond(toInt64(least(duration_ms, 86400000))) as from_at,
                leadInFrame(from_at, 1, toDateTime64('2261-01-01 00:00:00', 9, 'UTC')) over (
                    partition by index_name
                    order by from_at
                    rows between unbounded preceding and unbounded following
                ) as until_at
            from rag_ingest_runs final
            where index_version != '' and outcome in ('ok', '')
        )
        group by index_name
    ),
    resolved as (
        select
            searched.trace_id as trace_id,
            searched.request_id as request_id,
            searched.index_name as index_name,
            searched.index_version as recorded_version,
            arrayJoin(
                if(
                    searched.index_version != '' or searched.index_name = '',
                    [toString(searched.index_version)],
                    arrayDistinct(
                        arrayPushFront(
                            arrayConcat(
                                arrayMap(one -> toString(one), recorded.versions),
                                arrayMap(
                                    run -> run.1,
                                    arrayFilter(
                                        run -> run.2 < searched.hour + toIntervalHour(1)
                                        and run.3 > searched.hour,
                                        written.runs
                                    )
                                )
                            ),
                            ''
                        )
                    )
                )
            ) as version
        from searched
        left join recorded
            on recorded.index_name = searched.index_name and recorded.hour = searched.hour
        left join written on written.index_name = searched.index_name
    )
select
    resolved.trace_id as trace_id,
    resolved.request_id as request_id,
    groupArray(
        (
            toString(resolved.index_name),
            toString(resolved.recorded_version),
            resolved.version,
            chains.is_whole,
            chains.chain
        )
    ) as served
from resolved
left join rag_index_chains as chains
    on chains.index_name = resolved.index_name and chains.version = resolved.version
group by trace_id, request_id
settings join_use_nulls = 0
