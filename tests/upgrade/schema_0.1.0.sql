-- The tables and functions of ragotel 0.1.0, as `ragotel init --print` gave them: never changed again.
-- The views are left out: they hold no data, and every migration makes them anew.


-- functions/rag_contains.sql
-- answers: does this normalised text state this normalised claim?
-- grain:   one function
-- reads:   nothing
-- No letter or digit may adjoin a letter or digit at the claim's ends: '10 seats' is not in '110 seats'.
-- The byte search and the characters beside its first find decide nearly all rows. Only a find that is part of a
-- longer word needs the pattern, which is compiled for each row and costs a thousand times more.
create or replace function rag_contains as (body, claim) ->
    multiIf(
        claim = '' or position(body, claim) = 0, 0,
        (
            not match(claim, '^[\\pL\\pN]')
            or not match(substring(body, greatest(position(body, claim) - 4, 1), least(position(body, claim) - 1, 4)), '[\\pL\\pN]$')
        )
        and (
            not match(claim, '[\\pL\\pN]$')
            or not match(substring(body, position(body, claim) + length(claim), 4), '^[\\pL\\pN]')
        ), 1,
        match(
            body,
            concat(
                if(match(claim, '^[\\pL\\pN]'), '(?:^|[^\\pL\\pN])', ''),
                regexpQuoteMeta(claim),
                if(match(claim, '[\\pL\\pN]$'), '(?:$|[^\\pL\\pN])', '')
            )
        )
    );

-- functions/rag_foreign_convention.sql
-- answers: which convention did another instrumentation write this span by?
-- grain:   one function; '' where it is none that is read
-- reads:   nothing
-- OpenInference first: it may write gen_ai keys beside its own. Traceloop shares the gen_ai keys and is told by
-- its own keys or the name of its scope.
create or replace function rag_foreign_convention as (attributes, scope, event_names) ->
    multiIf(
        mapContains(attributes, 'openinference.span.kind'), 'openinference',
        mapContains(attributes, 'langfuse.observation.type'), 'langfuse',
        mapContains(attributes, 'mlflow.spanType'), 'mlflow',
        mapContains(attributes, 'traceloop.span.kind')
        or mapContains(attributes, 'llm.request.type')
        or mapContains(attributes, 'gen_ai.is_streaming')
        or (
            match(scope, '^opentelemetry\\.instrumentation\\.(openai(\\.v\\d+)?|anthropic|cohere|mistralai|ollama|groq|bedrock|vertexai|google_generativeai|watsonx|together|replicate|transformers|sagemaker|alephalpha|haystack|langchain|llamaindex|crewai|agno|openai_agents|mcp|writer|voyageai|chromadb|pinecone|qdrant|weaviate|milvus|marqo|lancedb)$')
            and (
                mapContains(attributes, 'gen_ai.operation.name')
                or mapContains(attributes, 'gen_ai.system')
                or mapContains(attributes, 'db.system')
            )
        ), 'traceloop',
        mapContains(attributes, 'gen_ai.operation.name')
        or mapContains(attributes, 'gen_ai.system')
        or mapContains(attributes, 'gen_ai.provider.name'), 'genai',
        has(event_names, 'db.query.result') or has(event_names, 'db.search.result'), 'other',
        ''
    );

-- functions/rag_foreign_stage.sql
-- answers: which stage is a span of another instrumentation?
-- grain:   one function; retrieve, rerank, generate, chain (may be the request), else other
-- reads:   nothing
-- Other is what neither ranks nor answers (embeddings, tools, parsers) and the inner or outer half of a call
-- that its instrumentation always writes twice. docs/conventions.md names each rule.
create or replace function rag_foreign_stage as (convention, attributes, name, scope, event_names) ->
    multiIf(
        convention = 'openinference',
        multiIf(
            attributes['openinference.span.kind'] = 'RETRIEVER',
            if(
                endsWith(scope, 'llama_index')
                and match(name, '\\._a?retrieve$')
                and not arrayExists(key -> startsWith(key, 'retrieval.documents.'), mapKeys(attributes)),
                'other',
                'retrieve'
            ),
            attributes['openinference.span.kind'] = 'RERANKER', 'rerank',
            attributes['openinference.span.kind'] = 'LLM',
            if(
                mapContains(attributes, 'llm.prompt_template.template')
                and not arrayExists(
                    key -> match(key, '^llm\\.(input_messages|output_messages|prompts|token_count)(\\.|$)'),
                    mapKeys(attributes)
                ),
                'other',
                'generate'
            ),
            attributes['openinference.span.kind'] in ('CHAIN', 'AGENT', 'UNKNOWN'), 'chain',
            'other'
        ),
        convention = 'langfuse',
        multiIf(
            attributes['langfuse.observation.type'] = 'retriever', 'retrieve',
            attributes['langfuse.observation.type'] = 'generation', 'generate',
            attributes['langfuse.observation.type'] in ('span', 'chain', 'agent'),
            if(match(lower(name), 're_?rank'), 'rerank', 'chain'),
            'other'
        ),
        convention = 'mlflow',
        multiIf(
            attributes['mlflow.spanType'] = '"RETRIEVER"', 'retrieve',
            attributes['mlflow.spanType'] = '"RERANKER"', 'rerank',
            attributes['mlflow.spanType'] in ('"CHAT_MODEL"', '"LLM"'), 'generate',
            attributes['mlflow.spanType'] in ('"CHAIN"', '"AGENT"', '"UNKNOWN"', '"WORKFLOW"', '"TASK"'), 'chain',
            'other'
        ),
        attributes['gen_ai.operation.name'] in ('retrieval', 'vector_db_retrieve', 'RETRIEVER'), 'retrieve',
        attributes['gen_ai.operation.name'] in ('rerank', 'RERANKER') or attributes['llm.request.type'] = 'rerank', 'rerank',
        attributes['gen_ai.operation.name'] in ('chat', 'text_completion', 'completion', 'generate_content', 'CHAT_MODEL', 'LLM')
        or attributes['llm.request.type'] in ('chat', 'completion'), 'generate',
        attributes['gen_ai.operation.name'] in ('embeddings', 'embedding', 'execute_tool', 'create_agent')
        or attributes['llm.request.type'] = 'embedding'
        or attributes['traceloop.span.kind'] = 'tool', 'other',
        has(event_names, 'db.query.result') or has(event_names, 'db.search.result'), 'retrieve',
        mapContains(attributes, 'db.system') and not mapContains(attributes, 'traceloop.span.kind'),
        if(
            lower(attributes['db.system']) in ('chroma', 'chromadb', 'pinecone', 'qdrant', 'milvus', 'weaviate', 'marqo', 'lancedb')
            and match(lower(name), '(^|[. _])(query|search|hybrid_search|query_points|query_batch_points|recommend|discover|near_text|near_vector|bm25|hybrid)$'),
            'retrieve',
            'other'
        ),
        endsWith(scope, '.llamaindex') and match(name, '^\\w*Retriever\\.(task|workflow)$'),
        if(
            JSONHas(attributes['traceloop.entity.input'], 'query_bundle')
            and not JSONHas(attributes['traceloop.entity.input'], 'str_or_query_bundle'),
            'other',
            'retrieve'
        ),
        endsWith(scope, '.llamaindex')
        and JSONHas(attributes['traceloop.entity.output'], 'raw')
        and (JSONHas(attributes['traceloop.entity.output'], 'text') or JSONHas(attributes['traceloop.entity.output'], 'message')), 'generate',
        endsWith(scope, '.llamaindex') and mapContains(attributes, 'gen_ai.output.messages'), 'other',
        attributes['traceloop.span.kind'] in ('workflow', 'agent', 'task')
        or attributes['gen_ai.operation.name'] in ('invoke_agent', 'invoke_workflow', 'handle_conversation_turn', 'execute_task', 'plan', 'CHAIN', 'AGENT'), 'chain',
        attributes['gen_ai.operation.name'] = ''
        and (
            mapContains(attributes, 'gen_ai.request.model')
            or mapContains(attributes, 'gen_ai.usage.input_tokens')
            or mapContains(attributes, 'gen_ai.usage.prompt_tokens')
        ), 'generate',
        'other'
    );

-- functions/rag_indexed.sql
-- answers: which values stand under flattened keys such as prefix.0.id, prefix.0.text, prefix.1.id?
-- grain:   one function; an array of (index, map of the rest of the key to the value), by index, gaps left out
-- reads:   nothing
-- The one-element array stands for a name: nothing large is captured by a lambda.
create or replace function rag_indexed as (attributes, prefix) ->
    arrayMap(
        entries -> arrayMap(
            group -> (group[1].1, cast(arrayMap(entry -> (entry.2, entry.3), group), 'Map(String, String)')),
            arraySplit((entry, step) -> step != 0, entries, arrayDifference(arrayMap(entry -> entry.1, entries)))
        ),
        [
            arraySort(
                entry -> entry.1,
                arrayMap(
                    entry -> (
                        toUInt32OrZero(extract(entry.1, '^(\\d{1,4})(?:\\.|$)')),
                        extract(entry.1, '^\\d+\\.(.*)$'),
                        entry.2
                    ),
                    arrayFilter(
                        entry -> match(entry.1, '^\\d{1,4}(?:\\.|$)'),
                        arrayMap(
                            (key, value) -> (if(startsWith(key, prefix), substring(key, length(prefix) + 1), ''), value),
                            mapKeys(attributes),
                            mapValues(attributes)
                        )
                    )
                )
            )
        ]
    )[1];

-- functions/rag_json_answer.sql
-- answers: which answer does the output of a call give?
-- grain:   one function; '' where it cannot be told
-- reads:   nothing
-- Plain text is the answer; of JSON the text under a usual name, at the top or one level below, or the first
-- message of the reply.
create or replace function rag_json_answer as (output) ->
    multiIf(
        JSONType(output) = 'String', JSONExtractString(output),
        not match(output, '^\\s*[\\[{]'), output,
        ifNull(
            arrayFirst(
                text -> text != '' and not match(assumeNotNull(text), '^[\\[{]'),
                arrayConcat(
                    arrayFlatten(
                        arrayMap(
                            named -> [named.1, named.2, named.3, named.4, named.5, named.6, named.7, named.8, named.9],
                            arrayMap(
                                part -> JSONExtract(part, 'Tuple(answer Nullable(String), response Nullable(String), output Nullable(String), outputs Nullable(String), result Nullable(String), output_text Nullable(String), text Nullable(String), content Nullable(String), completion Nullable(String))'),
                                arrayConcat([output], arrayMap(key -> JSONExtractRaw(output, key), ['outputs', 'output', 'data', 'response', 'message']))
                            )
                        )
                    ),
                    [
                        rag_json_messages(output)[1].2,
                        if(JSONLength(output) = 1 and JSONType(output, 1) = 'String' and JSONType(output) = 'Object', JSONExtractString(output, 1), ''),
                        null
                    ]
                )
            ),
            ''
        )
    );

