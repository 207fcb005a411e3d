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
    )
