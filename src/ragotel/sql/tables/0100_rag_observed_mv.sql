-- answers: what do spans of Langfuse and MLflow say, which record the inputs and the output of a function?
-- grain:   fills rag_foreign_read at insert, one row per span
-- reads:   rag_observed_in
-- What a function takes is not what a model reads: a prompt is read only where chat messages are among the
-- inputs, or its input is bare text. Langfuse counts cached tokens apart, so they are added to the input again.
create materialized view if not exists rag_observed_mv to rag_foreign_read as
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
    if(attributes['langfuse.observation.level'] = 'ERROR', 'Error', status_code) as status_code,
    convention,
    stage,
    arrayFirst(
        id -> id != '',
        [attributes['session.id'], attributes['langfuse.session.id'], JSONExtractString(attributes['mlflow.trace.session'])]
    ) as session_id,
    arrayFirst(
        id -> id != '',
        [attributes['user.id'], attributes['langfuse.user.id'], JSONExtractString(attributes['mlflow.trace.user'])]
    ) as user_id,
    if(
        stage = 'generate',
        arrayLast(message -> message.1 = 'user', messages).2,
        asked
    ) as question,
    if(stage in ('retrieve', 'rerank'), '', answered) as answer,
    arrayMap(document -> (document.1, coalesce(document.2, document.5), document.3, document.4), listed) as documents,
    if(list_text = '', null, toUInt32(length(listed)))::Nullable(UInt32) as candidate_count,
    arrayMap(document -> ifNull(document.3, ''), given) as taken_in,
    if(given_text = '', null, toUInt32(length(given)))::Nullable(UInt32) as in_count,
    multiIf(
        stage not in ('retrieve', 'rerank'), 'not_recorded',
        list_text != '' and empty(listed), 'empty',
        list_text != '', 'whole',
        match(output, '^\\s*[\\[{]') and not isValidJSON(output), if(match(output, '[\\]}]\\s*$'), 'malformed', 'truncated'),
        output = '' and input = '', 'off',
        'not_recorded'
    ) as evidence,
    arrayFirst(
        name -> name != '',
        arrayMap(
            written -> if(JSONType(written) = 'String', JSONExtractString(written), written),
            [attributes['langfuse.observation.metadata.index_name'], attributes['langfuse.trace.metadata.index_name']]
        )
    ) as index_name,
    arrayFirst(
        name -> name != '',
        arrayMap(
            written -> if(JSONType(written) = 'String', JSONExtractString(written), written),
            [attributes['langfuse.observation.metadata.index_version'], attributes['langfuse.trace.metadata.index_version']]
        )
    ) as index_version,
    '' as filter,
    multiIf(
        convention = 'langfuse', attributes['langfuse.observation.model.name'],
        JSONType(attributes['mlflow.llm.model']) = 'String', JSONExtractString(attributes['mlflow.llm.model']),
        JSONType(attributes['model_name']) = 'String', JSONExtractString(attributes['model_name']),
        stage = 'generate', rag_json_string(input, 'model'),
        ''
    ) as model,
    if(JSONType(attributes['mlflow.llm.provider']) = 'String', JSONExtractString(attributes['mlflow.llm.provider']), '') as provider,
    if(
        stage in ('retrieve', 'rerank'),
        accurateCastOrNull(
            coalesce(
                rag_json_number(input, 'top_k'),
                rag_json_number(input, 'k'),
                rag_json_number(input, 'top_n'),
                rag_json_number(JSONExtractRaw(input, 'kwargs'), 'top_k'),
                rag_json_number(JSONExtractRaw(input, 'kwargs'), 'k'),
                rag_json_number(JSONExtractRaw(input, 'kwargs'), 'top_n'),
                toFloat64OrNull(attributes['top_n'])
            ),
            'UInt32'
        ),
        null
    ) as top_k,
    arrayExists(document -> document.2 is null and document.5 is not null, listed) as is_distance,
    if(
        convention = 'langfuse',
        accurateCastOrNull(
            coalesce(
                rag_json_number(usage, 'input')
                + ifNull(rag_json_number(usage, 'input_cache_read'), 0)
                + ifNull(rag_json_number(usage, 'input_cache_creation'), 0),
                rag_json_number(usage, 'input_tokens')
                + ifNull(rag_json_number(usage, 'cache_read_input_tokens'), 0)
                + ifNull(rag_json_number(usage, 'cache_creation_input_tokens'), 0),
                rag_json_number(usage, 'prompt_tokens')
            ),
            'UInt64'
        ),
        accurateCastOrNull(rag_json_number(usage, 'input_tokens'), 'UInt64')
    ) as input_tokens,
    if(
        convention = 'langfuse',
        accurateCastOrNull(
            coalesce(
                rag_json_number(usage, 'output'),
                rag_json_number(usage, 'output_tokens'),
                rag_json_number(usage, 'completion_tokens')
            ),
            'UInt64'
        ),
        accurateCastOrNull(rag_json_number(usage, 'output_tokens'), 'UInt64')
    ) as output_tokens,
    arrayFilter(
        reason -> reason != '' and stage = 'generate',
        [
            arrayFirst(
                reason -> reason != '',
                [
                    JSONExtractString(output, 'choices', 1, 'finish_reason'),
                    JSONExtractString(output, 'finish_reason'),
                    JSONExtractString(output, 'stop_reason'),
                    JSONExtractString(output, 'generations', 1, 1, 'message', 'response_metadata', 'finish_reason')
                ]
            )
        ]
    ) as finish_reasons,
    coalesce(
        rag_json_number(attributes['langfuse.observation.model.parameters'], 'temperature'),
        if(stage = 'generate', rag_json_number(input, 'temperature'), null)
    ) as temperature,
    if(streamed_at >= started_at, (toUnixTimestamp64Nano(streamed_at) - toUnixTimestamp64Nano(started_at)) / 1e6, null) as first_token_ms,
    if(stage = 'generate', arrayStringConcat(arrayMap(message -> message.2, messages), '\n\n'), '') as prompt,
    multiIf(
        stage != 'generate', '',
        notEmpty(messages), 'full',
        input = '', 'off',
        not isValidJSON(input) and match(input, '^\\s*[\\[{]'), 'truncated',
        ''
    ) as prompt_state,
    if(
        convention = 'langfuse',
        attributes['langfuse.observation.prompt.name'],
        rag_json_id(JSONExtractRaw(attributes['mlflow.linkedPrompts'], 1), 'name')
    ) as template_name,
    if(
        convention = 'langfuse',
        attributes['langfuse.observation.prompt.version'],
        rag_json_id(JSONExtractRaw(attributes['mlflow.linkedPrompts'], 1), 'version')
    ) as template_version
