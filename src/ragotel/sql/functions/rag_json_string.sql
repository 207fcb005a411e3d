-- answers: which text does a key of this JSON object hold?
-- grain:   one function; '' where it holds none or something else
-- reads:   nothing
create or replace function rag_json_string as (json, key) ->
    if(JSONType(json, key) = 'String', JSONExtractString(json, key), '')