-- functions/rag_json_documents.sql
-- answers: which id, score, text, document and distance does each passage of a JSON list have?
-- grain:   one function; an array in the list's order, null where the passage says nothing
-- reads:   nothing
-- A passage is an object, a (passage, score) pair, an object with the passage under node, document, chunk or
-- kwargs, JSON text of one of these, or bare text. A position never becomes an id.
create or replace function rag_json_documents as (list) ->
    arrayMap(
        (whole, inner, bare) -> (
            arrayFirst(
                id -> id != '' and not match(assumeNotNull(id), '^[\\[{]'),
                [inner.1, inner.2, inner.3, inner.4, inner.5, inner.6, inner.7, inner.8, whole.1, whole.2, inner.20 .1, inner.20 .2, inner.20 .3, inner.21 .1, null]
            ),
            coalesce(whole.3, whole.4, inner.10, inner.11, whole.5, whole.6, inner.20 .7, inner.20 .8, inner.20 .9),
            arrayFirst(
                text -> text != '' and text != '{}',
                [inner.12, inner.13, inner.14, inner.15, inner.16, inner.17, inner.18, inner.19, inner.21 .2, inner.21 .3, inner.21 .4, inner.22 .1, inner.23 .1, inner.23 .2, inner.20 .10, bare, null]
            ),
            ifNull(arrayFirst(id -> id != '', [inner.7, inner.8, inner.9, inner.20 .4, inner.20 .5, inner.20 .6, inner.24 .1 .1, null]), ''),
            coalesce(whole.7, whole.8)
        ),
        arrayMap(
            raw -> JSONExtract(
                if(JSONType(raw) = 'Array', concat('{"score":', JSONExtractRaw(raw, 2), '}'), raw),
                'Tuple(id Nullable(String), chunk_id Nullable(String), score Nullable(Float64), relevance_score Nullable(Float64), _score Nullable(Float64), similarity Nullable(Float64), distance Nullable(Float64), _distance Nullable(Float64))'
            ),
            arrayMap(raw -> if(JSONType(raw) = 'String' and JSONType(JSONExtractString(raw)) = 'Object', JSONExtractString(raw), raw), JSONExtractArrayRaw(list))
        ),
        arrayMap(
            raw -> JSONExtract(
                multiIf(
                    JSONType(raw) = 'Array', JSONExtractRaw(raw, 1),
                    JSONType(raw, 'node') = 'Object', JSONExtractRaw(raw, 'node'),
                    JSONType(raw, 'document') = 'Object', JSONExtractRaw(raw, 'document'),
                    JSONType(raw, 'chunk') = 'Object', JSONExtractRaw(raw, 'chunk'),
                    JSONType(raw, 'kwargs') = 'Object', JSONExtractRaw(raw, 'kwargs'),
                    raw
                ),
                'Tuple(id Nullable(String), id_ Nullable(String), chunk_id Nullable(String), node_id Nullable(String), _id Nullable(String), uuid Nullable(String), doc_id Nullable(String), document_id Nullable(String), ref_doc_id Nullable(String), score Nullable(Float64), relevance_score Nullable(Float64), page_content Nullable(String), content Nullable(String), text Nullable(String), document Nullable(String), pageContent Nullable(String), chunk Nullable(String), passage Nullable(String), body Nullable(String), metadata Tuple(_id Nullable(String), chunk_id Nullable(String), node_id Nullable(String), doc_id Nullable(String), document_id Nullable(String), ref_doc_id Nullable(String), relevance_score Nullable(Float64), score Nullable(Float64), _score Nullable(Float64), text Nullable(String)), payload Tuple(chunk_id Nullable(String), text Nullable(String), page_content Nullable(String), content Nullable(String)), text_resource Tuple(text Nullable(String)), _source Tuple(text Nullable(String), content Nullable(String)), relationships Tuple(`1` Tuple(node_id Nullable(String))))'
            ),
            arrayMap(raw -> if(JSONType(raw) = 'String' and JSONType(JSONExtractString(raw)) = 'Object', JSONExtractString(raw), raw), JSONExtractArrayRaw(list))
        ),
        arrayMap(
            raw -> multiIf(
                JSONType(raw) = 'String' and JSONType(JSONExtractString(raw)) != 'Object', JSONExtractString(raw),
                JSONType(raw) = 'Array' and JSONType(raw, 1) = 'String', JSONExtractString(raw, 1),
                ''
            ),
            JSONExtractArrayRaw(list)
        )
    );

-- functions/rag_json_id.sql
-- answers: which id does a key of this JSON object hold?
-- grain:   one function; a text or a whole number, '' where it holds neither
-- reads:   nothing
create or replace function rag_json_id as (json, key) ->
    multiIf(
        JSONType(json, key) = 'String', JSONExtractString(json, key),
        JSONType(json, key) in ('Int64', 'UInt64'), JSONExtractRaw(json, key),
        ''
    );

-- functions/rag_json_list.sql
-- answers: which list of passages does this JSON value hold?
-- grain:   one function; the list's JSON text, '' where there is none
-- reads:   nothing
-- A list itself, one list of a single query, the list under a usual name, or the columns of ids, documents,
-- distances that a vector store returns side by side.
create or replace function rag_json_list as (json) ->
    multiIf(
        JSONType(json) = 'Array' and JSONLength(json) = 1 and JSONType(json, 1) = 'Array' and JSONType(json, 1, 1) in ('Object', 'Null') and JSONType(json, 1, 2) in ('Object', 'Null'), JSONExtractRaw(json, 1),
        JSONType(json) = 'Array', json,
        JSONType(json) != 'Object', '',
        JSONType(json, 'ids', 1) = 'Array',
        concat(
            '[',
            arrayStringConcat(
                arrayMap(
                    (id, text, distance) -> concat('{"id":', id, ',"text":', text, ',"distance":', distance, '}'),
                    JSONExtractArrayRaw(json, 'ids', 1),
                    arrayResize(JSONExtractArrayRaw(json, 'documents', 1), length(JSONExtractArrayRaw(json, 'ids', 1)), 'null'),
                    arrayResize(JSONExtractArrayRaw(json, 'distances', 1), length(JSONExtractArrayRaw(json, 'ids', 1)), 'null')
                ),
                ','
            ),
            ']'
        ),
        JSONType(json, 'documents') = 'Array', JSONExtractRaw(json, 'documents'),
        JSONType(json, 'results') = 'Array', JSONExtractRaw(json, 'results'),
        JSONType(json, 'matches') = 'Array', JSONExtractRaw(json, 'matches'),
        JSONType(json, 'nodes') = 'Array', JSONExtractRaw(json, 'nodes'),
        JSONType(json, 'source_nodes') = 'Array', JSONExtractRaw(json, 'source_nodes'),
        JSONType(json, 'points') = 'Array', JSONExtractRaw(json, 'points'),
        JSONType(json, 'hits', 'hits') = 'Array', JSONExtractRaw(json, 'hits', 'hits'),
        JSONType(json, 'hits') = 'Array', JSONExtractRaw(json, 'hits'),
        JSONType(json, 'passages') = 'Array', JSONExtractRaw(json, 'passages'),
        JSONType(json, 'chunks') = 'Array', JSONExtractRaw(json, 'chunks'),
        JSONType(json, 'docs') = 'Array', JSONExtractRaw(json, 'docs'),
        JSONType(json, 'candidates') = 'Array', JSONExtractRaw(json, 'candidates'),
        JSONType(json, 'objects') = 'Array', JSONExtractRaw(json, 'objects'),
        JSONType(json, 'data') = 'Array', JSONExtractRaw(json, 'data'),
        JSONType(json, 'outputs') = 'Array', JSONExtractRaw(json, 'outputs'),
        JSONType(json, 'output') = 'Array', JSONExtractRaw(json, 'output'),
        ''
    );

-- functions/rag_json_messages.sql
-- answers: who says what in this JSON list of chat messages?
-- grain:   one function; an array of (role, text) in order; pictures and tool calls are left out
-- reads:   nothing
-- The list itself or the one under messages; text parts of one message are joined by a blank line, a tool's
-- answer is text that the model reads. A message may stand under message or kwargs.
create or replace function rag_json_messages as (json) ->
    arrayFilter(
        message -> message.2 != '',
        arrayMap(
            raw -> (
                arrayMap(
                    roles -> transform(ifNull(if(roles.1 = '' or roles.1 is null, roles.2, roles.1), ''), ['human', 'ai'], ['user', 'assistant']),
                    [JSONExtract(raw, 'Tuple(role Nullable(String), type Nullable(String))')]
                )[1],
                arrayStringConcat(
                    arrayFilter(
                        text -> text != '',
                        arrayMap(
                            (part, bare) -> if(
                                part.1 in ('tool_call', 'tool_use', 'function_call', 'image', 'image_url', 'input_image', 'file', 'blob', 'uri', 'audio', 'input_audio', 'reasoning', 'thinking'),
                                '',
                                ifNull(arrayFirst(text -> text != '', [bare, part.2, part.3, part.4, part.5, null]), '')
                            ),
                            arrayMap(
                                part -> JSONExtract(part, 'Tuple(type Nullable(String), content Nullable(String), text Nullable(String), response Nullable(String), result Nullable(String))'),
                                multiIf(
                                    JSONType(raw, 'parts') = 'Array', JSONExtractArrayRaw(raw, 'parts'),
                                    JSONType(raw, 'content') = 'Array', JSONExtractArrayRaw(raw, 'content'),
                                    [raw]
                                )
                            ),
                            arrayMap(
                                part -> if(JSONType(part) = 'String', JSONExtractString(part), ''),
                                multiIf(
                                    JSONType(raw, 'parts') = 'Array', JSONExtractArrayRaw(raw, 'parts'),
                                    JSONType(raw, 'content') = 'Array', JSONExtractArrayRaw(raw, 'content'),
                                    [raw]
                                )
                            )
                        )
                    ),
                    '\n\n'
                )
            ),
            arrayMap(
                raw -> multiIf(
                    JSONType(raw, 'message') = 'Object', JSONExtractRaw(raw, 'message'),
                    JSONType(raw, 'kwargs') = 'Object', JSONExtractRaw(raw, 'kwargs'),
                    raw
                ),
                multiIf(
                    JSONType(json, 'messages', 1) = 'Array', JSONExtractArrayRaw(json, 'messages', 1),
                    JSONType(json, 'messages') = 'Array', JSONExtractArrayRaw(json, 'messages'),
                    JSONType(json, 'choices') = 'Array', JSONExtractArrayRaw(json, 'choices'),
                    JSONType(json, 1) = 'Array', JSONExtractArrayRaw(json, 1),
                    JSONExtractArrayRaw(json)
                )
            )
        )
    );

-- functions/rag_json_number.sql
-- answers: which finite number does a key of this JSON object hold?
-- grain:   one function; null where it holds none
-- reads:   nothing
create or replace function rag_json_number as (json, key) ->
    if(
        JSONType(json, key) in ('Int64', 'UInt64', 'Double') and isFinite(JSONExtractFloat(json, key)),
        JSONExtractFloat(json, key),
        null
    );

-- functions/rag_json_question.sql
-- answers: which question does the input of a call ask?
-- grain:   one function; '' where it cannot be told
-- reads:   nothing
-- Plain text is the question; of JSON the text under a usual name, at the top or one level below, the first
-- positional argument, the only value, or what the user said last.
create or replace function rag_json_question as (input) ->
    multiIf(
        JSONType(input) = 'String', JSONExtractString(input),
        not match(input, '^\\s*[\\[{]'), input,
        ifNull(
            arrayFirst(
                text -> text != '' and not match(assumeNotNull(text), '^[\\[{]'),
                arrayConcat(
                    arrayFlatten(
                        arrayMap(
                            (part, named) -> [named.1, named.2, named.3, named.4, named.5, named.6, named.7, named.8, named.9, named.10, named.11, if(JSONType(part) = 'String', JSONExtractString(part), '')],
                            arrayConcat(
                                arrayMap(key -> JSONExtractRaw(input, key), ['', 'inputs', 'input', 'kwargs', 'str_or_query_bundle', 'query_bundle', 'query', 'data']),
                                arraySlice(JSONExtractArrayRaw(input, 'args'), 1, 1),
                                arrayMap(pair -> pair.2, JSONExtractKeysAndValuesRaw(input, 'data'))
                            ),
                            arrayMap(
                                part -> JSONExtract(part, 'Tuple(question Nullable(String), query Nullable(String), user_query Nullable(String), query_text Nullable(String), query_str Nullable(String), str_or_query_bundle Nullable(String), input Nullable(String), inputs Nullable(String), user_input Nullable(String), message Nullable(String), text Nullable(String))'),
                                arrayConcat(
                                    [input],
                                    arrayMap(key -> JSONExtractRaw(input, key), ['inputs', 'input', 'kwargs', 'str_or_query_bundle', 'query_bundle', 'query', 'data']),
                                    arraySlice(JSONExtractArrayRaw(input, 'args'), 1, 1),
                                    arrayMap(pair -> pair.2, JSONExtractKeysAndValuesRaw(input, 'data'))
                                )
                            )
                        )
                    ),
                    [
                        if(JSONLength(input) = 1 and JSONType(input, 1) = 'String' and JSONType(input) = 'Object', JSONExtractString(input, 1), ''),
                        arrayLast(message -> message.1 = 'user', rag_json_messages(input)).2,
                        null
                    ]
                )
            ),
            ''
        )
    );

