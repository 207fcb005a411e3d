-- answers: what do spans with gen_ai keys say (OpenTelemetry GenAI, Traceloop, vector clients)?
-- grain:   fills rag_foreign_read at insert, one row per span
-- reads:   rag_genai_in
-- The list is gen_ai.retrieval.documents, else the output of the traced call, else one event per hit. An absent
-- list is 'off' where the query is absent too, as content is off by default; never 'empty'.
create materialized view if not exists rag_genai_mv to rag_foreign_read as
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
    if(attributes['error.type'] != '' and status_code != 'Ok', 'Error', status_code) as status_code,
    convention,
    stage,
    arrayFirst(
        id -> id != '',
        [
            attributes['gen_ai.conversation.id'],
            attributes['session.id'],
            attributes['traceloop.association.properties.session_id']
        ]
    ) as session_id,
    arrayFirst(
        id -> id != '',
        [
            attributes['user.id'],
            attributes['enduser.id'],
            attributes['traceloop.association.properties.user_id'],
            attributes['gen_ai.user']
        ]
    ) as user_id,
    multiIf(
        stage = 'generate', arrayLast(message -> message.1 = 'user', messages).2,
        attributes['gen_ai.retrieval.query.text'] != '', attributes['gen_ai.retrieval.query.text'],
        attributes['gen_ai.rerank.query.text'] != '', attributes['gen_ai.rerank.query.text'],
        attributes['db.marqo.search.query'] != '', attributes['db.marqo.search.query'],
        stage = 'rerank' and notEmpty(messages), arrayLast(message -> message.1 = 'user', messages).2,
        call_input != '', asked,
        stage = 'chain', arrayLast(message -> message.1 = 'user', messages).2,
        ''
    ) as question,
    multiIf(
        stage in ('retrieve', 'rerank'), '',
        notEmpty(replies), replies[1].2,
        answered
    ) as answer,
    arrayMap(
        document -> (document.1, coalesce(document.2, document.5), document.3, document.4),
        listed
    ) as documents,
    if(list_text != '' or notEmpty(listed), greatest(toUInt32(length(listed)), ifNull(stated_count, 0)), stated_count)::Nullable(UInt32) as candidate_count,
    taken_texts as taken_in,
    if(empty(taken_texts), null, toUInt32(length(taken_texts)))::Nullable(UInt32) as in_count,
    multiIf(
        stage not in ('retrieve', 'rerank'), 'not_recorded',
        list_text != '' and length(listed) < ifNull(stated_count, 0), 'truncated',
        list_text = '[]' or (list_text != '' and empty(listed)), 'empty',
        list_text != '', 'whole',
        notEmpty(listed), if(length(listed) < ifNull(stated_count, 0) or (length(event_names) >= 128 and ifNull(wanted, 129) > 128), 'truncated', 'whole'),
        list_source != '' and match(list_source, '^\\s*[\\[{]') and not isValidJSON(list_source),
        if(match(list_source, '[\\]}]\\s*$'), 'malformed', 'truncated'),
        attributes['gen_ai.retrieval.documents'] != '', 'malformed',
        mapContains(attributes, 'db.system'), 'not_recorded',
        attributes['gen_ai.retrieval.query.text'] = '' and call_input = '' and call_output = '' and attributes['gen_ai.operation.name'] in ('retrieval', 'vector_db_retrieve'), 'off',
        'not_recorded'
    ) as evidence,
    arrayFirst(
        name -> name != '',
        [
            attributes['gen_ai.data_source.id'],
            attributes['db.collection.name'],
            arrayFirst((value, key) -> endsWith(key, '.collection_name'), mapValues(attributes), mapKeys(attributes)),
            attributes['pinecone.query.namespace'],
            attributes['traceloop.association.properties.index_name']
        ]
    ) as index_name,
    attributes['traceloop.association.properties.index_version'] as index_version,
    arrayFirst(
        text -> text != '',
        [
            attributes['db.chroma.query.where'],
            attributes['pinecone.query.filter'],
            attributes['db.milvus.search.filter']
        ]
    ) as filter,
    arrayFirst(
        name -> name != '',
        [attributes['gen_ai.request.model'], attributes['gen_ai.response.model'], attributes['llm.request.model'], attributes['llm.response.model']]
    ) as model,
    arrayFirst(
        name -> name != '',
        [attributes['gen_ai.provider.name'], attributes['gen_ai.system'], attributes['llm.vendor'], attributes['db.system']]
    ) as provider,
    wanted as top_k,
    arrayExists(document -> document.2 is null and document.5 is not null, listed)
    and (not has(event_names, 'db.search.result') or match(attributes['db.milvus.search.search_params'], '(?i)\\b(L2|HAMMING|JACCARD)\\b')) as is_distance,
    coalesce(toUInt64OrNull(attributes['gen_ai.usage.input_tokens']), toUInt64OrNull(attributes['gen_ai.usage.prompt_tokens']), toUInt64OrNull(attributes['llm.usage.prompt_tokens'])) as input_tokens,
    coalesce(toUInt64OrNull(attributes['gen_ai.usage.output_tokens']), toUInt64OrNull(attributes['gen_ai.usage.completion_tokens']), toUInt64OrNull(attributes['llm.usage.completion_tokens'])) as output_tokens,
    arrayFirst(
        reasons -> notEmpty(reasons),
        [
            rag_json_reasons(
                arrayFirst(
                    written -> written != '',
                    [
                        attributes['gen_ai.response.finish_reasons'],
                        attributes['gen_ai.response.finish_reason'],
                        attributes['llm.response.finish_reason']
                    ]
                )
            ),
            arrayFilter(reason -> reason != '', arrayMap(group -> group.2['finish_reason'], flat_reply)),
            arrayFilter(
                reason -> reason != '',
                arrayMap(
                    event -> if(event['finish_reason'] = '', rag_json_string(event['gen_ai.event.content'], 'finish_reason'), event['finish_reason']),
                    arrayFilter((event, name) -> name = 'gen_ai.choice', event_attributes, event_names)
                )
            ),
            arrayFilter(
                reason -> reason != '',
                arrayMap(raw -> rag_json_string(raw, 'finish_reason'), if(stage = 'generate', JSONExtractArrayRaw(reply_text), []))
            )
        ]
    ) as finish_reasons,
    toFloat64OrNull(attributes['gen_ai.request.temperature']) as temperature,
    coalesce(toFloat64OrNull(attributes['gen_ai.response.time_to_first_chunk']) * 1000, toFloat64OrNull(attributes['ragotel.first_event_ms'])) as first_token_ms,
    if(stage = 'generate', arrayStringConcat(arrayMap(message -> message.2, messages), '\n\n'), '') as prompt,
    multiIf(
        stage != 'generate', '',
        notEmpty(messages), if(is_message_lost, 'truncated', 'full'),
        is_message_lost, 'truncated',
        attributes['gen_ai.input.messages'] != '' or attributes['gen_ai.output.messages'] != '', '',
        'off'
    ) as prompt_state,
    if(attributes['gen_ai.prompt.name'] = '', attributes['traceloop.prompt.key'], attributes['gen_ai.prompt.name']) as template_name,
    if(attributes['gen_ai.prompt.version'] = '', attributes['traceloop.prompt.version'], attributes['gen_ai.prompt.version']) as template_version
