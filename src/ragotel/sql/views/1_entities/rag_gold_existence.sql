-- answers: was the gold passage in the index version that served the request?
-- grain:   one row per request × label × gold passage
-- reads:   rag_request_labels, rag_label_passages, rag_request_flows, rag_requests, rag_stages, rag_index_lineage, rag_index_chunks, rag_chunks, rag_ingest_runs
-- in_manifest is null unless the manifest of every version in question was loaded whole. A request that did not
-- record its version is judged by all versions in force within its hour, if these agree.
create or replace view rag_gold_existence as
with
    matched as materialized (
        select trace_id, request_id, label_id
        from rag_request_labels
    ),
    passages as (
        select label_id, passage, known_chunk_ids, has_ids, claims
        from rag_label_passages
        where passage > 0
    ),
    searched as materialized (
        select
            flows.trace_id as trace_id,
            flows.request_id as request_id,
            pair.1 as index_name,
            pair.2 as index_version,
            toStartOfHour(requests.started_at) as hour
        from (
            select trace_id, request_id, searched
            from rag_request_flows
            where (trace_id, request_id) in (select trace_id, request_id from matched)
        ) as flows
        inner join (
            select trace_id, request_id, started_at
            from rag_requests
            where (trace_id, request_id) in (select trace_id, request_id from matched)
            limit 1 by trace_id, request_id
        ) as requests
            on requests.trace_id = flows.trace_id and requests.request_id = flows.request_id
        array join flows.searched as pair
    ),
    unversioned as (
        select distinct index_name, hour
        from searched
        where index_version = '' and index_name != ''
    ),
    runs as (
        select
            index_name,
            index_version,
            started_at + toIntervalMicrosecond(toInt64(least(duration_ms, 86400000) * 1000)) as from_at,
            leadInFrame(started_at + toIntervalMicrosecond(toInt64(least(duration_ms, 86400000) * 1000)), 1, toDateTime64('2261-01-01 00:00:00', 9, 'UTC')) over (
                partition by index_name
                order by started_at
                rows between unbounded preceding and unbounded following
            ) as until_at
        from rag_ingest_runs final
        where index_version != '' and outcome in ('ok', '')
    ),
    in_force as (
        select unversioned.index_name as index_name, unversioned.hour as hour, stages.index_version as version
        from unversioned
        inner join (
            select distinct index_name, index_version, toStartOfHour(started_at) as hour
            from rag_stages
            where
                stage = 'retrieve'
                and index_version != ''
                and (index_name, toStartOfHour(started_at)) in (select index_name, hour from unversioned)
        ) as stages
            on stages.index_name = unversioned.index_name and stages.hour = unversioned.hour
        union distinct
        select unversioned.index_name, unversioned.hour, runs.index_version
        from unversioned
        inner join runs on runs.index_name = unversioned.index_name
        where runs.from_at < unversioned.hour + toIntervalHour(1) and runs.until_at > unversioned.hour
    ),
    served as materialized (
        select trace_id, request_id, index_name, index_version, index_version as version
        from searched
        where index_version != '' or index_name = ''
        union all
        select
            searched.trace_id,
            searched.request_id,
            searched.index_name,
            searched.index_version,
            in_force.version
        from searched
        left join in_force on in_force.index_name = searched.index_name and in_force.hour = searched.hour
        where searched.index_version = '' and searched.index_name != ''
    ),
    lineage as materialized (
        select *
        from rag_index_lineage
        where (index_name, version) in (select index_name, version from served)
    ),
    whole_versions as (
        select distinct index_name, version
        from lineage
        where is_whole
    ),
    wanted as materialized (
        select
            matched.trace_id as trace_id,
            matched.request_id as request_id,
            matched.label_id as label_id,
            passages.passage as passage,
            passages.known_chunk_ids as known_chunk_ids,
            passages.has_ids as has_ids,
            passages.claims as claims
        from matched
        inner join passages on passages.label_id = matched.label_id
    ),
    members as (
        select
            lineage.index_name as index_name,
            lineage.version as version,
            chunks.chunk_id as chunk_id
        from rag_index_chunks as chunks final
        inner join lineage
            on lineage.index_name = chunks.index_name
            and lineage.ancestor = chunks.version
            and lineage.load_id = chunks.load_id
        where chunks.chunk_id in (select arrayJoin(known_chunk_ids) from wanted)
        group by index_name, version, chunk_id
        having argMin(chunks.deleted, lineage.depth) = 0
    ),
    text_versions as (
        select distinct index_name, version
        from served
        where (trace_id, request_id) in (select trace_id, request_id from wanted where not has_ids)
    ),
    text_members as (
        select
            lineage.index_name as index_name,
            lineage.version as version,
            chunks.chunk_id as chunk_id,
            argMin(chunks.deleted, lineage.depth) as is_deleted,
            argMin(chunks.chunk_sha, lineage.depth) as chunk_sha
        from rag_index_chunks as chunks final
        inner join (
            select *
            from lineage
            where (index_name, version) in (select index_name, version from text_versions)
        ) as lineage
            on lineage.index_name = chunks.index_name
            and lineage.ancestor = chunks.version
            and lineage.load_id = chunks.load_id
        group by index_name, version, chunk_id
        having is_deleted = 0
    ),
    stated as (
        select
            questions.label_id as label_id,
            questions.passage as passage,
            text_members.index_name as index_name,
            text_members.version as version,
            max(arrayExists(claim -> rag_contains(texts.text_norm, claim), questions.claims)) as is_stated,
            max(texts.chunk_sha = '') as has_unknown_texts
        from text_members
        left join (
            select chunk_sha, any(text_norm) as text_norm
            from rag_chunks
            where chunk_sha in (select chunk_sha from text_members)
            group by chunk_sha
        ) as texts on texts.chunk_sha = text_members.chunk_sha
        cross join (
            select distinct label_id, passage, claims
            from wanted
            where not has_ids and notEmpty(claims)
        ) as questions
        group by label_id, passage, index_name, version
    ),
    per_version as (
        select
            wanted.trace_id as trace_id,
            wanted.request_id as request_id,
            wanted.label_id as label_id,
            wanted.passage as passage,
            served.index_name as index_name,
            served.index_version as recorded_version,
            served.version as version,
            (served.index_name, served.version) in (select index_name, version from whole_versions) as is_whole,
            multiIf(
                not is_whole, null,
                wanted.has_ids,
                arrayExists(
                    chunk_id -> (served.index_name, served.version, chunk_id) in (
                        select index_name, version, chunk_id from members
                    ),
                    wanted.known_chunk_ids
                ),
                stated.is_stated, 1,
                stated.label_id = '' or stated.has_unknown_texts, null,
                0
            )::Nullable(UInt8) as is_member
        from wanted
        inner join served
            on served.trace_id = wanted.trace_id and served.request_id = wanted.request_id
        left join stated
            on stated.label_id = wanted.label_id
            and stated.passage = wanted.passage
            and stated.index_name = served.index_name
            and stated.version = served.version
    ),
    per_index as (
        select
            trace_id,
            request_id,
            label_id,
            passage,
            index_name,
            multiIf(
                countIf(is_member is null) > 0, null,
                min(is_member) = max(is_member), min(is_member),
                null
            )::Nullable(UInt8) as in_index,
            multiIf(
                in_index is not null, '',
                index_name = '', 'index_name',
                countIf(recorded_version = '') > 0, 'index_version',
                countIf(not is_whole) > 0, 'manifest',
                'chunk_texts'
            ) as missing
        from per_version
        group by trace_id, request_id, label_id, passage, index_name
    )
select
    trace_id,
    request_id,
    label_id,
    passage,
    multiIf(
        countIf(in_index = 1) > 0, 1,
        countIf(in_index is null) > 0, null,
        0
    )::Nullable(UInt8) as in_manifest,
    if(
        in_manifest is null,
        arraySort(groupUniqArrayIf(missing, missing != '')),
        []
    ) as missing
from per_index
group by trace_id, request_id, label_id, passage
settings enable_materialized_cte = 1, join_use_nulls = 0
