-- answers: which sent passages state what a wrong answer said?
-- grain:   one row per request × label that has a wrong grade and at least one such passage
-- reads:   rag_request_labels, rag_label_passages, rag_request_grades, rag_requests, rag_stages, rag_index_chunks, rag_chunks
-- Compared are quantities (a number with its sign, currency or following word) and quoted strings of the answer
-- that the gold wordings do not state, and the label's lures. No model is asked.
create or replace view rag_competing_passages as
with
    wrong_requests as (
        select request_id
        from rag_request_grades
        where grade = 'wrong' and request_id != ''
    ),
    wrong_traces as (
        select trace_id
        from rag_request_grades
        where grade = 'wrong' and request_id = ''
    ),
    golds as (
        select
            label_id,
            groupUniqArrayArray(known_chunk_ids) as gold_chunk_ids,
            groupUniqArrayArray(doc_ids) as gold_doc_ids,
            arrayStringConcat(groupUniqArrayArray(claims), ' \n ') as gold_wordings,
            any(lure_chunk_ids) as lure_chunk_ids,
            arrayMap(span -> trimBoth(rag_normalise(span)), any(lure_spans)) as lures
        from rag_label_passages
        group by label_id
    ),
    answers as (
        select
            trace_id,
            request_id,
            arrayDistinct(
                arrayFilter(
                    part -> part != '',
                    arrayConcat(
                        arrayMap(
                            part -> trimBoth(
                                if(
                                    match(part, ' (?:of|and|or|in|to|for|the|a|an|is|are|was|were|at|on|by|per|with|from|as|if)$'),
                                    replaceRegexpOne(part, ' [a-z]+$', ''),
                                    part
                                ),
                                ' .,'
                            ),
                            extractAll(answer_norm, '[$€£¥]?\\d+(?:[.,]\\d+)*(?: ?%| ?[\\pL]+)?')
                        ),
                        extractAll(answer_norm, '["“]([^"“”]{2,200})["”]')
                    )
                )
            ) as statements
        from rag_requests
        where
            request_id in (select request_id from wrong_requests)
            or trace_id in (select trace_id from wrong_traces)
        limit 1 by trace_id, request_id
    ),
    sent as (
        select
            trace_id,
            request_id,
            candidate.1 as chunk_id,
            candidate.2 as chunk_sha,
            candidate.3 as doc_id,
            candidate.4 as position
        from (
            select trace_id, request_id, chunk_ids, candidate_shas, candidate_doc_ids
            from rag_stages final
            where
                stage = 'assemble'
                and (
                    request_id in (select request_id from wrong_requests)
                    or trace_id in (select trace_id from wrong_traces)
                )
            order by started_at desc, span_id desc
            limit 1 by trace_id, request_id
        )
        array join arrayMap(
            (id, sha, doc, at) -> (ifNull(id, sha), sha, doc, at),
            chunk_ids,
            candidate_shas,
            candidate_doc_ids,
            arrayEnumerate(chunk_ids)
        ) as candidate
    ),
    manifest_shas as (
        select chunk_id, any(chunk_sha) as only_sha
        from rag_index_chunks
        where deleted = 0 and chunk_sha != ''
        group by chunk_id
        having uniqExact(chunk_sha) = 1
    )
select
    matched.trace_id as trace_id,
    matched.request_id as request_id,
    matched.label_id as label_id,
    arrayMap(pair -> pair.2, arraySort(groupUniqArray((sent.position, sent.chunk_id)))) as competing_chunk_ids
from rag_request_labels as matched
inner join answers on answers.trace_id = matched.trace_id and answers.request_id = matched.request_id
inner join golds on golds.label_id = matched.label_id
inner join sent on sent.trace_id = matched.trace_id and sent.request_id = matched.request_id
left join manifest_shas on manifest_shas.chunk_id = sent.chunk_id and sent.chunk_sha = ''
left join rag_chunks as texts on texts.chunk_sha = if(sent.chunk_sha != '', sent.chunk_sha, manifest_shas.only_sha)
where
    not has(golds.gold_chunk_ids, sent.chunk_id)
    and not (sent.doc_id != '' and has(golds.gold_doc_ids, sent.doc_id))
    and (
        has(golds.lure_chunk_ids, sent.chunk_id)
        or arrayExists(lure -> rag_contains(texts.text_norm, lure), golds.lures)
        or arrayExists(
            part -> rag_contains(texts.text_norm, part) and not rag_contains(golds.gold_wordings, part),
            answers.statements
        )
    )
group by trace_id, request_id, label_id
settings join_use_nulls = 0
