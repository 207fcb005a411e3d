-- answers: which finite number does a key of this JSON object hold?
-- grain:   one function; null where it holds none
-- reads:   nothing
create or replace function rag_json_number as (json, key) ->
    if(
        JSONType(json, key) in ('Int64', 'UInt64', 'Double') and isFinite(JSONExtractFloat(json, key)),
        JSONExtractFloat(json, key),
        null
    )
