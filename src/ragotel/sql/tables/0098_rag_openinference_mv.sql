-- answers: what do spans by the OpenInference convention say?
-- grain:   fills rag_foreign_read at insert, one row per span
-- reads:   rag_openinference_in
-- Its lists are flattened keys, of which an SDK evicts the oldest: indices missing before the last are kept as
-- candidates without any mark, so that ranks stay true, and the list is truncated. The JSON of output.value has
-- the ids that LangChain's flattened keys lack. A missing score of LlamaIndex is written as 0: a list of
-- nothing else has none.
create materialized view if not exists rag_openinference_mv to rag_foreign_read as
select
    trace_id,
    request_id,
    is_request,
    span_id,
    parent_span_id,
    started_at,
    duration,
    service_name,
    span_name,
    status_code,
    convention,
    stage,
    attributes['session.id'] as session_id,
    attributes['user.id'] as user_id,
    multiIf(
        stage = 'generate', arrayLast(message -> message.1 = 'user', messages).2,
        attributes['reranker.query'] = '__REDACTED__', '',
        attributes['reranker.query'] != '', attributes['reranker.query'],
        input = '__REDACTED__', '',
        input != '', asked,
        attributes['gen_ai.retrieval.query.text']
    ) as question,
    multiIf(
        stage = 'generate' and notEmpty(replies), replies[1].2,
        stage = 'generate' and attributes['llm.choices.0.completion.text'] != '', attributes['llm.choices.0.completion.text'],
        stage in ('retrieve', 'rerank') or output = '__REDACTED__', '',
        answered
    ) as answer,
    arrayMap(document -> (document.2, if(is_unscored, null, document.3), document.4, document.5), listed) as documents,
    if(stage in ('retrieve', 'rerank') and (list_text != '' or notEmpty(flat)), toUInt32(length(listed)), null) as candidate_count,
    arrayMap(group -> if(group.2['document.content'] = '__REDACTED__', '', group.2['document.content']), taken) as taken_in,
    if(empty(taken), null, taken[-1].1 + 1)::Nullable(UInt32) as in_count,
    multiIf(
        stage not in ('retrieve', 'rerank'), 'not_recorded',
        notEmpty(flat) and not is_json_better and arrayAll(document -> document.2 is null and document.7, flat), 'off',
        notEmpty(flat) and not is_json_better, if(is_gapped, 'truncated', 'whole'),
        list_text = '[]', 'empty',
        list_text != '', 'whole',
        output = '__REDACTED__', 'off',
        match(output, '^\\s*[\\[{]') and not isValidJSON(output), if(match(output, '[\\]}]\\s*$'), 'malformed', 'truncated'),
        'not_recorded'
    ) as evidence,
    rag_json_id(properties, 'index_name') as index_name,
    rag_json_id(properties, 'index_version') as index_version,
    '' as filter,
    multiIf(
        stage = 'rerank', attributes['reranker.model_name'],
        attributes['llm.model_name'] != '', attributes['llm.model_name'],
        attributes['llm.request.model_name'] != '', attributes['llm.request.model_name'],
        attributes['gen_ai.request.model']
    ) as model,
    if(attributes['llm.provider'] = '', attributes['llm.system'], attributes['llm.provider']) as provider,
    if(
        stage = 'rerank',
        toUInt32OrNull(attributes['reranker.top_k']),
        coalesce(toUInt32OrNull(attributes['gen_ai.retrieval.top_k']), accurateCastOrNull(rag_json_number(input, 'top_k'), 'UInt32'))
    ) as top_k,
    stage in ('retrieve', 'rerank') and is_json_better and arrayExists(document -> document.2 is null and document.5 is not null, from_json) as is_distance,
    coalesce(toUInt64OrNull(attributes['llm.token_count.prompt']), toUInt64OrNull(attributes['gen_ai.usage.input_tokens'])) as input_tokens,
    coalesce(toUInt64OrNull(attributes['llm.token_count.completion']), toUInt64OrNull(attributes['gen_ai.usage.output_tokens'])) as output_tokens,
    if(attributes['llm.finish_reason'] = '', [], [attributes['llm.finish_reason']]) as finish_reasons,
    rag_json_number(attributes['llm.invocation_parameters'], 'temperature') as temperature,
    toFloat64OrNull(attributes['ragotel.first_event_ms']) as first_token_ms,
    if(stage = 'generate', arrayStringConcat(arrayMap(message -> message.2, messages), '\n\n'), '') as prompt,
    multiIf(
        empty(messages), if(input = '__REDACTED__', 'off', ''),
        arrayExists(message -> message.2 = '__REDACTED__', messages), 'redacted',
        is_prompt_whole, 'full',
        'truncated'
    ) as prompt_state,
    multiIf(
        attributes['prompt.id'] != '', attributes['prompt.id'],
        attributes['gen_ai.prompt.name']
    ) as template_name,
    multiIf(
        attributes['llm.prompt_template.version'] != '', attributes['llm.prompt_template.version'],
        attributes['llm.prompt_template.template'] != '',
        concat('sha256:', lower(substring(hex(SHA256(attributes['llm.prompt_template.template'])), 1, 16))),
        ''
    ) as template_version
