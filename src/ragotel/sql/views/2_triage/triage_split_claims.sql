-- answers: which claims stand in no chunk of the gold's document, but across two neighbours?
-- grain:   one row per label × gold passage × index version that served × document × pair of neighbours
-- reads:   rag_label_passages, rag_stages, rag_index_chains, rag_index_chunks, rag_index_versions, rag_chunks
-- A chunking fault that is reported at retrieval: neither half ranks for the question. Neighbours follow each other
-- by the number at the end of their ids, else as the manifest lists them (order_by); where a document's chunks have
-- neither order, or a text is not known, there is no row. An overlap of up to 300 characters counts once.
create or replace view triage_split_claims as
with
    wanted as (
        select label_id, passage, claims, arrayJoin(known_doc_ids) as doc_id
        from rag_label_passages
        where passage > 0 and notEmpty(claims)
    ),
    links as (
        select index_name, version, link.1 as loaded_version, link.2 as distance
        from rag_index_chains
        array join arrayZip(chain, arrayEnumerate(chain)) as link
        where
            is_whole
            and (index_name, version) in (
                select toString(index_name), toString(index_version)
                from rag_stages
                where stage = 'retrieve' and index_version != ''
            )
    ),
    loaded as (
        select
            chunks.index_name as index_name,
            chunks.version as version,
            chunks.chunk_id as chunk_id,
            chunks.doc_id as doc_id,
            chunks.chunk_sha as chunk_sha,
            chunks.deleted as deleted,
            chunks.position as position
        from (
            select *
            from rag_index_chunks final
            where (index_name, chunk_id) in (
                select index_name, chunk_id
                from rag_index_chunks
                where doc_id in (select doc_id from wanted)
            )
        ) as chunks
        inner join (
            select index_name, version, load_id
            from rag_index_versions final
        ) as versions
            on versions.index_name = chunks.index_name
            and versions.version = chunks.version
            and versions.load_id = chunks.load_id
    ),
    members as (
        select
            links.index_name as index_name,
            links.version as version,
            loaded.chunk_id as chunk_id,
            argMin(loaded.doc_id, links.distance) as doc_id,
            argMin(loaded.chunk_sha, links.distance) as chunk_sha,
            argMin(loaded.position, links.distance) as position,
            argMin(loaded.version, links.distance) as loaded_in,
            toUInt64OrNull(extract(loaded.chunk_id, '(\\d+)\\D*$')) as number
        from links
        inner join loaded on loaded.index_name = links.index_name and loaded.version = links.loaded_version
        group by index_name, version, chunk_id
        having argMin(loaded.deleted, links.distance) = 0
    ),
    documents as (
        select
            index_name,
            version,
            doc_id,
            uniqExact(ifNull(number, 0)) = count() and countIf(number is null) = 0 as is_numbered,
            if(
                is_numbered,
                arraySort(groupArray((ifNull(number, 0), chunk_id, chunk_sha))),
                arraySort(groupArray((toUInt64(position), chunk_id, chunk_sha)))
            ) as places
        from members
        group by index_name, version, doc_id
        having count() > 1 and countIf(chunk_sha = '') = 0 and (is_numbered or uniqExact(loaded_in) = 1)
    ),
    neighbours as (
        select
            index_name,
            version,
            doc_id,
            if(is_numbered, 'chunk_id', 'manifest') as order_by,
            place.1.2 as first_chunk_id,
            place.1.3 as first_sha,
            place.2.2 as second_chunk_id,
            place.2.3 as second_sha
        from documents
        array join arrayZip(arrayPopBack(places), arrayPopFront(places)) as place
    ),
    texts as (
        select chunk_sha, text_norm
        from rag_chunks
        where chunk_sha in (select chunk_sha from loaded)
        limit 1 by chunk_sha
    ),
    standing as (
        select
            wanted.label_id as label_id,
            wanted.passage as passage,
            members.index_name as index_name,
            members.version as version,
            members.doc_id as doc_id,
            any(wanted.claims) as claims
        from wanted
        inner join members on members.doc_id = wanted.doc_id
        inner join texts on texts.chunk_sha = members.chunk_sha
        group by label_id, passage, index_name, version, doc_id
        having not max(arrayExists(claim -> rag_contains(texts.text_norm, claim), wanted.claims))
    ),
    joined as (
        select
            standing.label_id as label_id,
            standing.passage as passage,
            standing.claims as claims,
            neighbours.index_name as index_name,
            neighbours.version as version,
            neighbours.doc_id as doc_id,
            neighbours.first_chunk_id as first_chunk_id,
            neighbours.second_chunk_id as second_chunk_id,
            neighbours.order_by as order_by,
            first_texts.text_norm as first_norm,
            second_texts.text_norm as second_norm,
            arrayFirst(
                size -> endsWith(first_texts.text_norm, substring(second_texts.text_norm, 1, size)),
                arrayReverse(range(1, toUInt64(least(300, length(first_texts.text_norm), length(second_texts.text_norm)) + 1)))
            ) as overlap_bytes
        from standing
        inner join neighbours
            on neighbours.index_name = standing.index_name
            and neighbours.version = standing.version
            and neighbours.doc_id = standing.doc_id
        inner join texts as first_texts on first_texts.chunk_sha = neighbours.first_sha
        inner join texts as second_texts on second_texts.chunk_sha = neighbours.second_sha
    ),
    welded as (
        select
            * except (first_norm, second_norm, overlap_bytes),
            concat(first_norm, substring(second_norm, overlap_bytes + 1)) as glued,
            concat(trimRight(first_norm), ' ', trimLeft(second_norm)) as spaced
        from joined
    )
select
    label_id,
    passage,
    index_name,
    version as index_version,
    doc_id,
    first_chunk_id,
    second_chunk_id,
    arrayFirst(claim -> rag_contains(glued, claim) or rag_contains(spaced, claim), claims) as claim,
    order_by
from welded
where claim != ''
settings join_use_nulls = 0
