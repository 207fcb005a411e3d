-- answers: which candidates' own full texts state the claim of a gold passage?
-- grain:   one row per request × label × passage, with parallel arrays over candidates of known text
-- reads:   rag_request_labels, rag_label_passages, rag_labelled_lists, rag_index_changes, rag_index_chains, rag_chunks
-- A candidate's text is found by the one hash that the request's lists give its id, else (none stated) by its id
-- at the index version that was searched; key as in rag_labelled_lists. Where a label has ids only gold and sent
-- candidates are read, or all where the sent list is not known.
create or replace view rag_claim_texts as
with
    candidates as (
        select
            matched.trace_id as trace_id,
            matched.request_id as request_id,
            matched.label_id as label_id,
            passages.passage as passage,
            any(passages.claims) as claims,
            any(stage_rows.served) as served,
            candidate.1 as chunk_id,
            if(chunk_id = '', candidate.2, concat('id:', chunk_id)) as key,
            groupUniqArrayIf(candidate.2, candidate.2 != '') as shas
        from rag_request_labels as matched
        inner join rag_label_passages as passages on passages.label_id = matched.label_id
        inner join rag_labelled_lists as stage_rows
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
        where notEmpty(passages.claims)
        group by trace_id, request_id, label_id, passage, chunk_id, key
    ),
    changes as (
        select chunk_id, groupArray((toString(index_name), changes)) as by_index
        from rag_index_changes
        group by chunk_id
    ),
    keyed as (
        select
            candidates.trace_id as trace_id,
            candidates.request_id as request_id,
            candidates.label_id as label_id,
            candidates.passage as passage,
            candidates.claims as claims,
            multiIf(
                length(candidates.shas) = 1, candidates.shas[1],
                notEmpty(candidates.shas), '',
                arrayFirst(
                    sha -> sha != '',
                    arrayMap(
                        pair -> arrayFirst(
                            change -> change.1 = arrayFirst(
                                link -> has(
                                    arrayFirst(one -> one.1 = pair.1, changes.by_index).2 .1,
                                    link
                                ),
                                arrayFirst(
                                    one -> one.1 = pair,
                                    (
                                        select groupArray(((toString(index_name), version), chain))
                                        from rag_index_chains
                                    )
                                ).2
                            ),
                            arrayFirst(one -> one.1 = pair.1, changes.by_index).2
                        ).3,
                        candidates.served
                    )
                )
            ) as chunk_sha,
            candidates.key as key
        from candidates
        left join changes on changes.chunk_id = candidates.chunk_id and empty(candidates.shas)
    ),
    judged as (
        select
            keyed.trace_id as trace_id,
            keyed.request_id as request_id,
            keyed.label_id as label_id,
            keyed.passage as passage,
            keyed.key as key,
            arrayFirst(claim -> rag_contains(texts.text_norm, claim), keyed.claims) as stated_claim,
            if(stated_claim = '', -1, toInt64(positionUTF8(texts.text_norm, stated_claim)) - 1) as claim_offset
        from keyed
        inner join rag_chunks as texts on texts.chunk_sha = keyed.chunk_sha
        where keyed.chunk_sha != ''
    )
select
    trace_id,
    request_id,
    label_id,
    passage,
    groupUniqArray(key) as known_keys,
    groupUniqArrayIf(key, claim_offset >= 0) as stating_keys,
    groupUniqArrayIf((key, claim_offset), claim_offset >= 0) as claim_offsets
from judged
group by trace_id, request_id, label_id, passage
settings join_use_nulls = 0
