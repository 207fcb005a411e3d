-- answers: which claims stand in no chunk of the gold's document, but across two neighbours?
-- grain:   one row per label × gold passage × index version that served × document × pair of neighbours
-- reads:   rag_label_passages, rag_stages, rag_index_chains, rag_index_chunks, rag_index_versions, rag_chunks
-- A chunking fault that is reported at retrieval: neither half ranks for the question. Neighbours follow each other
-- by the number at the end of their ids, else as the manifest lists them (order_by); where a document's chunks have
-- neither order, or a text is not known, there is no row. An overlap of up to 300 characters counts once.
create or replace view triage_split_claims as
with
    wanted as (
        select distinct label_id, passage, claims, document
        from (
            select
                label_id,
                passage,
                claims,
                arrayConcat(known_doc_ids, arrayMap(id -> extract(id, '^(.+)#[^#]*$'), chunk_ids)) as documents
            from rag_label_passages
            where passage > 0 and notEmpty(claims)
        )
        array join documents as document
        where document != ''
    ),
    served as (
        select distinct toString(index_name) as index_name, toString(index_version) as version
        from rag_stages
        where stage = 'retrieve' and index_version != ''
    ),
    changes as (
        select
            toString(index_name) as index_name,
            chunk_id,
            version,
            load_id,
            if(doc_id != '', doc_id, extract(chunk_id, '^(.+)#[^#]*$')) as document,
            chunk_sha,
            deleted,
            position
        from rag_index_chunks final
    ),
    members as (
        select
            chains.index_name as index_name,
            chains.version as version,
            kept.chunk_id as chunk_id,
            argMin(kept.document, chains.link.2) as document,
            argMin(kept.chunk_sha, chains.link.2) as chunk_sha,
            argMin(kept.position, chains.link.2) as position,
            argMin(kept.version, chains.link.2) as loaded_in,
            toUInt64OrNull(extract(chunk_id, '(\\d+)\\D*$')) as number
        from (
            select toString(index_name) as index_name, version, arrayJoin(arrayZip(chain, arrayEnumerate(chain))) as link
            from rag_index_chains
            where is_whole and (toString(index_name), version) in (select index_name, version from served)
        ) as chains
        inner join (
            select toString(index_name) as index_name, version, load_id
            from rag_index_versions final
        ) as versions on versions.index_name = chains.index_name and versions.version = chains.link.1
        inner join (
            select *
            from changes
            where (index_name, chunk_id) in (
                select index_name, chunk_id
                from changes
                where document in (select document from wanted)
            )
        ) as kept
            on kept.index_name = chains.index_name
            and kept.version = chains.link.1
            and kept.load_id = versions.load_id
        group by index_name, version, chunk_id
        having argMin(kept.deleted, chains.link.2) = 0
    ),
    documents as (
        select
            index_name,
            version,
            document,
            uniqExact(ifNull(number, 0)) = count() and countIf(number is null) = 0 as is_numbered,
            if(
                is_numbered,
                arraySort(groupArray((ifNull(number, 0), chunk_id, chunk_sha))),
                arraySort(groupArray((toUInt64(position), chunk_id, chunk_sha)))
            ) as places
        from members
        group by index_name, version, document
        having count() > 1 and countIf(chunk_sha = '') = 0 and (is_numbered or uniqExact(loaded_in) = 1)
    ),
    neighbours as (
        select
            index_name,
            version,
            document,
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
        where chunk_sha in (select chunk_sha from members)
        limit 1 by chunk_sha
    ),
    standing as (
        select
            wanted.label_id as label_id,
            wanted.passage as passage,
            members.index_name as index_name,
            members.version as version,
            members.document as document,
            any(wanted.claims) as claims
        from wanted
        inner join members on members.document = wanted.document
        inner join texts on texts.chunk_sha = members.chunk_sha
        group by label_id, passage, index_name, version, document
        having not max(arrayExists(claim -> rag_contains(texts.text_norm, claim), wanted.claims))
    ),
    joined as (
        select
            standing.label_id as label_id,
            standing.passage as passage,
            standing.claims as claims,
            neighbours.index_name as index_name,
            neighbours.version as version,
            neighbours.document as document,
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
            and neighbours.document = standing.document
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
    document as doc_id,
    first_chunk_id,
    second_chunk_id,
    arrayFirst(claim -> rag_contains(glued, claim) or rag_contains(spaced, claim), claims) as claim,
    order_by
from welded
where claim != ''
settings join_use_nulls = 0
