-- answers: what became of each candidate on its way to the prompt?
-- grain:   one row per request × chunk
-- reads:   rag_stages, rag_request_flows
-- dropped_at is the first stage that says it dropped the chunk; inferred means that ragotel concluded it from
-- the lists. ranks holds every stage that had the chunk, in the order of their start.
create or replace view rag_candidate_journeys as
with
    sightings as (
        select
            trace_id,
            request_id,
            span_id,
            started_at,
            service_name,
            stage,
            stage_name,
            evidence,
            sighting.1 as chunk_id,
            sighting.2 as rank,
            sighting.3 as score,
            sighting.4 as drop_reason,
            sighting.5 as is_inferred,
            sighting.6 as kept_chars
        from rag_stages final
        array join arrayConcat(
            arrayMap(
                (id, sha, at, score, kept) -> (
                    cast(ifNull(id, sha), 'String'),
                    cast(at, 'Nullable(UInt32)'),
                    score,
                    '',
                    false,
                    kept
                ),
                chunk_ids,
                candidate_shas,
                arrayEnumerate(chunk_ids),
                scores,
                candidate_kept_chars
            ),
            arrayMap(
                (id, reason, inferred) -> (
                    cast(ifNull(id, ''), 'String'),
                    cast(null, 'Nullable(UInt32)'),
                    cast(null, 'Nullable(Float64)'),
                    if(reason = '', 'other', reason),
                    toBool(inferred),
                    cast(null, 'Nullable(UInt32)')
                ),
                dropped_ids,
                drop_reasons,
                drop_inferred
            )
        ) as sighting
        where stage in ('retrieve', 'fuse', 'rerank', 'blend', 'filter', 'assemble')
    )
select
    sightings.trace_id as trace_id,
    sightings.request_id as request_id,
    sightings.chunk_id as chunk_id,
    any(sightings.service_name) as service_name,
    min(sightings.started_at) as first_seen_at,
    minIf(sightings.rank, sightings.stage = 'retrieve') as retrieve_rank,
    minIf(sightings.rank, sightings.stage = 'fuse') as fuse_rank,
    minIf(sightings.rank, sightings.stage = 'rerank') as rerank_rank,
    minIf(sightings.rank, sightings.stage = 'blend') as blend_rank,
    minIf(sightings.rank, sightings.stage = 'filter') as filter_rank,
    minIf(sightings.rank, sightings.span_id = flows.prompt_span_id) as prompt_position,
    arrayMap(
        seen -> (seen.2, seen.3, seen.4, seen.5),
        arraySort(
            groupArrayIf(
                (sightings.started_at, sightings.stage, sightings.stage_name, sightings.rank, sightings.score),
                sightings.rank is not null
            )
        )
    ) as ranks,
    multiIf(
        flows.prompt_span_id = '', null,
        prompt_position is not null, true,
        countIf(
            sightings.span_id = flows.prompt_span_id and sightings.evidence in ('whole', 'empty')
        ) > 0, false,
        flows.prompt_list_is_whole, false,
        null
    )::Nullable(Bool) as sent,
    nullIf(argMinIf(sightings.stage, sightings.started_at, sightings.drop_reason != ''), '') as dropped_at,
    nullIf(argMinIf(sightings.drop_reason, sightings.started_at, sightings.drop_reason != ''), '') as drop_reason,
    if(
        drop_reason is null,
        null,
        argMinIf(sightings.is_inferred, sightings.started_at, sightings.drop_reason != '')
    )::Nullable(Bool) as inferred,
    max(sightings.kept_chars) as kept_chars
from sightings
left join rag_request_flows as flows
    on flows.trace_id = sightings.trace_id and flows.request_id = sightings.request_id
where sightings.chunk_id != ''
group by trace_id, request_id, chunk_id, flows.prompt_span_id, flows.prompt_list_is_whole
settings join_use_nulls = 0
