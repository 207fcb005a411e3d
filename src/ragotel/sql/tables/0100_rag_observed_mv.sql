-- answers: what do spans of Langfuse and MLflow say, which record the inputs and the output of a function?
-- grain:   fills rag_foreign_read at insert, one row per span
-- reads:   rag_observed_in
-- What a function takes is not what a model reads: a prompt is read only where chat messages are among the
-- inputs. Langfuse counts cached tokens apart, so they are added to the input again.
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
    status_code,
    convention,
    stage,
    attributes['session.id'] as session_id,
    attributes['user.id'] as user_id,
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
    if(
        JSONType(attributes['langfuse.trace.metadata.index_name']) = 'String',
        JSONExtractString(attributes['langfuse.trace.metadata.index_name']),
        attributes['langfuse.trace.metadata.index_name']
    ) as index_name,
    if(
        JSONType(attributes['langfuse.trace.metadata.index_version']) = 'String',
        JSONExtractString(attributes['langfuse.trace.metadata.index_version']),
        attributes['langfuse.trace.metadata.index_version']
    ) as index_version,
    '' as filter,
    multiIf(
        convention = 'langfuse', attributes['langfuse.observation.model.name'],
        JSONType(attributes['mlflow.llm.model']) = 'String', JSONExtractString(attributes['mlflow.llm.model']),
        JSONType(attributes['model_name']) = 'String', JSONExtractString(attributes['model_name']),
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
                rag_json_number(usage, 'input_tokens'),
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
    if(
        stage = 'generate' and JSONType(output, 'choices', 1, 'finish_reason') = 'String',
        [JSONExtractString(output, 'choices', 1, 'finish_reason')],
        []
    ) as finish_reasons,
    rag_json_number(attributes['langfuse.observation.model.parameters'], 'temperature') as temperature,
    null::Nullable(Float64) as first_token_ms,
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
        rag_json_documents(list_text) as listed,
        rag_json_documents(given_text) as given
    from (
        select
            *,
            rag_json_question(input) as asked,
            rag_json_answer(output) as answered,
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
                )
            ) as messages
        from (
            select
                *,
                if(convention = 'langfuse', attributes['langfuse.observation.input'], attributes['mlflow.spanInputs']) as input,
                if(convention = 'langfuse', attributes['langfuse.observation.output'], attributes['mlflow.spanOutputs']) as output,
                if(convention = 'langfuse', attributes['langfuse.observation.usage_details'], attributes['mlflow.chat.tokenUsage']) as usage
            from rag_observed_in
        )
    )
)
