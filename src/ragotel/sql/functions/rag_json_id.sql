-- answers: which id does a key of this JSON object hold?
-- grain:   one function; a text or a whole number, '' where it holds neither
-- reads:   nothing
create or replace function rag_json_id as (json, key) ->
    multiIf(
        JSONType(json, key) = 'String', JSONExtractString(json, key),
        JSONType(json, key) in ('Int64', 'UInt64'), JSONExtractRaw(json, key),
        ''
    )