-- functions/rag_json_string.sql
-- answers: which text does a key of this JSON object hold?
-- grain:   one function; '' where it holds none or something else
-- reads:   nothing
create or replace function rag_json_string as (json, key) ->
    if(JSONType(json, key) = 'String', JSONExtractString(json, key), '');

-- functions/rag_normalise.sql
-- answers: how is text made comparable, everywhere?
-- grain:   one function
-- reads:   nothing
-- NFKC case folding drops the default-ignorable characters; the class lists all of Unicode White_Space
-- and U+001C to U+001F, because RE2's \s knows ASCII only. ragotel.text.normalise is its twin.
create or replace function rag_normalise as (raw) ->
    replaceRegexpAll(
        normalizeUTF8NFKCCasefold(toValidUTF8(raw)),
        '[\\x{09}-\\x{0D}\\x{1C}-\\x{1F}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}]+',
        ' '
    );

-- functions/rag_positions.sql
-- answers: where in this text does each of these words first stand, in bytes from 1; 0 for none?
-- grain:   one function
-- reads:   nothing
-- The engine takes 255 words at a time; of more than a thousand the rest counts as absent.
create or replace function rag_positions as (body, words) ->
    arrayResize(
        arrayConcat(
            multiSearchAllPositions(body, arraySlice(words, 1, 250)),
            multiSearchAllPositions(body, arraySlice(words, 251, 250)),
            multiSearchAllPositions(body, arraySlice(words, 501, 250)),
            multiSearchAllPositions(body, arraySlice(words, 751, 250))
        ),
        length(words),
        0
    );

