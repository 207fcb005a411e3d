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
    )
