-- answers: which candidates' own full texts state the claim of a gold passage?
-- grain:   one row per request × label × passage, with parallel arrays over candidates of known text
-- reads:   rag_request_labels, rag_label_passages, rag_stages, rag_index_chunks, rag_index_lineage, rag_chunks
-- A candidate is known by the hash of its text, else by its id at the index version that was searched; key is
-- that hash, else 'id:' and the chunk id. Where a label has ids only gold and sent candidates are read, or all where the sent list is not known.
create or replace view rag_claim_texts as
with
    matched as materialized (
        select trace_id, request_id, label_id
        from rag_request_labels
    ),
    passages as (
        select label_id, passage, known_chunk_ids, doc_ids, has_ids, claims
        from rag_label_passages
        where notEmpty(claims)
    ),
    stage_rows as materialized (
        select
            trace_id,
            request_id,
            stage,
            chunk_ids,
            candidate_shas,
            candidate_doc_ids,
            max(stage = 'assemble' and evidence in ('whole', 'empty')) over (
                partition by trace_id, request_id
            ) as has_sent_list
        from rag_stages final
        where
            (trace_id, request_id) in (select trace_id, request_id from matched)
            and stage in ('retrieve', 'fuse', 'rerank', 'blend', 'filter', 'assemble')
    ),
    served as materialized (
        select distinct trace_id, request_id, index_name, index_version
        from rag_stages final
        where
            (trace_id, request_id) in (select trace_id, request_id from matched)
            and stage = 'retrieve'
            and index_version != ''
    ),
    candidates as (
        select distinct
            matched.trace_id as trace_id,
            matched.request_id as request_id,
            matched.label_id as label_id,
            passages.passage as passage,
            passages.claims as claims,
            candidate.1 as chunk_id,
            candidate.2 as stated_sha
        from matched
        inner join passages on passages.label_id = matched.label_id
        inner join stage_rows
            on stage_rows.trace_id = matched.trace_id and stage_rows.request_id = matched.request_id
        array join arrayFilter(
            (one, doc) -> (one.1 != '' or one.2 != '')
            and (
                not passages.has_ids
                or stage_rows.stage = 'assemble'
                or not stage_rows.has_sent_list
                or has(passages.known_chunk_ids, one.1)
                or has(passages.doc_ids, doc)
            ),
            arrayMap((id, sha) -> (ifNull(id, ''), sha), stage_rows.chunk_ids, stage_rows.candidate_shas),
            stage_rows.candidate_doc_ids
        ) as candidate
    ),
    nameless as (
        select distinct chunk_id
        from candidates
        where stated_sha = '' and chunk_id != ''
    ),
    members as (
        select
            lineage.index_name as index_name,
            lineage.version as version,
            chunks.chunk_id as chunk_id,
            argMin(chunks.chunk_sha, lineage.depth) as chunk_sha
        from rag_index_chunks as chunks final
        inner join (
            select *
            from rag_index_lineage
            where (index_name, version) in (select index_name, index_version from served)
        ) as lineage
            on lineage.index_name = chunks.index_name
            and lineage.ancestor = chunks.version
            and lineage.load_id = chunks.load_id
        where chunks.chunk_id in (select chunk_id from nameless)
        group by index_name, version, chunk_id
    ),
    named as (
        select
            served.trace_id as trace_id,
            served.request_id as request_id,
            members.chunk_id as chunk_id,
            any(members.chunk_sha) as chunk_sha
        from served
        inner join members
            on members.index_name = served.index_name and members.version = served.index_version
        group by trace_id, request_id, chunk_id
    ),
    keyed as (
        select
            candidates.*,
            if(candidates.stated_sha != '', candidates.stated_sha, named.chunk_sha) as chunk_sha,
            if(candidates.stated_sha != '', candidates.stated_sha, concat('id:', candidates.chunk_id)) as key
        from candidates
        left join named
            on named.trace_id = candidates.trace_id
            and named.request_id = candidates.request_id
            and named.chunk_id = candidates.chunk_id
            and candidates.stated_sha = ''
    ),
    texts as (
        select chunk_sha, any(text_norm) as text_norm
        from rag_chunks
        where chunk_sha in (select chunk_sha from keyed)
        group by chunk_sha
    ),
    judged as (
        select
            keyed.trace_id as trace_id,
            keyed.request_id as request_id,
            keyed.label_id as label_id,
            keyed.passage as passage,
            keyed.key as key,
            arrayExists(claim -> rag_contains(texts.text_norm, claim), keyed.claims) as states_claim,
            min(
                if(
                    states_claim,
                    toInt64(positionUTF8(texts.text_norm, arrayFirst(claim -> rag_contains(texts.text_norm, claim), keyed.claims))) - 1,
                    0
                )
            ) as claim_offset_chars
        from keyed
        inner join texts on texts.chunk_sha = keyed.chunk_sha
        where keyed.chunk_sha != ''
        group by trace_id, request_id, label_id, passage, key, states_claim
    )
select
    trace_id,
    request_id,
    label_id,
    passage,
    groupArray(key) as known_keys,
    groupArray(states_claim) as key_states_claim,
    groupArray(claim_offset_chars) as key_claim_offsets,
    groupArrayIf(key, states_claim) as stating_keys
from judged
group by trace_id, request_id, label_id, passage
settings enable_materialized_cte = 1, join_use_nulls = 0
