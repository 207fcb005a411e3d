-- answers: at which rank did each stage have each gold passage?
-- grain:   one row per request × label × gold passage × stage run
-- reads:   rag_request_labels, rag_label_passages, rag_claim_texts, rag_labelled_lists, rag_index_chunks
-- By id where the label has ids, else by text. gold_rank is null where the list does not have it; is_absent is
-- true only where that is proven: a whole list and, by text, every text of it known, by document every document.
create or replace view rag_gold_ranks as
with
    wanted as (
        select
            matched.trace_id as trace_id,
            matched.request_id as request_id,
            matched.label_id as label_id,
            passages.passage as passage,
            passages.label_set as label_set,
            passages.known_chunk_ids as known_chunk_ids,
            passages.doc_ids as doc_ids,
            passages.known_doc_ids as known_doc_ids,
            passages.has_ids as has_ids,
            notEmpty(passages.claims) as has_claim,
            claim_texts.known_keys as known_keys,
            claim_texts.stating_keys as stating_keys,
            claim_texts.claim_offsets as claim_offsets
        from rag_request_labels as matched
        inner join rag_label_passages as passages on passages.label_id = matched.label_id
        left join rag_claim_texts as claim_texts
            on claim_texts.trace_id = matched.trace_id
            and claim_texts.request_id = matched.request_id
            and claim_texts.label_id = matched.label_id
            and claim_texts.passage = passages.passage
        where passages.passage > 0
    )
