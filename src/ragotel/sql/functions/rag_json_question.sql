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
    )