from (
    select
        *,
        endsWith(scope_name, 'llama_index') and arrayAll(document -> ifNull(document.3, 0) = 0, listed) as is_unscored
    from (
        select
            *,
            if(
                is_json_better,
                arrayMap(
                    (document, at) -> (toUInt32(at - 1), document.1, coalesce(document.2, document.5), document.3, document.4),
                    from_json,
                    arrayEnumerate(from_json)
                ),
                arraySort(
                    document -> document.1,
                    arrayConcat(
                        arrayMap(
                            (document, other) -> (
                                document.1,
                                if(document.4 is null or other.3 is null or document.4 = other.3, coalesce(document.2, other.1, document.6), coalesce(document.2, document.6)),
                                document.3,
                                document.4,
                                if(document.5 = '', other.4, document.5)
                            ),
                            flat,
                            if(
                                length(from_json) = length(flat),
                                from_json,
                                arrayResize(
                                    []::Array(Tuple(Nullable(String), Nullable(Float64), Nullable(String), String, Nullable(Float64))),
                                    length(flat)
                                )
                            )
                        ),
                        arrayMap(
                            index -> (toUInt32(index), null::Nullable(String), null::Nullable(Float64), null::Nullable(String), ''),
                            arrayFilter(index -> not has(indices, index), range(if(empty(indices), 0, indices[-1])))
                        )
                    )
                )
            ) as listed
        from (
            select
                *,
                (empty(flat) and list_text != '') or (is_gapped and length(from_json) > indices[-1]) as is_json_better,
                is_said_whole or length(told) >= if(empty(said), 1, said[-1].1 + 1) as is_prompt_whole,
                arrayFilter(
                    message -> message.2 != '',
                    if(is_prompt_whole and not is_said_whole, told, arrayMap(message -> (message.2, message.3), said))
                ) as messages
            from (
                select
                    *,
                    rag_json_documents(list_text) as from_json,
                    arrayMap(document -> document.1, flat) as indices,
                    notEmpty(flat)
                    and (
                        length(flat) != flat[-1].1 + 1
                        or arrayExists(document -> document.2 is null and document.3 is null and document.4 is null and not document.7, flat)
                    ) as is_gapped,
                    notEmpty(said) and said[-1].1 + 1 = length(said) as is_said_whole
                from (
                    select
                        *,
                        if(
                            output_list != ''
                            and (JSONType(output_list, 1) in ('Object', 'Null') or JSONType(JSONExtractString(output_list, 1)) = 'Object'),
                            output_list,
                            if(stage = 'retrieve', rag_json_list(attributes['gen_ai.retrieval.documents']), '')
                        ) as list_text,
                        arrayMap(
                            group -> (
                                group.1,
                                nullIf(group.2['document.id'], ''),
                                coalesce(
                                    if(isFinite(ifNull(toFloat64OrNull(group.2['document.score']), nan)), toFloat64OrNull(group.2['document.score']), null),
                                    JSONExtract(group.2['document.metadata'], 'relevance_score', 'Nullable(Float64)'),
                                    JSONExtract(group.2['document.metadata'], 'score', 'Nullable(Float64)')
                                ),
                                nullIf(nullIf(group.2['document.content'], ''), '__REDACTED__'),
                                ifNull(
                                    arrayFirst(
                                        id -> id != '',
                                        arrayMap(
                                            ids -> [ids.1, ids.2, ids.3, null],
                                            [
                                                JSONExtract(
                                                    group.2['document.metadata'],
                                                    'Tuple(doc_id Nullable(String), document_id Nullable(String), ref_doc_id Nullable(String))'
                                                )
                                            ]
                                        )[1]
                                    ),
                                    ''
                                ),
                                arrayMap(
                                    ids -> nullIf(coalesce(ids.1, ids.2, ids.3), ''),
                                    [
                                        JSONExtract(
                                            group.2['document.metadata'],
                                            'Tuple(_id Nullable(String), chunk_id Nullable(String), node_id Nullable(String))'
                                        )
                                    ]
                                )[1],
                                group.2['document.content'] = '__REDACTED__'
                            ),
                            hits
                        ) as flat,
                        arrayMap(
                            group -> (
                                group.1,
                                group.2['message.role'],
                                arrayFirst(
                                    text -> text != '',
                                    [
                                        group.2['message.content'],
                                        group.2['prompt.text'],
                                        group.2[''],
                                        arrayStringConcat(
                                            arrayFilter(
                                                text -> text != '',
                                                arrayMap(
                                                    content -> content.2['message_content.text'],
                                                    rag_indexed(group.2, 'message.contents.')
                                                )
                                            ),
                                            '\n\n'
                                        )
                                    ]
                                )
                            ),
                            spoken
                        ) as said,
                        arrayConcat(
                            arrayFilter(
                                reply -> reply.2 != '',
                                arrayMap(
                                    group -> (
                                        'assistant',
                                        arrayFirst(
                                            text -> text != '',
                                            [
                                                group.2['message.content'],
                                                arrayStringConcat(
                                                    arrayMap(
                                                        content -> content.2,
                                                        arraySort(
                                                            content -> toUInt32OrZero(extract(content.1, '(\\d+)')),
                                                            arrayFilter(
                                                                content -> match(content.1, '^message\\.contents\\.\\d+\\.message_content\\.text$'),
                                                                arrayZip(mapKeys(group.2), mapValues(group.2))
                                                            )
                                                        )
                                                    ),
                                                    '\n\n'
                                                )
                                            ]
                                        )
                                    ),
                                    replied
                                )
                            ),
                            gen_ai_replies
                        ) as replies
                    from (
                        select
                            *,
                            attributes['output.value'] as output,
                            attributes['input.value'] as input,
                            attributes['metadata'] as properties,
                            if(stage in ('retrieve', 'rerank'), rag_json_list(attributes['output.value']), '') as output_list,
                            if(
                                stage in ('retrieve', 'rerank'),
                                rag_indexed(attributes, if(stage = 'rerank', 'reranker.output_documents.', 'retrieval.documents.')),
                                []
                            ) as hits,
                            if(stage = 'rerank', rag_indexed(attributes, 'reranker.input_documents.'), []) as taken,
                            if(
                                stage = 'generate',
                                arrayConcat(rag_indexed(attributes, 'llm.input_messages.'), rag_indexed(attributes, 'llm.prompts.')),
                                []
                            ) as spoken,
                            if(stage = 'generate', rag_indexed(attributes, 'llm.output_messages.'), []) as replied,
                            rag_json_question(attributes['input.value']) as asked,
                            rag_json_answer(attributes['output.value']) as answered,
                            if(stage = 'generate', rag_json_messages(attributes['gen_ai.output.messages']), []) as gen_ai_replies,
                            if(
                                stage = 'generate',
                                rag_json_messages(
                                    multiIf(
                                        attributes['llm.prompts'] != '', attributes['llm.prompts'],
                                        attributes['gen_ai.input.messages'] != '', attributes['gen_ai.input.messages'],
                                        JSONType(attributes['input.value'], 'messages') = 'Array', attributes['input.value'],
                                        ''
                                    )
                                ),
                                []
                            ) as told
                        from rag_openinference_in
                    )
                )
            )
        )
    )
)