select
    wanted.trace_id as trace_id,
    wanted.request_id as request_id,
    wanted.label_id as label_id,
    wanted.label_set as label_set,
    wanted.passage as passage,
    stage_rows.span_id as span_id,
    stage_rows.started_at as started_at,
    stage_rows.service_name as service_name,
    stage_rows.stage as stage,
    stage_rows.stage_name as stage_name,
    stage_rows.index_name as index_name,
    stage_rows.index_version as index_version,
    stage_rows.evidence as evidence,
    stage_rows.candidate_count as candidate_count,
    if(
        wanted.has_ids,
        arrayMap(
            (id, doc) -> has(wanted.known_chunk_ids, ifNull(id, ''))
            or (doc != '' and has(wanted.doc_ids, doc)),
            stage_rows.chunk_ids,
            stage_rows.candidate_doc_ids
        ),
        arrayMap(key -> has(wanted.stating_keys, key), stage_rows.keys)
    ) as is_gold,
    toUInt32(indexOf(is_gold, 1)) as position,
    nullIf(position, 0) as gold_rank,
    arrayDistinct(arrayFilter((key, gold) -> gold and key != '', stage_rows.keys, is_gold)) as gold_keys,
    position = 0
    and stage_rows.evidence in ('whole', 'empty')
    and (
        (
            wanted.has_ids
            and empty(wanted.doc_ids)
            -- Others lose ids that their list had; a service that ragotel records has none to lose.
            and (stage_rows.convention = 'ragotel' or not has(stage_rows.chunk_ids, null))
            and (
                not arrayExists(id -> startsWith(ifNull(id, ''), 'sha256:'), stage_rows.chunk_ids)
                or arrayExists(id -> startsWith(id, 'sha256:'), wanted.known_chunk_ids)
            )
        )
        or (
            wanted.has_ids
            and arrayAll(
                (id, doc) -> doc != ''
                or ifNull(id, '') in (select chunk_id from rag_index_chunks where doc_id != ''),
                stage_rows.chunk_ids,
                stage_rows.candidate_doc_ids
            )
        )
        or (not wanted.has_ids and wanted.has_claim and arrayAll(key -> has(wanted.known_keys, key), stage_rows.keys))
    ) as is_absent,
    stage_rows.scores[position] as gold_score,
    stage_rows.scores as scores,
    stage_rows.higher_is_better as higher_is_better,
    stage_rows.chunk_ids[position] as gold_chunk_id,
    stage_rows.keys[position] as gold_key,
    stage_rows.candidate_shas[position] as gold_sha,
    stage_rows.candidate_chars[position] as gold_chars,
    stage_rows.candidate_kept_chars[position] as gold_kept_chars,
    arrayExists(
        (gold, chars, kept) -> gold and (kept is null or kept >= ifNull(chars, kept + 1)),
        is_gold,
        stage_rows.candidate_chars,
        stage_rows.candidate_kept_chars
    ) as has_untrimmed,
    gold_kept_chars is not null and gold_kept_chars < ifNull(gold_chars, gold_kept_chars + 1) as is_trimmed,
    arrayDistinct(
        arrayConcat(
            wanted.known_chunk_ids,
            arrayFlatten(
                groupArray(
                    arrayFilter((id, gold) -> gold and id != '', arrayMap(id -> ifNull(id, ''), stage_rows.chunk_ids), is_gold)
                ) over (partition by wanted.trace_id, wanted.request_id, wanted.label_id, wanted.passage)
            )
        )
    ) as gold_ids_here,
    arrayFirstIndex(id -> has(gold_ids_here, ifNull(id, '')), stage_rows.dropped_ids) as dropped_at,
    nullIf(stage_rows.drop_reasons[dropped_at], '') as drop_reason,
    toBool(stage_rows.drop_inferred[dropped_at]) as is_inferred,
    arrayFirst(
        (name, id, key) -> has(wanted.stating_keys, key)
        and not has(wanted.known_chunk_ids, ifNull(id, '')),
        arrayMap((id, key) -> ifNull(id, key), stage_rows.chunk_ids, stage_rows.keys),
        stage_rows.chunk_ids,
        stage_rows.keys
    ) as other_stating_chunk_id,
    arrayExists(
        (id, key) -> has(wanted.stating_keys, key)
        and not has(wanted.known_chunk_ids, ifNull(id, '')),
        stage_rows.chunk_ids,
        stage_rows.keys
    ) as is_stated_elsewhere,
    has(wanted.known_keys, gold_key) and position > 0 as gold_text_is_known,
    position > 0
    and arrayAll(
        (gold, key) -> not gold or has(wanted.known_keys, key),
        is_gold,
        stage_rows.keys
    ) as gold_texts_are_known,
    has(wanted.stating_keys, gold_key) and position > 0 as gold_text_states_claim,
    arrayExists((gold, key) -> gold and has(wanted.stating_keys, key), is_gold, stage_rows.keys) as any_gold_text_states_claim,
    if(
        gold_text_states_claim,
        arrayFirst(one -> one.1 = gold_key, wanted.claim_offsets).2,
        null
    ) as claim_offset_chars,
    arrayExists(
        (gold, key, sha, chars, kept) -> gold
        and sha != ''
        and has(wanted.stating_keys, key)
        and (kept is null or kept >= ifNull(chars, kept + 1)),
        is_gold,
        stage_rows.keys,
        stage_rows.candidate_shas,
        stage_rows.candidate_chars,
        stage_rows.candidate_kept_chars
    ) as is_hash_proof,
    not wanted.has_ids
    and wanted.has_claim
    and stage_rows.evidence in ('whole', 'empty')
    and arrayAll(
        (gold, key, sha) -> not gold and sha != '' and has(wanted.known_keys, key),
        is_gold,
        stage_rows.keys,
        stage_rows.candidate_shas
    ) as is_hash_absence,
    arrayFirstIndex(
        doc -> doc != '' and has(wanted.known_doc_ids, doc),
        stage_rows.candidate_doc_ids
    ) as doc_position,
    if(
        doc_position = 0,
        0,
        length(arrayDistinct(arraySlice(stage_rows.candidate_doc_ids, 1, doc_position)))
    )::UInt32 as doc_rank,
    doc_position = 0
    and notEmpty(wanted.known_doc_ids)
    and stage_rows.evidence in ('whole', 'empty')
    and arrayAll(doc -> doc != '', stage_rows.candidate_doc_ids) as is_document_absent
from wanted
inner join rag_labelled_lists as stage_rows
    on stage_rows.trace_id = wanted.trace_id and stage_rows.request_id = wanted.request_id
settings join_use_nulls = 0
