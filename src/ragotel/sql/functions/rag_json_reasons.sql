-- answers: which finish reasons does this attribute hold?
-- grain:   one function
-- reads:   nothing
-- A JSON list of texts, the OTLP JSON list that rotel writes ({"values": [{"stringValue": …}]}), or one bare word.
create or replace function rag_json_reasons as (written) ->
    multiIf(
        written = '', [],
        JSONType(written) = 'Array', JSONExtract(written, 'Array(String)'),
        JSONType(written, 'values') = 'Array',
        arrayMap(raw -> JSONExtractString(raw, 'stringValue'), JSONExtractArrayRaw(written, 'values')),
        [written]
    )