-- functions/rag_quantities.sql
-- answers: which quantities does this normalised text state?
-- grain:   one function
-- reads:   nothing
-- An array of (number, unit): the unit is %, eur, usd, gbp, jpy, date (the number is then the whole date), the one or
-- two words that follow, or empty. Numbers in words count from two on, where they stand alone.
create or replace function rag_quantities as (body) ->
    arrayFilter(
        quantity -> quantity.1 != '',
        arrayMap(
            part -> (
                multiIf(
                    match(part, '^(?:\\d{4}-\\d\\d-\\d\\d|\\d{1,2}[./]\\d{1,2}[./]\\d{4})$|(?:^|[ .])(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)(?:uary|ruary|ch|il|ust|tember|ober|ember)?(?:[ .,]|$)'),
                    (trimBoth(part, ' .,'), 'date'),
                    match(part, '\\d'),
                    (
                        extract(part, '\\d+(?:[.,]\\d+)*'),
                        multiIf(
                            match(part, '%|\\d ?(?:percent|per cent|prozent)'), '%',
                            match(part, '€|\\d ?(?:eur|euros?)(?: |$)'), 'eur',
                            match(part, '\\$|\\d ?(?:usd|dollars?)(?: |$)'), 'usd',
                            match(part, '£|\\d ?(?:gbp|pounds?)(?: |$)'), 'gbp',
                            match(part, '¥|\\d ?(?:jpy|yen)(?: |$)'), 'jpy',
                            replaceRegexpOne(
                                extract(part, '\\d[- ]?(\\pL.*)$'),
                                '(?:^| )(?:of|and|or|in|to|for|the|a|an|is|are|was|were|at|on|by|per|with|from|as|if|then|than|that|this|it|you|we|they|will|can|must|not|no|more|less|each|every|after|before|until|within|so|but|which|und|oder|von|bis|der|die|das)(?: .*)?$',
                                ''
                            )
                        )
                    ),
                    (
                        transform(
                            extract(part, '^\\pL+'),
                            ['two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven', 'twelve', 'twenty', 'thirty', 'sixty', 'ninety'],
                            ['2', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12', '20', '30', '60', '90'],
                            ''
                        ),
                        multiIf(
                            match(part, '^\\pL+[- ](?:percent|per cent|prozent)'), '%',
                            match(part, '^\\pL+[- ](?:eur|euros?)(?: |$)'), 'eur',
                            match(part, '^\\pL+[- ](?:usd|dollars?)(?: |$)'), 'usd',
                            match(part, '^\\pL+[- ](?:gbp|pounds?)(?: |$)'), 'gbp',
                            match(part, '^\\pL+[- ](?:jpy|yen)(?: |$)'), 'jpy',
                            replaceRegexpOne(
                                extract(part, '^\\pL+[- ](\\pL.*)$'),
                                '(?:^| )(?:of|and|or|in|to|for|the|a|an|is|are|was|were|at|on|by|per|with|from|as|if|then|than|that|this|it|you|we|they|will|can|must|not|no|more|less|each|every|after|before|until|within|so|but|which|und|oder|von|bis|der|die|das)(?: .*)?$',
                                ''
                            )
                        )
                    )
                )
            ),
            extractAll(
                body,
                '(?:^|[^\\pL\\pN._])((?:\\d{4}-\\d\\d-\\d\\d|\\d{1,2}[./]\\d{1,2}[./]\\d{4}|(?:january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec)\\.? \\d{1,2}(?:st|nd|rd|th)?(?:,? \\d{4})?|\\d{1,2}(?:st|nd|rd|th)?\\.? (?:january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec)(?:,? \\d{4})?|[€$£¥] ?\\d+(?:[.,]\\d+)*|\\d+(?:[.,]\\d+)*(?: ?[%€$£¥]|[- ]?\\pL+(?: \\pL+)?)?|(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|sixty|ninety)(?:[- ]\\pL+(?: \\pL+)?|\\b)))'
            )
        )
    );

-- functions/rag_sign_test.sql
-- answers: how likely is so uneven a split of gains and losses, if neither side were better?
-- grain:   one function
-- reads:   nothing
-- The exact two-sided sign test: twice the binomial tail of the smaller count at one half, at most 1; ties are left
-- out by who counts. Each term goes through logarithms, so that thousands of questions neither overflow nor vanish;
-- their noise is rounded off, so that 0.375 prints as 0.38.
create or replace function rag_sign_test as (gained, lost) ->
    arrayMap(
        p_value -> least(1., if(p_value < 0.001, p_value, round(p_value, 13))),
        [
            2 * arraySum(
                hits -> exp(
                    lgamma(gained + lost + 1.) - lgamma(hits + 1.) - lgamma(gained + lost - hits + 1.) - (gained + lost) * log(2)
                ),
                range(toUInt64(least(gained, lost)) + 1)
            )
        ]
    )[1];

-- functions/rag_wilson.sql
-- answers: between which two rates does the true rate lie, at 95 % confidence?
-- grain:   one function
-- reads:   nothing
-- Wilson's score interval as (low, high); nulls where nothing was measured.
create or replace function rag_wilson as (hits, measured) ->
    if(
        measured = 0,
        (null, null),
        (
            (
                greatest(
                    0.,
                    (hits + 1.920729410347062 - 1.959963984540054 * sqrt(hits * (measured - hits) / measured + 0.960364705173531))
                    / (measured + 3.841458820694124)
                )
            )::Nullable(Float64),
            (
                least(
                    1.,
                    (hits + 1.920729410347062 + 1.959963984540054 * sqrt(hits * (measured - hits) / measured + 0.960364705173531))
                    / (measured + 3.841458820694124)
                )
            )::Nullable(Float64)
        )
    );

-- functions/rag_without_negated.sql
-- answers: what does this normalised text state, without what it denies?
-- grain:   one function
-- reads:   nothing
-- What follows a negation up to the end of its clause is cut out; "not more than 5" still states 5.
create or replace function rag_without_negated as (body) ->
    replaceRegexpAll(
        replaceRegexpAll(
            body,
            '\\b(?:no|not|cannot|nicht) (more|later|less|fewer|earlier|sooner|longer than|exceed|over|above|only|limited|mehr als)\\b',
            '\\1'
        ),
        '(?:\\b(?:not|never|cannot|nor|neither|no longer|without|instead of|rather than|nicht|keine?[nmrs]?|niemals|statt)\\b|n[\\x27’]t\\b).{0,200}?(?:[.;:!?,](?: |$)| but | sondern |$)',
        ' '
    );

-- functions/rag_wordings.sql
-- answers: in which wordings may this quantity stand in a normalised text?
-- grain:   one function
-- reads:   nothing
-- number and unit as rag_quantities gives them: 5 seats is also five seats, 5-seat; 10 % is 10%, 10 percent; €12 is 12 eur.
-- No unit is converted into another: "three weeks" is no wording of "21 days".
create or replace function rag_wordings as (number, unit) ->
    arrayDistinct(
        arrayFlatten(
            arrayMap(
                form -> multiIf(
                    unit in ('', 'date'), [form],
                    unit = '%', [concat(form, '%'), concat(form, ' %'), concat(form, ' percent'), concat(form, ' per cent'), concat(form, ' prozent')],
                    unit in ('eur', 'usd', 'gbp', 'jpy'),
                    arrayFlatten(
                        arrayMap(
                            sign -> [concat(sign, form), concat(sign, ' ', form), concat(form, sign), concat(form, ' ', sign)],
                            multiIf(
                                unit = 'eur', ['€', 'eur', 'euro', 'euros'],
                                unit = 'usd', ['$', 'usd', 'dollar', 'dollars'],
                                unit = 'gbp', ['£', 'gbp', 'pound', 'pounds'],
                                ['¥', 'jpy', 'yen', 'yen']
                            )
                        )
                    ),
                    arrayFlatten(
                        arrayMap(
                            name -> [concat(form, ' ', name), concat(form, '-', name), concat(form, name)],
                            [replaceRegexpOne(unit, 's$', ''), concat(replaceRegexpOne(unit, 's$', ''), 's')]
                        )
                    )
                ),
                [
                    number,
                    if(match(number, '^\\d{1,3}(?:,\\d{3})+$'), replaceAll(number, ',', ''), number),
                    transform(
                        number,
                        ['2', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12', '20', '30', '60', '90'],
                        ['two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven', 'twelve', 'twenty', 'thirty', 'sixty', 'ninety'],
                        number
                    )
                ]
            )
        )
    );

-- tables/0001_migrations.sql
-- answers: which steps of the schema has this store taken?
-- grain:   one row per applied file
-- reads:   nothing
create table if not exists rag_migrations
(
    name       String,
    applied_at DateTime64(3, 'UTC') default now64(3)
)
engine = ReplacingMergeTree
order by name;

-- tables/0010_otel_traces.sql
-- answers: what did the services send?
-- grain:   one row per span, as the OpenTelemetry Collector's ClickHouse exporter writes it
-- reads:   nothing
-- Columns are exactly the exporter's. Partitions are months, not its days: an import of two years of
-- history in one batch must not run into the limit of 100 partitions per insert.
create table if not exists otel_traces
(
    Timestamp          DateTime64(9, 'UTC') codec(Delta, ZSTD(1)),
    TraceId            String codec(ZSTD(1)),
    SpanId             String codec(ZSTD(1)),
    ParentSpanId       String codec(ZSTD(1)),
    TraceState         String codec(ZSTD(1)),
    SpanName           LowCardinality(String) codec(ZSTD(1)),
    SpanKind           LowCardinality(String) codec(ZSTD(1)),
    ServiceName        LowCardinality(String) codec(ZSTD(1)),
    ResourceAttributes Map(LowCardinality(String), String) codec(ZSTD(1)),
    ScopeName          String codec(ZSTD(1)),
    ScopeVersion       String codec(ZSTD(1)),
    SpanAttributes     Map(LowCardinality(String), String) codec(ZSTD(1)),
    Duration           UInt64 codec(ZSTD(1)),
    StatusCode         LowCardinality(String) codec(ZSTD(1)),
    StatusMessage      String codec(ZSTD(1)),
    Events             Nested(
        Timestamp  DateTime64(9, 'UTC'),
        Name       LowCardinality(String),
        Attributes Map(LowCardinality(String), String)
    ) codec(ZSTD(1)),
    Links              Nested(
        TraceId    String,
        SpanId     String,
        TraceState String,
        Attributes Map(LowCardinality(String), String)
    ) codec(ZSTD(1)),
    index idx_trace_id TraceId type bloom_filter(0.001) granularity 1
)
engine = MergeTree
partition by toYYYYMM(Timestamp)
order by (ServiceName, SpanName, toDateTime(Timestamp))
settings ttl_only_drop_parts = 1;

-- tables/0011_otel_traces_trace_id_ts.sql
-- answers: when did this trace happen?
-- grain:   one row per trace and insert
-- reads:   nothing
create table if not exists otel_traces_trace_id_ts
(
    TraceId String codec(ZSTD(1)),
    Start   DateTime('UTC') codec(Delta, ZSTD(1)),
    End     DateTime('UTC') codec(Delta, ZSTD(1)),
    index idx_trace_id TraceId type bloom_filter(0.01) granularity 1
)
engine = MergeTree
partition by toYYYYMM(Start)
order by (TraceId, Start)
settings ttl_only_drop_parts = 1;

-- tables/0012_otel_traces_trace_id_ts_mv.sql
-- answers: when did this trace happen?
-- grain:   fills otel_traces_trace_id_ts at insert
-- reads:   otel_traces
create materialized view if not exists otel_traces_trace_id_ts_mv to otel_traces_trace_id_ts as
select
    TraceId,
    min(Timestamp) as Start,
    max(Timestamp) as End
from otel_traces
where TraceId != ''
group by TraceId;

-- tables/0020_rag_requests.sql
-- answers: what was asked, by whom, and what was answered?
-- grain:   one row per request (a batch delivered twice collapses at merge; the views read it once)
-- reads:   nothing
create table if not exists rag_requests
(
    trace_id       String,
    request_id     String,
    span_id        String,
    session_id     String,
    user_id        String,
    tenant         LowCardinality(String),
    principal      String,
    tags           String,
    started_at     DateTime64(9, 'UTC') codec(Delta, ZSTD(1)),
    duration_ms    Float64,
    service_name   LowCardinality(String),
    query          String codec(ZSTD(3)),
    query_norm     String codec(ZSTD(3)),
    query_hash     UInt64,
    answer         String codec(ZSTD(3)),
    answer_norm    String codec(ZSTD(3)),
    outcome        LowCardinality(String),
    content_mode   LowCardinality(String),
    run_id         String,
    arm            LowCardinality(String),
    label_id       String,
    convention     LowCardinality(String),
    capture_errors UInt32,
    ingested_at    DateTime64(3, 'UTC') default now64(3),
    index idx_trace trace_id type bloom_filter(0.001) granularity 1,
    index idx_request request_id type bloom_filter(0.001) granularity 1,
    index idx_user user_id type bloom_filter(0.01) granularity 1,
    index idx_query_words query_norm type tokenbf_v1(16384, 3, 0) granularity 1,
    index idx_answer_words answer_norm type tokenbf_v1(65536, 3, 0) granularity 1
)
engine = ReplacingMergeTree(ingested_at)
partition by toYYYYMM(started_at)
order by (started_at, trace_id, request_id)
settings index_granularity = 1024;

-- tables/0021_rag_requests_mv.sql
-- answers: what was asked, by whom, and what was answered?
-- grain:   fills rag_requests at insert, one row per request span
-- reads:   otel_traces
create materialized view if not exists rag_requests_mv to rag_requests as
select
    TraceId as trace_id,
    SpanAttributes['rag.request.id'] as request_id,
    SpanId as span_id,
    SpanAttributes['gen_ai.conversation.id'] as session_id,
    SpanAttributes['user.id'] as user_id,
    SpanAttributes['rag.tenant'] as tenant,
    SpanAttributes['rag.principal'] as principal,
    SpanAttributes['rag.tags'] as tags,
    Timestamp as started_at,
    Duration / 1e6 as duration_ms,
    ServiceName as service_name,
    SpanAttributes['rag.query'] as query,
    rag_normalise(query) as query_norm,
    if(trimBoth(query_norm) = '', 0, sipHash64(trimBoth(query_norm))) as query_hash,
    SpanAttributes['rag.answer'] as answer,
    rag_normalise(answer) as answer_norm,
    if(
        SpanAttributes['rag.outcome'] = '',
        if(StatusCode = 'Error', 'error', ''),
        SpanAttributes['rag.outcome']
    ) as outcome,
    SpanAttributes['rag.content_mode'] as content_mode,
    SpanAttributes['rag.run.id'] as run_id,
    SpanAttributes['rag.arm'] as arm,
    SpanAttributes['rag.label.id'] as label_id,
    'ragotel' as convention,
    toUInt32OrZero(SpanAttributes['rag.capture.errors']) as capture_errors
from otel_traces
where SpanAttributes['rag.stage'] = 'request';

-- tables/0030_rag_stages.sql
-- answers: what did each stage return, in which order, from which index?
-- grain:   one row per stage run
-- reads:   nothing
-- The arrays that begin with candidate_ or kept_ run parallel to chunk_ids, best first.
create table if not exists rag_stages
(
    trace_id              String,
    request_id            String,
    span_id               String,
    parent_span_id        String,
    started_at            DateTime64(9, 'UTC') codec(Delta, ZSTD(1)),
    ended_at              DateTime64(9, 'UTC') codec(Delta, ZSTD(1)),
    duration_ms           Float64,
    service_name          LowCardinality(String),
    stage                 LowCardinality(String),
    stage_name            LowCardinality(String),
    outcome               LowCardinality(String),
    chunk_ids             Array(Nullable(String)) codec(ZSTD(3)),
    scores                Array(Nullable(Float64)) codec(ZSTD(3)),
    candidate_shas        Array(String) codec(ZSTD(3)),
    candidate_doc_ids     Array(String) codec(ZSTD(3)),
    candidate_doc_versions Array(String) codec(ZSTD(3)),
    candidate_tokens      Array(Nullable(UInt32)) codec(ZSTD(3)),
    candidate_chars       Array(Nullable(UInt32)) codec(ZSTD(3)),
    candidate_kept_chars  Array(Nullable(UInt32)) codec(ZSTD(3)),
    candidate_superseded  Array(Nullable(Bool)) codec(ZSTD(3)),
    candidate_legs        Array(String) codec(ZSTD(3)),
    candidate_count       Nullable(UInt32),
    in_count              Nullable(UInt32),
    dropped_ids           Array(Nullable(String)) codec(ZSTD(3)),
    drop_reasons          Array(String) codec(ZSTD(3)),
    drop_inferred         Array(UInt8) codec(ZSTD(3)),
    index_name            LowCardinality(String),
    index_version         LowCardinality(String),
    filter                String,
    filter_excluded_count Nullable(UInt32),
    query                 String codec(ZSTD(3)),
    model                 LowCardinality(String),
    provider              LowCardinality(String),
    top_k                 Nullable(UInt32),
    limit_count           Nullable(UInt32),
    score_kind            LowCardinality(String),
    higher_is_better      Nullable(Bool),
    fuse_method           LowCardinality(String),
    rerank_window_chars   Nullable(UInt32),
    rerank_effect         LowCardinality(String),
    input_tokens          Nullable(UInt64),
    output_tokens         Nullable(UInt64),
    finish_reasons        Array(String),
    temperature           Nullable(Float64),
    time_to_first_token_ms Nullable(Float64),
    citations             Array(String),
    content_mode          LowCardinality(String),
    convention            LowCardinality(String),
    evidence              LowCardinality(String),
    dropped_evidence      LowCardinality(String),
    capture_errors        UInt32,
    ingested_at           DateTime64(3, 'UTC') default now64(3)
)
engine = ReplacingMergeTree(ingested_at)
partition by toYYYYMM(started_at)
order by (trace_id, request_id, span_id)
settings index_granularity = 512;

-- tables/0031_rag_stages_mv.sql
-- answers: what did each stage return, in which order, from which index?
-- grain:   fills rag_stages at insert, one row per stage span (a stage of unknown kind is kept as well)
-- reads:   otel_traces
-- A list that cannot be parsed is 'malformed', one shorter than its count 'truncated': never 'empty'.
-- JSONExtract of the whole list at once is fast but may skip elements that are no objects; where its length
-- differs from the list's, each element is read alone, so that ranks stay true. An id that is a content hash
-- is the candidate's hash too.
create materialized view if not exists rag_stages_mv to rag_stages as
with
    SpanAttributes as attributes,
    attributes['rag.stage'] as stage_kind,
    if(
        stage_kind = 'retrieve' and attributes['gen_ai.retrieval.documents'] != '',
        attributes['gen_ai.retrieval.documents'],
        if(
            attributes['rag.candidates'] != '',
            attributes['rag.candidates'],
            attributes['gen_ai.retrieval.documents']
        )
    ) as list_text,
    toUInt32OrNull(attributes['rag.candidates.count']) as stated_count,
    isValidJSON(list_text) and JSONType(list_text) = 'Array' as list_is_array,
    if(list_is_array, JSONLength(list_text), 0) as list_length,
    if(
        list_is_array,
        JSONExtract(
            list_text,
            'Array(Tuple(id Nullable(String), score Nullable(Float64), sha Nullable(String), doc_id Nullable(String), doc_version Nullable(String), tokens Nullable(UInt32), chars Nullable(UInt32), kept_chars Nullable(UInt32), superseded Nullable(Bool), leg Nullable(String)))'
        ),
        []
    ) as fast_elements,
    if(
        length(fast_elements) = list_length,
        fast_elements,
        arrayMap(
            element -> JSONExtract(
                element,
                'Tuple(id Nullable(String), score Nullable(Float64), sha Nullable(String), doc_id Nullable(String), doc_version Nullable(String), tokens Nullable(UInt32), chars Nullable(UInt32), kept_chars Nullable(UInt32), superseded Nullable(Bool), leg Nullable(String))'
            ),
            JSONExtractArrayRaw(list_text)
        )
    ) as elements,
    attributes['rag.dropped'] as dropped_text,
    isValidJSON(dropped_text) and JSONType(dropped_text) = 'Array' as dropped_is_array,
    if(
        dropped_is_array,
        arrayMap(
            element -> JSONExtract(
                element,
                'Tuple(id Nullable(String), reason Nullable(String), inferred Nullable(Bool))'
            ),
            JSONExtractArrayRaw(dropped_text)
        ),
        []
    ) as dropped_elements,
    if(
        attributes['gen_ai.response.finish_reasons'] = '',
        [],
        if(
            JSONType(attributes['gen_ai.response.finish_reasons']) = 'Array',
            JSONExtract(attributes['gen_ai.response.finish_reasons'], 'Array(String)'),
            [attributes['gen_ai.response.finish_reasons']]
        )
    ) as reasons
select
    TraceId as trace_id,
    attributes['rag.request.id'] as request_id,
    SpanId as span_id,
    ParentSpanId as parent_span_id,
    Timestamp as started_at,
    Timestamp + toIntervalNanosecond(least(Duration, 86400000000000)) as ended_at,
    Duration / 1e6 as duration_ms,
    ServiceName as service_name,
    stage_kind as stage,
    attributes['rag.stage.name'] as stage_name,
    if(
        attributes['rag.outcome'] = '',
        if(StatusCode = 'Error', 'error', ''),
        attributes['rag.outcome']
    ) as outcome,
    arrayMap(e -> nullIf(e.id, ''), elements) as chunk_ids,
    arrayMap(e -> e.score, elements) as scores,
    arrayMap(
        e -> if(
            match(ifNull(e.sha, ''), '^(sha256:)?[0-9a-fA-F]{16,64}$'),
            concat('sha256:', lower(substring(replaceOne(e.sha, 'sha256:', ''), 1, 16))),
            if(
                ifNull(e.sha, '') = '' and match(ifNull(e.id, ''), '^sha256:[0-9a-f]{16}$'),
                ifNull(e.id, ''),
                ifNull(e.sha, '')
            )
        ),
        elements
    ) as candidate_shas,
    arrayMap(e -> ifNull(e.doc_id, ''), elements) as candidate_doc_ids,
    arrayMap(e -> ifNull(e.doc_version, ''), elements) as candidate_doc_versions,
    arrayMap(e -> e.tokens, elements) as candidate_tokens,
    arrayMap(e -> e.chars, elements) as candidate_chars,
    arrayMap(e -> e.kept_chars, elements) as candidate_kept_chars,
    arrayMap(e -> e.superseded, elements) as candidate_superseded,
    arrayMap(e -> ifNull(e.leg, ''), elements) as candidate_legs,
    if(stated_count is null and list_is_array, toUInt32(list_length), stated_count) as candidate_count,
    toUInt32OrNull(attributes['rag.candidates.in_count']) as in_count,
    arrayMap(e -> nullIf(e.id, ''), dropped_elements) as dropped_ids,
    arrayMap(e -> ifNull(e.reason, ''), dropped_elements) as drop_reasons,
    arrayMap(e -> toUInt8(ifNull(e.inferred, false)), dropped_elements) as drop_inferred,
    attributes['gen_ai.data_source.id'] as index_name,
    attributes['rag.index.version'] as index_version,
    attributes['rag.filter'] as filter,
    toUInt32OrNull(attributes['rag.filter.excluded_count']) as filter_excluded_count,
    attributes['gen_ai.retrieval.query.text'] as query,
    attributes['gen_ai.request.model'] as model,
    attributes['gen_ai.provider.name'] as provider,
    toUInt32OrNull(attributes['gen_ai.retrieval.top_k']) as top_k,
    toUInt32OrNull(attributes['rag.limit']) as limit_count,
    attributes['rag.score.kind'] as score_kind,
    if(
        attributes['rag.score.higher_is_better'] in ('true', 'false'),
        attributes['rag.score.higher_is_better'] = 'true',
        null
    )::Nullable(Bool) as higher_is_better,
    attributes['rag.fuse.method'] as fuse_method,
    toUInt32OrNull(attributes['rag.rerank.window_chars']) as rerank_window_chars,
    attributes['rag.rerank.effect'] as rerank_effect,
    toUInt64OrNull(attributes['gen_ai.usage.input_tokens']) as input_tokens,
    toUInt64OrNull(attributes['gen_ai.usage.output_tokens']) as output_tokens,
    reasons as finish_reasons,
    toFloat64OrNull(attributes['gen_ai.request.temperature']) as temperature,
    toFloat64OrNull(attributes['rag.time_to_first_token_ms']) as time_to_first_token_ms,
    JSONExtract(attributes['rag.citations'], 'Array(String)') as citations,
    attributes['rag.content_mode'] as content_mode,
    'ragotel' as convention,
    multiIf(
        list_text = '' and stated_count = 0, 'empty',
        list_text = '' and content_mode = 'off' and stated_count > 0, 'off',
        list_text = '', 'not_recorded',
        not list_is_array, 'malformed',
        list_length < ifNull(stated_count, 0), 'truncated',
        list_length = 0, 'empty',
        'whole'
    ) as evidence,
    multiIf(
        dropped_text = '', 'not_recorded',
        not dropped_is_array, 'malformed',
        length(dropped_elements) = 0, 'empty',
        'whole'
    ) as dropped_evidence,
    toUInt32OrZero(attributes['rag.capture.errors']) as capture_errors
from otel_traces
where SpanAttributes['rag.stage'] not in ('', 'request');

-- tables/0040_rag_prompts.sql
-- answers: what exactly did the model read?
-- grain:   one row per assembled prompt
-- reads:   nothing
-- Small granules: one look-up must not unpack hundreds of prompts of 16 KB.
create table if not exists rag_prompts
(
    trace_id         String,
    request_id       String,
    span_id          String,
    started_at       DateTime64(9, 'UTC') codec(Delta, ZSTD(1)),
    service_name     LowCardinality(String),
    prompt           String codec(ZSTD(3)),
    prompt_norm      String codec(ZSTD(3)),
    prompt_sha256    String,
    chars            Nullable(UInt64),
    tokens           Nullable(UInt64),
    tokens_source    LowCardinality(String),
    content_mode     LowCardinality(String),
    is_whole         UInt8,
    template_name    LowCardinality(String),
    template_version LowCardinality(String),
    budget_tokens    Nullable(UInt64),
    sent_ids         Array(Nullable(String)) codec(ZSTD(3)),
    sent_tokens      Array(Nullable(UInt32)) codec(ZSTD(3)),
    convention       LowCardinality(String),
    evidence         LowCardinality(String),
    ingested_at      DateTime64(3, 'UTC') default now64(3)
)
engine = ReplacingMergeTree(ingested_at)
partition by toYYYYMM(started_at)
order by (trace_id, request_id, span_id)
settings index_granularity = 8, min_compress_block_size = 8192, max_compress_block_size = 262144;

-- tables/0041_rag_prompts_mv.sql
-- answers: what exactly did the model read?
-- grain:   fills rag_prompts at insert, one row per assemble span (also where the text is off)
-- reads:   otel_traces
-- A text shorter than its stated length was cut on the way: is_whole is 0 then, whatever the mode says.
create materialized view if not exists rag_prompts_mv to rag_prompts as
with
    SpanAttributes as attributes,
    attributes['rag.candidates'] as list_text,
    toUInt32OrNull(attributes['rag.candidates.count']) as stated_count,
    isValidJSON(list_text) and JSONType(list_text) = 'Array' as list_is_array,
    if(list_is_array, JSONExtractArrayRaw(list_text), []) as elements
select
    TraceId as trace_id,
    attributes['rag.request.id'] as request_id,
    SpanId as span_id,
    Timestamp as started_at,
    ServiceName as service_name,
    attributes['rag.prompt.text'] as prompt,
    rag_normalise(prompt) as prompt_norm,
    attributes['rag.prompt.sha256'] as prompt_sha256,
    toUInt64OrNull(attributes['rag.prompt.chars']) as chars,
    toUInt64OrNull(attributes['rag.prompt.tokens']) as tokens,
    attributes['rag.prompt.tokens_source'] as tokens_source,
    attributes['rag.content_mode'] as content_mode,
    prompt != ''
    and content_mode in ('', 'full')
    and lengthUTF8(prompt) >= ifNull(chars, 0) as is_whole,
    attributes['gen_ai.prompt.name'] as template_name,
    attributes['gen_ai.prompt.version'] as template_version,
    toUInt64OrNull(attributes['rag.budget.tokens']) as budget_tokens,
    arrayMap(e -> nullIf(JSONExtract(e, 'id', 'Nullable(String)'), ''), elements) as sent_ids,
    arrayMap(e -> JSONExtract(e, 'tokens', 'Nullable(UInt32)'), elements) as sent_tokens,
    'ragotel' as convention,
    multiIf(
        list_text = '' and stated_count = 0, 'empty',
        list_text = '' and content_mode = 'off' and stated_count > 0, 'off',
        list_text = '', 'not_recorded',
        not list_is_array, 'malformed',
        length(elements) < ifNull(stated_count, 0), 'truncated',
        length(elements) = 0, 'empty',
        'whole'
    ) as evidence
from otel_traces
where SpanAttributes['rag.stage'] = 'assemble';

-- tables/0050_rag_chunks.sql
-- answers: what does this passage say?
-- grain:   one row per text, keyed by 'sha256:' and 16 hex digits of its normalised text's SHA-256
-- reads:   nothing
create table if not exists rag_chunks
(
    chunk_sha     String,
    text          String codec(ZSTD(3)),
    text_norm     String codec(ZSTD(3)),
    first_seen_at DateTime64(3, 'UTC') default now64(3)
)
engine = ReplacingMergeTree
order by chunk_sha
settings index_granularity = 64;

-- tables/0051_rag_chunks_mv.sql
-- answers: what does this passage say?
-- grain:   fills rag_chunks at insert, one row per text that a span brings
-- reads:   otel_traces
create materialized view if not exists rag_chunks_mv to rag_chunks as
with arrayJoin(JSONExtractKeysAndValues(SpanAttributes['rag.chunks'], 'String')) as chunk
select
    if(
        match(chunk.1, '^(sha256:)?[0-9a-fA-F]{16,64}$'),
        concat('sha256:', lower(substring(replaceOne(chunk.1, 'sha256:', ''), 1, 16))),
        chunk.1
    ) as chunk_sha,
    chunk.2 as text,
    rag_normalise(text) as text_norm
from otel_traces
where SpanAttributes['rag.chunks'] != '' and chunk.1 != '';

-- tables/0060_rag_index_versions.sql
-- answers: which index versions have a manifest that was loaded whole?
-- grain:   one row per index version and load; written last, so that a half load proves nothing
-- reads:   nothing
create table if not exists rag_index_versions
(
    index_name     LowCardinality(String),
    version        String,
    parent_version String,
    load_id        String,
    chunk_rows     UInt64,
    loaded_at      DateTime64(6, 'UTC') default now64(6)
)
engine = ReplacingMergeTree(loaded_at)
order by (index_name, version);

-- tables/0061_rag_index_chunks.sql
-- answers: which chunks came into or left an index at which version?
-- grain:   one row per chunk × version in which it was added, changed or removed (not once per version)
-- reads:   nothing
create table if not exists rag_index_chunks
(
    index_name  LowCardinality(String),
    chunk_id    String,
    version     String,
    load_id     String,
    doc_id      String,
    doc_version String,
    chunk_sha   String,
    chars       Nullable(UInt32),
    superseded  UInt8,
    deleted     UInt8,
    position    UInt32,
    loaded_at   DateTime64(6, 'UTC') default now64(6)
)
engine = ReplacingMergeTree(loaded_at)
order by (index_name, chunk_id, version, load_id)
settings index_granularity = 1024;

-- tables/0062_rag_ingest_runs.sql
-- answers: what did each ingest run list, parse, write and delete?
-- grain:   one row per ingest run
-- reads:   nothing
create table if not exists rag_ingest_runs
(
    trace_id           String,
    span_id            String,
    started_at         DateTime64(9, 'UTC'),
    duration_ms        Float64,
    service_name       LowCardinality(String),
    index_name         LowCardinality(String),
    index_version      String,
    parent_version     String,
    chunker            String,
    docs_listed        Nullable(UInt64),
    docs_parsed        Nullable(UInt64),
    docs_empty         Nullable(UInt64),
    mean_chars_per_doc Nullable(Float64),
    chunks_written     Nullable(UInt64),
    chunks_deleted     Nullable(UInt64),
    outcome            LowCardinality(String),
    ingested_at        DateTime64(3, 'UTC') default now64(3)
)
engine = ReplacingMergeTree(ingested_at)
order by (index_name, started_at, span_id);

-- tables/0063_rag_losses.sql
-- answers: how much of the record was lost on the way, and why?
-- grain:   one row per loss report of a service
-- reads:   nothing
create table if not exists rag_losses
(
    trace_id     String,
    span_id      String,
    lost_at      DateTime64(9, 'UTC'),
    service_name LowCardinality(String),
    cause        LowCardinality(String),
    spans        UInt64,
    requests     UInt64,
    ingested_at  DateTime64(3, 'UTC') default now64(3)
)
engine = ReplacingMergeTree(ingested_at)
order by (lost_at, span_id, cause);

-- tables/0064_rag_ingest_runs_mv.sql
-- answers: what did each ingest run list, parse, write and delete?
-- grain:   fills rag_ingest_runs at insert, one row per ingest span
-- reads:   otel_traces
create materialized view if not exists rag_ingest_runs_mv to rag_ingest_runs as
select
    TraceId as trace_id,
    SpanId as span_id,
    Timestamp as started_at,
    Duration / 1e6 as duration_ms,
    ServiceName as service_name,
    SpanAttributes['gen_ai.data_source.id'] as index_name,
    SpanAttributes['rag.index.version'] as index_version,
    SpanAttributes['rag.index.parent_version'] as parent_version,
    SpanAttributes['rag.chunker'] as chunker,
    toUInt64OrNull(SpanAttributes['rag.ingest.docs_listed']) as docs_listed,
    toUInt64OrNull(SpanAttributes['rag.ingest.docs_parsed']) as docs_parsed,
    toUInt64OrNull(SpanAttributes['rag.ingest.docs_empty']) as docs_empty,
    toFloat64OrNull(SpanAttributes['rag.ingest.mean_chars_per_doc']) as mean_chars_per_doc,
    toUInt64OrNull(SpanAttributes['rag.ingest.chunks_written']) as chunks_written,
    toUInt64OrNull(SpanAttributes['rag.ingest.chunks_deleted']) as chunks_deleted,
    SpanAttributes['rag.outcome'] as outcome
from otel_traces
where SpanAttributes['rag.stage'] = 'ingest';

-- tables/0065_rag_losses_mv.sql
-- answers: how much of the record was lost on the way, and why?
-- grain:   fills rag_losses at insert, one row per loss report
-- reads:   otel_traces
create materialized view if not exists rag_losses_mv to rag_losses as
select
    TraceId as trace_id,
    SpanId as span_id,
    Timestamp as lost_at,
    ServiceName as service_name,
    SpanAttributes['rag.loss.cause'] as cause,
    toUInt64OrZero(SpanAttributes['rag.loss.spans']) as spans,
    toUInt64OrZero(SpanAttributes['rag.loss.requests']) as requests
from otel_traces
where SpanAttributes['rag.loss.cause'] != '';

-- tables/0066_rag_index_chunks_mv.sql
-- answers: which chunks came into or left an index at which version?
-- grain:   fills rag_index_chunks at insert from ingest spans that carry their chunks
-- reads:   otel_traces
create materialized view if not exists rag_index_chunks_mv to rag_index_chunks as
with
    SpanAttributes as attributes,
    arrayMap(
        (e, i) -> (
            JSONExtract(e, 'id', 'Nullable(String)'),
            JSONExtractString(e, 'doc_id'),
            JSONExtractString(e, 'doc_version'),
            JSONExtractString(e, 'sha'),
            JSONExtract(e, 'chars', 'Nullable(UInt32)'),
            JSONExtractBool(e, 'superseded'),
            0,
            i
        ),
        JSONExtractArrayRaw(attributes['rag.candidates']) as written,
        arrayEnumerate(written)
    ) as added,
    arrayMap(
        (e, i) -> (
            JSONExtract(e, 'id', 'Nullable(String)'), '', '', '', cast(null, 'Nullable(UInt32)'), 0, 1, i
        ),
        JSONExtractArrayRaw(attributes['rag.dropped']) as removed,
        arrayEnumerate(removed)
    ) as gone,
    arrayJoin(arrayConcat(added, gone)) as chunk
select
    attributes['gen_ai.data_source.id'] as index_name,
    ifNull(chunk.1, '') as chunk_id,
    attributes['rag.index.version'] as version,
    SpanId as load_id,
    chunk.2 as doc_id,
    chunk.3 as doc_version,
    chunk.4 as chunk_sha,
    chunk.5 as chars,
    toUInt8(chunk.6) as superseded,
    toUInt8(chunk.7) as deleted,
    toUInt32(chunk.8) as position
from otel_traces
where SpanAttributes['rag.stage'] = 'ingest' and ifNull(chunk.1, '') != '';

-- tables/0067_rag_index_versions_mv.sql
-- answers: which index versions have a manifest that arrived whole?
-- grain:   fills rag_index_versions at insert from ingest spans whose chunk list is whole
-- reads:   otel_traces
create materialized view if not exists rag_index_versions_mv to rag_index_versions as
with
    SpanAttributes as attributes,
    attributes['rag.candidates'] as list_text,
    attributes['rag.dropped'] as dropped_text
select
    attributes['gen_ai.data_source.id'] as index_name,
    attributes['rag.index.version'] as version,
    attributes['rag.index.parent_version'] as parent_version,
    SpanId as load_id,
    toUInt64(JSONLength(list_text)) as chunk_rows
from otel_traces
where
    SpanAttributes['rag.stage'] = 'ingest'
    and version != ''
    and isValidJSON(list_text)
    and JSONType(list_text) = 'Array'
    and JSONLength(list_text) = toUInt64OrNull(attributes['rag.candidates.count'])
    and (dropped_text = '' or isValidJSON(dropped_text));

-- tables/0070_rag_labels.sql
-- answers: which passages hold the answer to this question?
-- grain:   one row per gold passage; a label that has none has one row with passage_count 0
-- reads:   nothing
-- All passages of a label are needed; within one, any chunk id, document id or wording will do.
create table if not exists rag_labels
(
    label_id        String,
    passage         UInt16,
    passage_count   UInt16,
    label_set       LowCardinality(String),
    split           LowCardinality(String),
    population      LowCardinality(String),
    principal       String,
    question        String,
    question_hash   UInt64,
    expected_answer String,
    answerable      Bool,
    chunk_ids       Array(String),
    doc_ids         Array(String),
    spans           Array(String),
    spans_norm      Array(String),
    text            String,
    text_norm       String,
    lure_chunk_ids  Array(String),
    lure_spans      Array(String),
    extra           String,
    loaded_at       DateTime64(6, 'UTC') default now64(6)
)
engine = ReplacingMergeTree(loaded_at)
order by (label_id, passage);

-- tables/0071_rag_grades.sql
-- answers: was the answer right?
-- grain:   one row per request × label × source × grader; the newest counts
-- reads:   nothing
create table if not exists rag_grades
(
    trace_id   String,
    request_id String,
    label_id   String,
    grade      LowCardinality(String),
    source     LowCardinality(String),
    graded_by  String,
    note       String,
    graded_at  DateTime64(6, 'UTC') default now64(6)
)
engine = ReplacingMergeTree(graded_at)
order by (trace_id, request_id, label_id, source, graded_by);

-- tables/0072_rag_complaints.sql
-- answers: what did users complain about?
-- grain:   one row per complaint
-- reads:   nothing
create table if not exists rag_complaints
(
    complaint_id  String,
    trace_id      String,
    request_id    String,
    label_id      String,
    text          String,
    grade         LowCardinality(String),
    reported_by   String,
    complained_at DateTime64(6, 'UTC') default now64(6)
)
engine = ReplacingMergeTree(complained_at)
order by complaint_id;

-- tables/0073_rag_label_attachments.sql
-- answers: which label did a person attach to which request?
-- grain:   one row per request × label
-- reads:   nothing
create table if not exists rag_label_attachments
(
    trace_id    String,
    request_id  String,
    label_id    String,
    attached_by String,
    attached_at DateTime64(6, 'UTC') default now64(6)
)
engine = ReplacingMergeTree(attached_at)
order by (trace_id, request_id, label_id);

-- tables/0074_rag_probes.sql
-- answers: at which rank does a deep search of the same index find the gold passage?
-- grain:   one row per request × label × passage × leg; the newest counts
-- reads:   nothing
create table if not exists rag_probes
(
    trace_id      String,
    request_id    String,
    label_id      String,
    passage       UInt16,
    leg           LowCardinality(String),
    principal     String,
    k             UInt32,
    deep_rank     Nullable(UInt32),
    score         Nullable(Float64),
    index_version String,
    probed_at     DateTime64(6, 'UTC') default now64(6)
)
engine = ReplacingMergeTree(probed_at)
order by (trace_id, request_id, label_id, passage, leg, index_version);

-- tables/0075_rag_ablations.sql
-- answers: was the answer right with the gold passage alone, or at another position?
-- grain:   one row per request × label × mode × position; the newest counts
-- reads:   nothing
create table if not exists rag_ablations
(
    trace_id   String,
    request_id String,
    label_id   String,
    mode       LowCardinality(String),
    position   UInt32,
    of         UInt32,
    correct    Bool,
    answer     String,
    ablated_at DateTime64(6, 'UTC') default now64(6)
)
engine = ReplacingMergeTree(ablated_at)
order by (trace_id, request_id, label_id, mode, position, of);

-- tables/0076_rag_labels_in.sql
-- answers: which labels are being loaded?
-- grain:   keeps nothing; a row written here becomes a row of rag_labels
-- reads:   nothing
-- Labels are written here, so that their texts are normalised by the same function as the requests'.
create table if not exists rag_labels_in
(
    label_id        String,
    passage         UInt16,
    passage_count   UInt16,
    label_set       String,
    split           String,
    population      String,
    principal       String,
    question        String,
    expected_answer String,
    answerable      Bool,
    chunk_ids       Array(String),
    doc_ids         Array(String),
    spans           Array(String),
    text            String,
    lure_chunk_ids  Array(String),
    lure_spans      Array(String),
    extra           String,
    loaded_at       DateTime64(6, 'UTC')
)
engine = Null;

-- tables/0077_rag_labels_in_mv.sql
-- answers: which passages hold the answer to this question?
-- grain:   fills rag_labels at insert, one row per gold passage
-- reads:   rag_labels_in
create materialized view if not exists rag_labels_in_mv to rag_labels as
select
    label_id,
    passage,
    passage_count,
    label_set,
    split,
    population,
    principal,
    question,
    sipHash64(trimBoth(rag_normalise(question))) as question_hash,
    expected_answer,
    answerable,
    chunk_ids,
    doc_ids,
    spans,
    arrayFilter(
        span -> span != '',
        arrayMap(span -> trimBoth(rag_normalise(span)), spans)
    ) as spans_norm,
    text,
    trimBoth(rag_normalise(text)) as text_norm,
    lure_chunk_ids,
    lure_spans,
    extra,
    loaded_at
from rag_labels_in;

-- tables/0078_rag_chunks_in.sql
-- answers: which passages are being loaded with a manifest?
-- grain:   keeps nothing; a row written here becomes a row of rag_chunks
-- reads:   nothing
create table if not exists rag_chunks_in
(
    chunk_sha String,
    text      String
)
engine = Null;

-- tables/0079_rag_chunks_in_mv.sql
-- answers: what does this passage say?
-- grain:   fills rag_chunks at insert, one row per text of a manifest
-- reads:   rag_chunks_in
create materialized view if not exists rag_chunks_in_mv to rag_chunks as
select
    chunk_sha,
    text,
    rag_normalise(text) as text_norm
from rag_chunks_in;

-- tables/0080_rag_rules.sql
-- answers: which adoption rules were set, and since when?
-- grain:   one row per rule text by its hash; the first registration counts
-- reads:   nothing
-- rule_hash is the SHA-256 of what the rule says (as canonical JSON), so that a comment changes nothing and a limit does.
create table if not exists rag_rules
(
    rule_name     String,
    rule_hash     String,
    rule_text     SimpleAggregateFunction(any, String),
    registered_at SimpleAggregateFunction(min, DateTime64(6, 'UTC')) default now64(6)
)
engine = AggregatingMergeTree
order by (rule_name, rule_hash);

-- tables/0087_rag_label_decisions.sql
-- answers: which misses does a person hold to be faults of the label, not of the search?
-- grain:   one row per request × label (request and trace '' speak of the label on every request); the newest counts
-- reads:   nothing
-- defect: right_document (the scorer wanted another chunk), sibling_chunk (the next chunk answers as well),
-- several_answer, retired_target, other; 'none' says that it was looked at and is a fault of the search.
create table if not exists rag_label_decisions
(
    trace_id   String,
    request_id String,
    label_id   String,
    defect     LowCardinality(String),
    note       String,
    decided_by String,
    decided_at DateTime64(6, 'UTC') default now64(6)
)
engine = ReplacingMergeTree(decided_at)
order by (label_id, trace_id, request_id);

-- tables/0088_rag_limits.sql
-- answers: which limits were set, over those that are built in?
-- grain:   one row per limit × service ('' is all services); the newest counts
-- reads:   nothing
-- limit_name: a bucket, or failed_stage, reranker_fallback, docs_listed_drop, mean_chars_drop, docs_empty,
-- chunks_deleted, spans_lost. A null leaves that value to the row for all services, and then to what is built in.
create table if not exists rag_limits
(
    limit_name    LowCardinality(String),
    service_name  String,
    max_share     Nullable(Float64),
    max_deviation Nullable(Float64),
    min_sample    Nullable(UInt64),
    written_at    DateTime64(6, 'UTC') default now64(6)
)
engine = ReplacingMergeTree(written_at)
order by (limit_name, service_name);

-- tables/0090_rag_foreign_in.sql
-- answers: which spans of other instrumentations are being read?
-- grain:   keeps nothing; a span written here becomes rows of rag_requests, rag_stages, rag_prompts, rag_chunks
-- reads:   nothing
create table if not exists rag_foreign_in
(
    trace_id         String,
    request_id       String,
    is_request       UInt8,
    span_id          String,
    parent_span_id   String,
    started_at       DateTime64(9, 'UTC'),
    duration         UInt64,
    service_name     LowCardinality(String),
    span_name        LowCardinality(String),
    scope_name       String,
    attributes       Map(LowCardinality(String), String),
    status_code      LowCardinality(String),
    event_names      Array(LowCardinality(String)),
    event_attributes Array(Map(LowCardinality(String), String)),
    convention       LowCardinality(String),
    stage            LowCardinality(String)
)
engine = Null;

-- tables/0091_rag_foreign_read.sql
-- answers: what does a span of another instrumentation say, whatever its convention?
-- grain:   keeps nothing; a row per span, on its way to rag_requests, rag_stages, rag_prompts, rag_chunks
-- reads:   nothing
-- documents are (id, score, text, doc_id) best first; taken_in are the texts that a reranker was given.
create table if not exists rag_foreign_read
(
    trace_id         String,
    request_id       String,
    is_request       UInt8,
    span_id          String,
    parent_span_id   String,
    started_at       DateTime64(9, 'UTC'),
    duration         UInt64,
    service_name     LowCardinality(String),
    span_name        LowCardinality(String),
    status_code      LowCardinality(String),
    convention       LowCardinality(String),
    stage            LowCardinality(String),
    session_id       String,
    user_id          String,
    question         String,
    answer           String,
    documents        Array(Tuple(id Nullable(String), score Nullable(Float64), text Nullable(String), doc_id String)),
    candidate_count  Nullable(UInt32),
    taken_in         Array(String),
    in_count         Nullable(UInt32),
    evidence         LowCardinality(String),
    index_name       String,
    index_version    String,
    filter           String,
    model            String,
    provider         String,
    top_k            Nullable(UInt32),
    is_distance      UInt8,
    input_tokens     Nullable(UInt64),
    output_tokens    Nullable(UInt64),
    finish_reasons   Array(String),
    temperature      Nullable(Float64),
    first_token_ms   Nullable(Float64),
    prompt           String,
    prompt_state     LowCardinality(String),
    template_name    String,
    template_version String
)
engine = Null;

-- tables/0092_rag_openinference_in.sql
-- answers: which spans by the OpenInference convention are being read?
-- grain:   keeps nothing; a span written here is read by its convention
-- reads:   nothing
-- A table of its own: what other conventions write is not even planned for these spans.
create table if not exists rag_openinference_in
(
    trace_id         String,
    request_id       String,
    is_request       UInt8,
    span_id          String,
    parent_span_id   String,
    started_at       DateTime64(9, 'UTC'),
    duration         UInt64,
    service_name     LowCardinality(String),
    span_name        LowCardinality(String),
    scope_name       String,
    attributes       Map(LowCardinality(String), String),
    status_code      LowCardinality(String),
    event_names      Array(LowCardinality(String)),
    event_attributes Array(Map(LowCardinality(String), String)),
    convention       LowCardinality(String),
    stage            LowCardinality(String)
)
engine = Null;

-- tables/0093_rag_openinference_in_mv.sql
-- answers: which spans are written by the OpenInference convention?
-- grain:   fills rag_openinference_in at insert, one row per span
-- reads:   rag_foreign_in
create materialized view if not exists rag_openinference_in_mv to rag_openinference_in as
select *
from rag_foreign_in
where convention = 'openinference';

-- tables/0094_rag_genai_in.sql
-- answers: which spans with gen_ai keys are being read?
-- grain:   keeps nothing; a span written here is read by its convention
-- reads:   nothing
-- A table of its own: what other conventions write is not even planned for these spans.
create table if not exists rag_genai_in
(
    trace_id         String,
    request_id       String,
    is_request       UInt8,
    span_id          String,
    parent_span_id   String,
    started_at       DateTime64(9, 'UTC'),
    duration         UInt64,
    service_name     LowCardinality(String),
    span_name        LowCardinality(String),
    scope_name       String,
    attributes       Map(LowCardinality(String), String),
    status_code      LowCardinality(String),
    event_names      Array(LowCardinality(String)),
    event_attributes Array(Map(LowCardinality(String), String)),
    convention       LowCardinality(String),
    stage            LowCardinality(String)
)
engine = Null;

-- tables/0095_rag_genai_in_mv.sql
-- answers: which spans are written with gen_ai keys?
-- grain:   fills rag_genai_in at insert, one row per span
-- reads:   rag_foreign_in
create materialized view if not exists rag_genai_in_mv to rag_genai_in as
select *
from rag_foreign_in
where convention in ('genai', 'traceloop', 'other');

-- tables/0096_rag_observed_in.sql
-- answers: which spans of Langfuse and MLflow are being read?
-- grain:   keeps nothing; a span written here is read by its convention
-- reads:   nothing
-- A table of its own: what other conventions write is not even planned for these spans.
create table if not exists rag_observed_in
(
    trace_id         String,
    request_id       String,
    is_request       UInt8,
    span_id          String,
    parent_span_id   String,
    started_at       DateTime64(9, 'UTC'),
    duration         UInt64,
    service_name     LowCardinality(String),
    span_name        LowCardinality(String),
    scope_name       String,
    attributes       Map(LowCardinality(String), String),
    status_code      LowCardinality(String),
    event_names      Array(LowCardinality(String)),
    event_attributes Array(Map(LowCardinality(String), String)),
    convention       LowCardinality(String),
    stage            LowCardinality(String)
)
engine = Null;

-- tables/0097_rag_observed_in_mv.sql
-- answers: which spans are written by Langfuse and MLflow?
-- grain:   fills rag_observed_in at insert, one row per span
-- reads:   rag_foreign_in
create materialized view if not exists rag_observed_in_mv to rag_observed_in as
select *
from rag_foreign_in
where convention in ('langfuse', 'mlflow');

-- tables/0098_rag_openinference_mv.sql
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
        attributes['reranker.query'] != '', attributes['reranker.query'],
        input = '__REDACTED__', '',
        input != '', asked,
        attributes['gen_ai.retrieval.query.text']
    ) as question,
    multiIf(
        stage = 'generate' and notEmpty(replies), replies[1].2,
        stage in ('retrieve', 'rerank') or output = '__REDACTED__', '',
        answered
    ) as answer,
    arrayMap(document -> (document.2, if(is_unscored, null, document.3), document.4, document.5), listed) as documents,
    if(stage in ('retrieve', 'rerank') and (list_text != '' or notEmpty(flat)), toUInt32(length(listed)), null) as candidate_count,
    arrayMap(group -> group.2['document.content'], taken) as taken_in,
    if(empty(taken), null, taken[-1].1 + 1)::Nullable(UInt32) as in_count,
    multiIf(
        stage not in ('retrieve', 'rerank'), 'not_recorded',
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
    null::Nullable(Float64) as first_token_ms,
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
                                if(document.4 is null or other.3 is null or document.4 = other.3, coalesce(document.2, other.1), document.2),
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
                        or arrayExists(document -> document.2 is null and document.3 is null and document.4 is null, flat)
                    ) as is_gapped,
                    notEmpty(said) and said[-1].1 + 1 = length(said) as is_said_whole
                from (
                    select
                        *,
                        if(
                            JSONType(output_list, 1) in ('Object', 'Null') or JSONType(JSONExtractString(output_list, 1)) = 'Object',
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
                                nullIf(group.2['document.content'], ''),
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
                                )
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
                                        if(
                                            group.2['message.content'] != '',
                                            group.2['message.content'],
                                            arrayFirst(
                                                (text, key) -> match(key, '^message\\.contents\\.\\d+\\.message_content\\.text$'),
                                                mapValues(group.2),
                                                mapKeys(group.2)
                                            )
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
);

-- tables/0099_rag_genai_mv.sql
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
    status_code,
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
        notEmpty(listed), if(length(event_names) >= 128 and ifNull(wanted, 129) > 128, 'truncated', 'whole'),
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
    if(attributes['gen_ai.request.model'] = '', attributes['gen_ai.response.model'], attributes['gen_ai.request.model']) as model,
    arrayFirst(
        name -> name != '',
        [attributes['gen_ai.provider.name'], attributes['gen_ai.system'], attributes['db.system']]
    ) as provider,
    wanted as top_k,
    arrayExists(document -> document.2 is null and document.5 is not null, listed) as is_distance,
    coalesce(toUInt64OrNull(attributes['gen_ai.usage.input_tokens']), toUInt64OrNull(attributes['gen_ai.usage.prompt_tokens'])) as input_tokens,
    coalesce(toUInt64OrNull(attributes['gen_ai.usage.output_tokens']), toUInt64OrNull(attributes['gen_ai.usage.completion_tokens'])) as output_tokens,
    multiIf(
        attributes['gen_ai.response.finish_reasons'] = '', [],
        JSONType(attributes['gen_ai.response.finish_reasons']) = 'Array', JSONExtract(attributes['gen_ai.response.finish_reasons'], 'Array(String)'),
        [attributes['gen_ai.response.finish_reasons']]
    ) as finish_reasons,
    toFloat64OrNull(attributes['gen_ai.request.temperature']) as temperature,
    toFloat64OrNull(attributes['gen_ai.response.time_to_first_chunk']) * 1000 as first_token_ms,
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
            list_text != '', from_json,
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
                if(stage = 'rerank', rag_json_list(call_input), '') as given_text,
                if(
                    stage = 'rerank',
                    arrayMap(message -> message.2, arrayFilter(message -> message.1 in ('system', 'document'), messages)),
                    []
                ) as numbered
            from (
                select
                    *,
                    if(attributes['gen_ai.retrieval.documents'] = '', call_output, attributes['gen_ai.retrieval.documents']) as list_source,
                    accurateCastOrNull(rag_json_number(call_output, 'count'), 'UInt32') as stated_count,
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
                                event -> ('assistant', if(event['content'] = '', rag_json_answer(event['message']), event['content'])),
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
                        if(is_spoken, rag_indexed(attributes, 'gen_ai.prompt.'), []) as flat_prompt,
                        if(is_spoken, rag_indexed(attributes, 'gen_ai.completion.'), []) as flat_reply
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
                                if(stage = 'retrieve', accurateCastOrNull(toFloat64OrNull(attributes['gen_ai.request.top_k']), 'UInt32'), null)
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
                                    (event, name) -> (splitByChar('.', name)[2], event['content']),
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
);

-- tables/0100_rag_observed_mv.sql
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
);

-- tables/0101_rag_foreign_requests_mv.sql
-- answers: what was asked and answered in a service that another instrumentation traces?
-- grain:   fills rag_requests at insert, one row per span that is a request
-- reads:   rag_foreign_read
-- Where the span itself does not say what was asked, the first search of the same batch does, else the last
-- message of the user; the answer is the last generation's then.
create materialized view if not exists rag_foreign_requests_mv to rag_requests as
select
    trace_id,
    request_id,
    span_id,
    if(session_id = '', any_session, session_id) as session_id,
    if(user_id = '', any_user, user_id) as user_id,
    '' as tenant,
    '' as principal,
    '' as tags,
    started_at,
    duration / 1e6 as duration_ms,
    service_name,
    multiIf(
        stage != 'generate' and question != '', question,
        searched != '', searched,
        question != '', question,
        last_said
    ) as query,
    rag_normalise(query) as query_norm,
    if(trimBoth(query_norm) = '', 0, sipHash64(trimBoth(query_norm))) as query_hash,
    if(answer = '', last_answer, answer) as answer,
    rag_normalise(answer) as answer_norm,
    transform(status_code, ['Error', 'Ok'], ['error', 'ok'], '') as outcome,
    multiIf(query = '' and answer = '', '', 'full') as content_mode,
    '' as run_id,
    '' as arm,
    '' as label_id,
    convention,
    toUInt32(0) as capture_errors
from (
    select
        trace_id,
        request_id,
        span_id,
        session_id,
        user_id,
        started_at,
        duration,
        service_name,
        question,
        status_code,
        convention,
        stage,
        is_request,
        rag_foreign_read.answer as answer,
        argMinIf(question, started_at, stage in ('retrieve', 'rerank') and question != '') over whole as searched,
        argMaxIf(question, started_at, stage = 'generate' and question != '') over whole as last_said,
        argMaxIf(rag_foreign_read.answer, started_at, stage = 'generate' and rag_foreign_read.answer != '') over whole as last_answer,
        argMinIf(session_id, started_at, session_id != '') over whole as any_session,
        argMinIf(user_id, started_at, user_id != '') over whole as any_user
    from rag_foreign_read
    window whole as (partition by trace_id, request_id)
)
where is_request;

-- tables/0102_rag_foreign_stages_mv.sql
-- answers: what did each stage return, in a service that another instrumentation traces?
-- grain:   fills rag_stages at insert, one row per span that retrieves, reranks or generates
-- reads:   rag_foreign_read
create materialized view if not exists rag_foreign_stages_mv to rag_stages as
select
    trace_id,
    request_id,
    span_id,
    parent_span_id,
    started_at,
    started_at + toIntervalNanosecond(least(duration, 86400000000000)) as ended_at,
    duration / 1e6 as duration_ms,
    service_name,
    stage,
    span_name as stage_name,
    transform(status_code, ['Error', 'Ok'], ['error', 'ok'], '') as outcome,
    arrayMap(document -> document.id, documents) as chunk_ids,
    arrayMap(document -> document.score, documents) as scores,
    arrayMap(
        document -> if(
            trimBoth(ifNull(document.text, '')) = '',
            '',
            concat('sha256:', lower(substring(hex(SHA256(rag_normalise(assumeNotNull(document.text)))), 1, 16)))
        ),
        documents
    ) as candidate_shas,
    arrayMap(document -> document.doc_id, documents) as candidate_doc_ids,
    arrayMap(document -> '', documents) as candidate_doc_versions,
    arrayMap(document -> null, documents)::Array(Nullable(UInt32)) as candidate_tokens,
    arrayMap(document -> if(document.text is null, null, toUInt32(lengthUTF8(document.text))), documents)::Array(Nullable(UInt32)) as candidate_chars,
    arrayMap(document -> null, documents)::Array(Nullable(UInt32)) as candidate_kept_chars,
    arrayMap(document -> null, documents)::Array(Nullable(Bool)) as candidate_superseded,
    arrayMap(document -> '', documents) as candidate_legs,
    candidate_count,
    in_count,
    index_name,
    index_version,
    filter,
    if(stage = 'generate', '', question) as query,
    model,
    provider,
    top_k,
    if(stage = 'rerank', top_k, null) as limit_count,
    if(is_distance, 'distance', '') as score_kind,
    if(is_distance, false, null)::Nullable(Bool) as higher_is_better,
    input_tokens,
    output_tokens,
    finish_reasons,
    temperature,
    first_token_ms as time_to_first_token_ms,
    if(stage = 'generate', prompt_state, '') as content_mode,
    convention,
    if(stage = 'generate', 'not_recorded', evidence) as evidence,
    'not_recorded' as dropped_evidence
from rag_foreign_read
where stage in ('retrieve', 'rerank', 'generate');

-- tables/0103_rag_foreign_prompts_mv.sql
-- answers: what exactly did the model read, in a service that another instrumentation traces?
-- grain:   fills rag_prompts at insert, one row per generation whose messages were recorded
-- reads:   rag_foreign_read
-- The prompt is the text of all messages in order, joined by a blank line. No convention lists what was sent.
create materialized view if not exists rag_foreign_prompts_mv to rag_prompts as
select
    trace_id,
    request_id,
    span_id,
    started_at,
    service_name,
    prompt,
    rag_normalise(prompt) as prompt_norm,
    lower(hex(SHA256(prompt))) as prompt_sha256,
    if(prompt_state = 'full', toUInt64(lengthUTF8(prompt)), null) as chars,
    input_tokens as tokens,
    if(input_tokens is null, '', 'reported') as tokens_source,
    prompt_state as content_mode,
    prompt_state = 'full' as is_whole,
    template_name,
    template_version,
    convention,
    'not_recorded' as evidence
from rag_foreign_read
where stage = 'generate' and prompt != '';

-- tables/0104_rag_foreign_chunks_mv.sql
-- answers: what does this passage say?
-- grain:   fills rag_chunks at insert, one row per text that a span of another instrumentation brings
-- reads:   rag_foreign_read
create materialized view if not exists rag_foreign_chunks_mv to rag_chunks as
select
    concat('sha256:', lower(substring(hex(SHA256(text_norm)), 1, 16))) as chunk_sha,
    passage as text,
    rag_normalise(passage) as text_norm
from rag_foreign_read
array join arrayDistinct(
    arrayConcat(arrayMap(document -> ifNull(document.text, ''), documents), taken_in)
) as passage
where stage in ('retrieve', 'rerank') and trimBoth(passage) != '';

-- tables/0105_rag_foreign_mv.sql
-- answers: which spans did other instrumentations write?
-- grain:   fills rag_foreign_in at insert, one row per span by a convention that is read
-- reads:   otel_traces
-- A span of ours has rag.stage and is not read here. A request is a span without parent, or whose parent is the
-- server span of the same batch: the chains among them, else the last generation. Its request id is '' as that of
-- all stages of its trace, since a batch does not hold the whole trace; several requests of one trace are named
-- by their span until their stages are told apart, so that nothing is mixed.
create materialized view if not exists rag_foreign_mv to rag_foreign_in as
select
    trace_id,
    if(is_request and chain_count > 1, span_id, '') as request_id,
    is_top and if(chain_count > 0, stage = 'chain', span_id = last_top) as is_request,
    span_id,
    parent_span_id,
    started_at,
    duration,
    service_name,
    span_name,
    scope_name,
    attributes,
    status_code,
    event_names,
    event_attributes,
    convention,
    stage
from (
    select
        *,
        countIf(is_top and stage = 'chain') over (partition by trace_id) as chain_count,
        argMaxIf(span_id, (stage = 'generate', started_at), is_top and stage != 'chain') over (partition by trace_id) as last_top
    from (
        select
            *,
            stage in ('retrieve', 'rerank', 'generate', 'chain')
            and (
                parent_span_id = ''
                or has(groupUniqArrayIf(span_id, convention = '') over (partition by trace_id), parent_span_id)
            ) as is_top
        from (
            select
                TraceId as trace_id,
                SpanId as span_id,
                ParentSpanId as parent_span_id,
                Timestamp as started_at,
                Duration as duration,
                ServiceName as service_name,
                SpanName as span_name,
                ScopeName as scope_name,
                SpanAttributes as attributes,
                StatusCode as status_code,
                Events.Name as event_names,
                Events.Attributes as event_attributes,
                rag_foreign_convention(SpanAttributes, ScopeName, Events.Name) as convention,
                rag_foreign_stage(convention, SpanAttributes, SpanName, ScopeName, Events.Name) as stage
            from otel_traces
            where
                not mapContains(SpanAttributes, 'rag.stage')
                and (
                    SpanKind in ('Server', 'Consumer')
                    or rag_foreign_convention(SpanAttributes, ScopeName, Events.Name) != ''
                )
        )
    )
)
where convention != '' and stage != 'other';

-- so that `ragotel init` knows these steps
insert into rag_migrations (name) values ('0001_migrations'), ('0010_otel_traces'), ('0011_otel_traces_trace_id_ts'), ('0012_otel_traces_trace_id_ts_mv'), ('0020_rag_requests'), ('0021_rag_requests_mv'), ('0030_rag_stages'), ('0031_rag_stages_mv'), ('0040_rag_prompts'), ('0041_rag_prompts_mv'), ('0050_rag_chunks'), ('0051_rag_chunks_mv'), ('0060_rag_index_versions'), ('0061_rag_index_chunks'), ('0062_rag_ingest_runs'), ('0063_rag_losses'), ('0064_rag_ingest_runs_mv'), ('0065_rag_losses_mv'), ('0066_rag_index_chunks_mv'), ('0067_rag_index_versions_mv'), ('0070_rag_labels'), ('0071_rag_grades'), ('0072_rag_complaints'), ('0073_rag_label_attachments'), ('0074_rag_probes'), ('0075_rag_ablations'), ('0076_rag_labels_in'), ('0077_rag_labels_in_mv'), ('0078_rag_chunks_in'), ('0079_rag_chunks_in_mv'), ('0080_rag_rules'), ('0087_rag_label_decisions'), ('0088_rag_limits'), ('0090_rag_foreign_in'), ('0091_rag_foreign_read'), ('0092_rag_openinference_in'), ('0093_rag_openinference_in_mv'), ('0094_rag_genai_in'), ('0095_rag_genai_in_mv'), ('0096_rag_observed_in'), ('0097_rag_observed_in_mv'), ('0098_rag_openinference_mv'), ('0099_rag_genai_mv'), ('0100_rag_observed_mv'), ('0101_rag_foreign_requests_mv'), ('0102_rag_foreign_stages_mv'), ('0103_rag_foreign_prompts_mv'), ('0104_rag_foreign_chunks_mv'), ('0105_rag_foreign_mv');
