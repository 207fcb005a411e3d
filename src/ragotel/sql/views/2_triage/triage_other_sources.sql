-- answers: which sent chunks state the claim of a gold passage without being labelled?
-- grain:   one row per request × label × gold passage with ids × such chunk in the last prompt
-- reads:   rag_claim_texts, rag_label_passages, rag_labelled_lists
-- Either the label lacks an alternative, or an unrelated sentence has the same words: a person decides
-- (`labels decide`). is_gold_sent: a labelled chunk was sent as well.
create or replace view triage_other_sources as
with
    prompts as (
        select trace_id, request_id, started_at, service_name, chunk_ids, candidate_shas, candidate_doc_ids, keys
        from rag_labelled_lists
        where stage = 'assemble'
        order by started_at desc, span_id desc
        limit 1 by trace_id, request_id
    ),
    sent as (
        select
            trace_id,
            request_id,
            started_at,
            service_name,
            place.1 as key,
            ifNull(place.2, place.3) as chunk_id,
            place.3 as chunk_sha,
            place.4 as doc_id,
            place.5 as position
        from prompts
        array join arrayZip(keys, chunk_ids, candidate_shas, candidate_doc_ids, arrayEnumerate(keys)) as place
    ),
    judged as (
        select
            stated.trace_id as trace_id,
            stated.request_id as request_id,
            stated.label_id as label_id,
            stated.passage as passage,
            sent.started_at as started_at,
            sent.service_name as service_name,
            sent.position as position,
            sent.chunk_id as chunk_id,
            has(passages.known_chunk_ids, sent.chunk_id)
            or has(passages.known_chunk_ids, sent.chunk_sha)
            or (sent.doc_id != '' and has(passages.doc_ids, sent.doc_id)) as is_gold,
            has(stated.stating_keys, sent.key) as states_claim,
            arrayFirst(pair -> pair.1 = sent.key, stated.claim_offsets).2 as claim_offset_chars
        from rag_claim_texts as stated
        inner join (
            select label_id, passage, known_chunk_ids, doc_ids
            from rag_label_passages
            where has_ids
        ) as passages on passages.label_id = stated.label_id and passages.passage = stated.passage
        inner join sent on sent.trace_id = stated.trace_id and sent.request_id = stated.request_id
    )
select
    trace_id,
    request_id,
    label_id,
    passage,
    started_at,
    service_name,
    position,
    chunk_id,
    claim_offset_chars,
    gold_sent as is_gold_sent
from (
    select
        *,
        toBool(max(is_gold) over (partition by trace_id, request_id, label_id, passage)) as gold_sent
    from judged
)
where states_claim and not is_gold
settings join_use_nulls = 0
