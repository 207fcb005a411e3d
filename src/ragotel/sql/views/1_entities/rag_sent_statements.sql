-- answers: which value does each sent passage state: the gold's, or what the wrong answer said?
-- grain:   one row per request × label × sent passage, where a wrong grade names the request
-- reads:   rag_request_labels, rag_label_passages, rag_grades, rag_complaints, rag_request_grades, rag_requests, rag_stages, rag_index_chunks, rag_index_chains, rag_chunks
-- Compared are the quantities and quoted strings of the answer that neither gold nor question states, and the
-- label's lures. A bare number takes the gold's unit; one in another unit than the gold's counts only where no gold
-- passage states it. What a passage denies it does not state. Nothing is converted and no model is asked.
-- Patterns are compiled once per block: a two-level aggregation would hand on 256 small ones.
create or replace view rag_sent_statements as
with
    called_wrong as (
        select trace_id, request_id
        from rag_grades
        where grade = 'wrong'
        union all
        select trace_id, request_id
        from rag_complaints
        where grade = 'wrong'
    ),
    golds as (
        select
            label_id,
            groupUniqArrayArray(chunk_ids) as labelled_chunk_ids,
            groupUniqArrayArray(known_chunk_ids) as gold_chunk_ids,
            groupUniqArrayArray(known_doc_ids) as gold_doc_ids,
            groupUniqArrayArray(doc_ids) as labelled_doc_ids,
            groupUniqArrayArray(claims) as claims,
            arrayStringConcat(claims, ' \n ') as gold_wordings,
            any(lure_chunk_ids) as lure_chunk_ids,
            arrayMap(span -> trimBoth(rag_normalise(span)), any(lure_spans)) as lures
        from rag_label_passages
        where label_id in (
            select label_id
            from rag_request_labels
            where
                request_id in (select request_id from called_wrong where request_id != '')
                or trace_id in (select trace_id from called_wrong where request_id = '')
        )
        group by label_id
    ),
    golds_measured as (
        select
            *,
            rag_quantities(gold_wordings) as gold_quantities,
            arrayDistinct(
                arrayFlatten(
                    arrayMap(
                        quantity -> arrayMap(
                            word -> replaceRegexpOne(word, 's$', ''),
                            arrayPushFront(splitByChar(' ', quantity.2), quantity.2)
                        ),
                        gold_quantities
                    )
                )
            ) as gold_units,
            arrayDistinct(
                arrayConcat(
                    claims,
                    arrayFlatten(
                        arrayMap(
                            quantity -> rag_wordings(quantity.1, quantity.2),
                            rag_quantities(
                                arrayStringConcat(
                                    arrayFilter(
                                        claim -> match(claim, '^[€$£¥]? ?\\d[\\d.,]*(?: ?[%€$£¥]|[- ]?\\pL+(?: \\pL+)?)$'),
                                        claims
                                    ),
                                    ' ; '
                                )
                            )
                        )
                    )
                )
            ) as right_wordings
        from golds
    ),
    answers as (
        select
            trace_id,
            request_id,
            query_norm,
            rag_quantities(rag_without_negated(answer_norm)) as quantities,
            extractAll(answer_norm, '["“„«`]([^"“”„«»`]{2,200})["”“»`]') as quoted
        from rag_requests
        where
            request_id in (select request_id from rag_request_grades where grade = 'wrong' and request_id != '')
            or trace_id in (select trace_id from rag_request_grades where grade = 'wrong' and request_id = '')
        limit 1 by trace_id, request_id
    ),
    paired as (
        select
            matched.trace_id as trace_id,
            matched.request_id as request_id,
            matched.label_id as label_id,
            answers.query_norm as query_norm,
            answers.quoted as quoted,
            golds_measured.labelled_chunk_ids as labelled_chunk_ids,
            golds_measured.gold_chunk_ids as gold_chunk_ids,
            golds_measured.gold_doc_ids as gold_doc_ids,
            golds_measured.labelled_doc_ids as labelled_doc_ids,
            golds_measured.gold_wordings as gold_wordings,
            golds_measured.right_wordings as right_wordings,
            golds_measured.gold_units as gold_units,
            golds_measured.lure_chunk_ids as lure_chunk_ids,
            golds_measured.lures as lures,
            arrayDistinct(
                arrayFlatten(
                    arrayMap(
                        quantity -> if(
                            quantity.2 = '',
                            arrayMap(
                                unit -> (quantity.1, unit, quantity.1),
                                golds_measured.gold_units
                            ),
                            arrayMap(
                                word -> (
                                    quantity.1,
                                    replaceRegexpOne(word, 's$', ''),
                                    if(quantity.2 = 'date', quantity.1, concat(quantity.1, ' ', quantity.2))
                                ),
                                arrayPushFront(splitByChar(' ', quantity.2), quantity.2)
                            )
                        ),
                        arrayFilter(
                            quantity -> not arrayExists(
                                gold -> gold.1 = quantity.1
                                and (
                                    quantity.2 = ''
                                    or hasAny(
                                        arrayMap(word -> replaceRegexpOne(word, 's$', ''), splitByChar(' ', gold.2)),
                                        arrayMap(word -> replaceRegexpOne(word, 's$', ''), splitByChar(' ', quantity.2))
                                    )
                                ),
                                golds_measured.gold_quantities
                            ),
                            answers.quantities
                        )
                    )
                )
            ) as said
        from rag_request_labels as matched
        inner join answers on answers.trace_id = matched.trace_id and answers.request_id = matched.request_id
        inner join golds_measured on golds_measured.label_id = matched.label_id
    ),
    worded as (
        select
            * except (said, quoted),
            arrayFilter(
                statement -> not arrayExists(
                    wording -> rag_contains(gold_wordings, wording) or rag_contains(query_norm, wording),
                    statement.3
                ),
                arrayConcat(
                    arrayMap(
                        pair -> (
                            pair.3,
                            has(gold_units, pair.2),
                            rag_wordings(pair.1, pair.2)
                        ),
                        said
                    ),
                    arrayMap(text -> (text, true, [text]), quoted)
                )
            ) as statements
        from paired
    ),
    needles as (
        select
            * except (statements),
            arrayMap(statement -> (statement.1, statement.2), statements) as said,
            arraySlice(arrayFlatten(arrayMap(statement -> statement.3, statements)), 1, 1000) as wrong_wordings,
            arraySlice(
                arrayFlatten(
                    arrayMap((statement, at) -> arrayMap(wording -> at, statement.3), statements, arrayEnumerate(statements))
                ),
                1,
                1000
            ) as wording_of
        from worded
    ),
    last_prompts as (
        select
            trace_id,
            request_id,
            span_id,
            service_name,
            chunk_ids,
            candidate_shas,
            candidate_doc_ids,
            candidate_doc_versions,
            candidate_superseded
        from rag_stages final
        where
            stage = 'assemble'
            and (
                request_id in (select request_id from called_wrong where request_id != '')
                or trace_id in (select trace_id from called_wrong where request_id = '')
            )
        order by started_at desc, span_id desc
        limit 1 by trace_id, request_id
    ),
    sent as (
        select
            trace_id,
            request_id,
            candidate.1 as chunk_id,
            candidate.2 as chunk_sha,
            candidate.3 as doc_id,
            candidate.4 as position,
            candidate.5 as doc_version,
            candidate.6 as is_superseded
        from last_prompts
        array join arrayMap(
            (id, sha, doc, at, doc_version, superseded) -> (
                ifNull(id, sha), sha, doc, at, doc_version, ifNull(superseded, false)
            ),
            chunk_ids,
            candidate_shas,
            candidate_doc_ids,
            arrayEnumerate(chunk_ids),
            candidate_doc_versions,
            candidate_superseded
        ) as candidate
    ),
    manifest as (
        select
            chunk_id,
            groupArray((toString(index_name), version, chunk_sha, doc_id, doc_version, superseded)) as entries,
            groupUniqArrayIf(chunk_sha, chunk_sha != '') as shas
        from rag_index_chunks final
        where deleted = 0 and chunk_id in (select arrayJoin(chunk_ids) from last_prompts)
        group by chunk_id
    ),
    served as (
        select
            searched.trace_id as trace_id,
            searched.request_id as request_id,
            groupUniqArray((searched.index_name, chains.chain)) as served
        from (
            select trace_id, request_id, toString(index_name) as index_name, toString(index_version) as version
            from rag_stages
            where
                stage = 'retrieve'
                and index_version != ''
                and (
                    request_id in (select request_id from called_wrong where request_id != '')
                    or trace_id in (select trace_id from called_wrong where request_id = '')
                )
        ) as searched
        inner join (
            select toString(index_name) as index_name, version, chain
            from rag_index_chains
        ) as chains on chains.index_name = searched.index_name and chains.version = searched.version
        group by trace_id, request_id
    ),
    named as (
        select
            sent.trace_id as trace_id,
            sent.request_id as request_id,
            sent.chunk_id as chunk_id,
            sent.position as position,
            arrayMap(
                index -> arraySort(
                    entry -> indexOf(index.2, entry.2),
                    arrayFilter(entry -> entry.1 = index.1 and has(index.2, entry.2), manifest.entries)
                )[1],
                served.served
            ) as here,
            multiIf(
                sent.chunk_sha != '', sent.chunk_sha,
                arrayExists(entry -> entry.3 != '', here), arrayFirst(entry -> entry.3 != '', here).3,
                length(manifest.shas) = 1, manifest.shas[1],
                ''
            ) as chunk_sha,
            if(sent.doc_id != '', sent.doc_id, arrayFirst(entry -> entry.4 != '', here).4) as doc_id,
            if(sent.doc_version != '', sent.doc_version, arrayFirst(entry -> entry.5 != '', here).5) as doc_version,
            sent.is_superseded or arrayExists(entry -> entry.6 = 1, here) as is_superseded
        from sent
        left join served on served.trace_id = sent.trace_id and served.request_id = sent.request_id
        left join manifest on manifest.chunk_id = sent.chunk_id
    ),
    texts as (
        select chunk_sha, text_norm, rag_without_negated(text_norm) as stated_norm
        from rag_chunks
        where
            chunk_sha in (select arrayJoin(candidate_shas) from last_prompts)
            or chunk_sha in (select arrayJoin(shas) from manifest)
        limit 1 by chunk_sha
    ),
    met as (
        select
            needles.trace_id as trace_id,
            needles.request_id as request_id,
            needles.label_id as label_id,
            named.position as position,
            named.chunk_id as chunk_id,
            named.doc_id as doc_id,
            named.doc_version as doc_version,
            named.is_superseded as is_superseded,
            has(needles.labelled_chunk_ids, named.chunk_id)
            or (
                (
                    has(needles.gold_chunk_ids, named.chunk_id)
                    or (named.doc_id != '' and has(needles.labelled_doc_ids, named.doc_id))
                )
                and not named.is_superseded
            ) as is_gold,
            named.doc_id != '' and has(needles.gold_doc_ids, named.doc_id) as is_of_gold_document,
            texts.chunk_sha != '' as is_read,
            texts.stated_norm as stated_norm,
            has(needles.lure_chunk_ids, named.chunk_id) as is_lure,
            arrayFilter((wording, at) -> at > 0, needles.right_wordings, rag_positions(texts.text_norm, needles.right_wordings)) as right_found,
            arrayFilter((lure, at) -> at > 0, needles.lures, rag_positions(texts.stated_norm, needles.lures)) as lures_found,
            arrayFilter((pair, at) -> at > 0, arrayZip(needles.wrong_wordings, needles.wording_of), rag_positions(texts.stated_norm, needles.wrong_wordings)) as wrong_found,
            texts.text_norm as text_norm,
            needles.said as said
        from needles
        inner join named on named.trace_id = needles.trace_id and named.request_id = needles.request_id
        left join texts on texts.chunk_sha = named.chunk_sha
    ),
    stating as (
        select
            * except (stated_norm, text_norm, right_found, lures_found, wrong_found),
            arrayExists(wording -> rag_contains(text_norm, wording), right_found) as has_right,
            is_lure or arrayExists(lure -> rag_contains(stated_norm, lure), lures_found) as has_lure,
            arraySort(
                arrayDistinct(
                    arrayMap(
                        pair -> pair.2,
                        arrayFilter(pair -> rag_contains(stated_norm, pair.1), wrong_found)
                    )
                )
            ) as stated
        from met
    ),
    beside_gold as (
        select
            *,
            groupUniqArrayArrayIf(stated, is_gold) over (partition by trace_id, request_id, label_id) as gold_stated,
            max(if(is_gold and is_of_gold_document, doc_version, '')) over (partition by trace_id, request_id, label_id, doc_id) as gold_version
        from stating
    )
select
    trace_id,
    request_id,
    label_id,
    position,
    chunk_id,
    doc_id,
    doc_version,
    is_gold,
    toBool(is_of_gold_document) as is_of_gold_document,
    toBool(
        not is_gold
        and (
            is_superseded
            or (
                is_of_gold_document
                and doc_version != ''
                and arrayMap(digits -> toUInt64OrZero(digits), extractAll(doc_version, '\\d+'))
                < arrayMap(digits -> toUInt64OrZero(digits), extractAll(gold_version, '\\d+'))
            )
        )
    ) as is_superseded,
    is_read,
    if(is_read, has_right, null)::Nullable(Bool) as states_right,
    arrayDistinct(
        arrayMap(
            at -> said[at].1,
            arrayFilter(at -> said[at].2 or not has(gold_stated, at), stated)
        )
    ) as answer_values,
    multiIf(
        has_lure or notEmpty(answer_values), true,
        is_read, false,
        null
    )::Nullable(Bool) as states_wrong
from beside_gold
settings join_use_nulls = 0, group_by_two_level_threshold = 0, group_by_two_level_threshold_bytes = 0