from (
    select
        *,
        if(stage = 'rerank', rag_json_ranked(list_text, from_list, given), from_list) as listed
    from (
        select
            *,
            rag_json_documents(list_text) as from_list,
            rag_json_documents(given_text) as given
        from (
            select
                *,
                rag_json_question(input) as asked,
                rag_json_answer(output) as answered,
                parseDateTime64BestEffortOrNull(trimBoth(attributes['langfuse.observation.completion_start_time'], '"'), 9, 'UTC') as streamed_at,
                if(stage in ('retrieve', 'rerank'), rag_json_list(output), '') as list_text,
                if(
                    stage != 'rerank',
                    '',
                    arrayFirst(
                        list -> list != '',
                        arrayMap(
                            part -> rag_json_list(part),
                            arrayConcat(
                                [input, JSONExtractRaw(input, 'kwargs')],
                                arrayFilter(argument -> JSONType(argument) = 'Array', JSONExtractArrayRaw(input, 'args'))
                            )
                        )
                    )
                ) as given_text,
                arrayFirst(
                    list -> arrayExists(message -> message.1 in ('system', 'user', 'developer'), list),
                    arrayConcat(
                        arrayMap(
                            list -> rag_json_messages(list),
                            if(
                                stage = 'generate',
                                arrayConcat(
                                    [input, JSONExtractRaw(input, 'kwargs'), JSONExtractRaw(input, 'input')],
                                    JSONExtractArrayRaw(input, 'args')
                                ),
                                []
                            )
                        ),
                        [
                            arrayFilter(
                                message -> message.2 != '' and stage = 'generate',
                                multiIf(
                                    JSONType(input) = 'String', [('user', JSONExtractString(input))],
                                    not match(input, '^\\s*[\\[{]'), [('user', input)],
                                    JSONType(input) = 'Array' and JSONLength(input) = 1, [('user', JSONExtractString(input, 1))],
                                    JSONHas(input, 'model'),
                                    [('system', rag_json_string(input, 'instructions')), ('user', rag_json_string(input, 'input'))],
                                    []
                                )
                            )
                        ]
                    )
                ) as messages
            from (
                select
                    *,
                    multiIf(
                        convention != 'langfuse', attributes['mlflow.spanInputs'],
                        stage = 'chain' and attributes['langfuse.trace.input'] != '', attributes['langfuse.trace.input'],
                        attributes['langfuse.observation.input']
                    ) as input,
                    multiIf(
                        convention != 'langfuse', attributes['mlflow.spanOutputs'],
                        stage = 'chain' and attributes['langfuse.trace.output'] != '', attributes['langfuse.trace.output'],
                        attributes['langfuse.observation.output']
                    ) as output,
                    if(convention = 'langfuse', attributes['langfuse.observation.usage_details'], attributes['mlflow.chat.tokenUsage']) as usage
                from rag_observed_in
            )
        )
    )
)