from (
    select
        *,
        multiIf(
            list_text != '', if(stage = 'rerank', rag_json_ranked(list_text, from_json, given), from_json),
            notEmpty(numbered), scored,
            from_events
        ) as listed,
        if(empty(given), numbered, arrayMap(document -> ifNull(document.3, ''), given)) as taken_texts
    from (
        select
            *,
            rag_json_documents(list_text) as from_json,
            rag_json_documents(given_text) as given,
            arrayMap(
                hit -> (
                    null::Nullable(String),
                    toFloat64OrNull(extract(hit, 'Score: ([-+.0-9eE]+)')),
                    nullIf(numbered[toUInt32OrZero(extract(hit, '^Doc (\\d+)')) + 1], ''),
                    '',
                    null::Nullable(Float64)
                ),
                arrayFilter(
                    hit -> match(hit, '^Doc \\d+, Score: '),
                    arrayFlatten(arrayMap(reply -> splitByChar('\n', reply.2), replies))
                )
            ) as scored
        from (
            select
                *,
                if(stage in ('retrieve', 'rerank'), rag_json_list(list_source), '') as list_text,
                arrayFirst(
                    list -> list != '',
                    arrayMap(
                        part -> rag_json_list(part),
                        if(
                            stage = 'rerank',
                            arrayConcat(
                                [attributes['gen_ai.rerank.input_documents'], call_input, JSONExtractRaw(call_input, 'kwargs')],
                                arrayFilter(argument -> JSONType(argument) = 'Array', JSONExtractArrayRaw(call_input, 'args'))
                            ),
                            []
                        )
                    )
                ) as given_text,
                if(
                    stage = 'rerank',
                    arrayMap(message -> message.2, arrayFilter(message -> message.1 in ('system', 'document'), messages)),
                    []
                ) as numbered
            from (
                select
                    *,
                    arrayFirst(
                        text -> text != '',
                        [attributes['gen_ai.retrieval.documents'], attributes['gen_ai.rerank.output_documents'], call_output]
                    ) as list_source,
                    coalesce(
                        accurateCastOrNull(rag_json_number(call_output, 'count'), 'UInt32'),
                        toUInt32OrNull(attributes['db.milvus.search.result_count'])
                    ) as stated_count,
                    multiIf(
                        not is_spoken, [],
                        notEmpty(flat_prompt),
                        arrayMap(
                            (group, parts) -> (group.2['role'], if(empty(parts), group.2['content'], arrayStringConcat(arrayMap(part -> part.2, parts), '\n\n'))),
                            flat_prompt,
                            arrayMap(group -> rag_json_messages(if(startsWith(group.2['content'], '['), group.2['content'], '')), flat_prompt)
                        ),
                        input_text != '' and not match(input_text, '^\\s*[\\[{]'), [('user', input_text)],
                        notEmpty(from_text), arrayConcat(arrayMap(message -> ('system', message.2), instructed), from_text),
                        notEmpty(from_message_events), from_message_events,
                        JSONType(call_input, 'args', 1) = 'String' and stage = 'generate', [('user', JSONExtractString(call_input, 'args', 1))],
                        []
                    ) as all_messages,
                    arrayFilter(message -> message.2 != '', all_messages) as messages,
                    match(input_text, '^\\s*[\\[{]') and not isValidJSON(input_text)
                    or (notEmpty(flat_prompt) and flat_prompt[-1].1 + 1 != length(flat_prompt)) as is_message_lost,
                    arrayFilter(
                        message -> message.2 != '',
                        multiIf(
                            not is_spoken, [],
                            notEmpty(flat_reply), arrayMap(group -> ('assistant', group.2['content']), flat_reply),
                            notEmpty(from_reply), from_reply,
                            arrayMap(
                                event -> (
                                    'assistant',
                                    arrayFirst(
                                        text -> text != '',
                                        [event['content'], rag_json_answer(if(event['message'] = '', event['gen_ai.event.content'], event['message']))]
                                    )
                                ),
                                arrayFilter((event, name) -> name = 'gen_ai.choice', event_attributes, event_names)
                            )
                        )
                    ) as replies
                from (
                    select
                        *,
                        rag_json_messages(if(is_spoken, if(input_text = '' and stage = 'generate', call_input, input_text), '')) as from_text,
                        rag_json_messages(if(is_spoken, reply_text, '')) as from_reply,
                        rag_json_question(call_input) as asked,
                        rag_json_answer(call_output) as answered,
                        rag_json_messages(if(is_spoken, instructions, '')) as instructed,
                        if(is_spoken, rag_indexed(attributes, if(mapContains(attributes, 'llm.prompts.0.content'), 'llm.prompts.', 'gen_ai.prompt.')), []) as flat_prompt,
                        if(is_spoken, rag_indexed(attributes, if(mapContains(attributes, 'llm.completions.0.content'), 'llm.completions.', 'gen_ai.completion.')), []) as flat_reply
                    from (
                        select
                            *,
                            stage in ('generate', 'rerank', 'chain') as is_spoken,
                            if(attributes['traceloop.entity.input'] = '', attributes['gen_ai.task.input'], attributes['traceloop.entity.input']) as call_input,
                            if(attributes['traceloop.entity.output'] = '', attributes['gen_ai.task.output'], attributes['traceloop.entity.output']) as call_output,
                            arrayFirst(
                                text -> text != '',
                                [attributes['gen_ai.input.messages'], details['gen_ai.input.messages'], attributes['gen_ai.prompt'], details['gen_ai.prompt']]
                            ) as input_text,
                            arrayFirst(
                                text -> text != '',
                                [attributes['gen_ai.output.messages'], details['gen_ai.output.messages'], reply_details['gen_ai.completion']]
                            ) as reply_text,
                            if(attributes['gen_ai.system_instructions'] = '', details['gen_ai.system_instructions'], attributes['gen_ai.system_instructions']) as instructions,
                            coalesce(
                                toUInt32OrNull(attributes['gen_ai.retrieval.top_k']),
                                toUInt32OrNull(attributes['rerank.top_n']),
                                toUInt32OrNull(attributes['db.vector.query.top_k']),
                                toUInt32OrNull(attributes['db.chroma.query.n_results']),
                                toUInt32OrNull(attributes['pinecone.query.top_k']),
                                toUInt32OrNull(attributes['db.milvus.search.limit']),
                                if(stage = 'retrieve', accurateCastOrNull(toFloat64OrNull(attributes['gen_ai.request.top_k']), 'UInt32'), null),
                                if(
                                    stage in ('retrieve', 'rerank'),
                                    arrayFirst(
                                        number -> number is not null,
                                        arrayMap(
                                            part -> arrayMap(
                                                named -> coalesce(named.1, named.2, named.3),
                                                [JSONExtract(part, 'Tuple(top_k Nullable(UInt32), k Nullable(UInt32), top_n Nullable(UInt32))')]
                                            )[1],
                                            [call_input, JSONExtractRaw(call_input, 'kwargs'), '{}']
                                        )
                                    ),
                                    null
                                )
                            ) as wanted
                        from (
                            select
                                *,
                                arrayFirst(
                                    event -> mapContains(event, 'gen_ai.input.messages') or mapContains(event, 'gen_ai.output.messages') or mapContains(event, 'gen_ai.prompt'),
                                    event_attributes
                                ) as details,
                                arrayFirst(event -> mapContains(event, 'gen_ai.completion'), event_attributes) as reply_details,
                                arrayMap(
                                    (event, name) -> (splitByChar('.', name)[2], if(event['content'] = '', rag_json_string(event['gen_ai.event.content'], 'content'), event['content'])),
                                    arrayFilter((event, name) -> match(name, '^gen_ai\\.(system|user|assistant|tool)\\.message$'), event_attributes, event_names),
                                    arrayFilter(name -> match(name, '^gen_ai\\.(system|user|assistant|tool)\\.message$'), event_names)
                                ) as from_message_events,
                                arrayMap(
                                    event -> (
                                        nullIf(if(event['db.query.result.id'] = '', event['db.search.result.id'], event['db.query.result.id']), ''),
                                        toFloat64OrNull(event['db.query.result.score']),
                                        nullIf(event['db.query.result.document'], ''),
                                        rag_json_id(event['db.query.result.metadata'], 'doc_id'),
                                        coalesce(toFloat64OrNull(event['db.query.result.distance']), toFloat64OrNull(event['db.search.result.distance']))
                                    ),
                                    arrayFilter((event, name) -> name in ('db.query.result', 'db.search.result'), event_attributes, event_names)
                                ) as from_events
                            from rag_genai_in
                        )
                    )
                )
            )
        )
    )
)
