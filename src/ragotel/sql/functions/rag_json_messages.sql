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
    )
