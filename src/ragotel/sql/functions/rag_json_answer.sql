-- answers: which answer does the output of a call give?
-- grain:   one function; '' where it cannot be told
-- reads:   nothing
-- Plain text is the answer; of JSON the text under a usual name, at the top or one level below, or the first
-- choice, or what was said last by neither user, system nor tool.
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
                        arrayElementOrNull(
                            arrayMap(
                                message -> message.2,
                                arrayFilter(
                                    message -> message.1 not in ('user', 'system', 'developer', 'tool'),
                                    rag_json_messages(output)
                                )
                            ),
                            if(JSONHas(output, 'choices'), 1, -1)
                        ),
                        if(JSONLength(output) = 1 and JSONType(output, 1) = 'String' and JSONType(output) = 'Object', JSONExtractString(output, 1), ''),
                        JSONExtractString(output, 'generations', 1, 1, 'text'),
                        JSONExtractString(output, 'generations', 1, 1, 'message', 'content'),
                        null
                    ]
                )
            ),
            ''
        )
    )
