-- answers: which passages does a reranker's answer mean by their places in its input?
-- grain:   one function; the documents of rag_json_documents, those that have neither id nor text filled in
-- reads:   nothing
-- A result such as {"index": 1, "relevance_score": 0.9} names the second passage that went in.
create or replace function rag_json_ranked as (list, documents, given) ->
    arrayMap(
        (document, inner) -> if(
            document.1 is null and document.3 is null,
            (inner.1, document.2, inner.3, inner.4, document.5),
            document
        ),
        documents,
        arrayMap(
            place -> given[place + 1],
            arrayResize(
                arrayMap(
                    raw -> arrayMap(
                        places -> ifNull(coalesce(places.1, places.2), 4294967294),
                        [JSONExtract(raw, 'Tuple(index Nullable(UInt32), corpus_id Nullable(UInt32))')]
                    )[1],
                    JSONExtractArrayRaw(list)
                ),
                length(documents),
                4294967294
            )
        )
    )
