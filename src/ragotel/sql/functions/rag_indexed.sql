-- answers: which values stand under flattened keys such as prefix.0.id, prefix.0.text, prefix.1.id?
-- grain:   one function; an array of (index, map of the rest of the key to the value), by index, gaps left out
-- reads:   nothing
-- The one-element array stands for a name: nothing large is captured by a lambda.
create or replace function rag_indexed as (attributes, prefix) ->
    arrayMap(
        entries -> arrayMap(
            group -> (group[1].1, cast(arrayMap(entry -> (entry.2, entry.3), group), 'Map(String, String)')),
            arraySplit((entry, step) -> step != 0, entries, arrayDifference(arrayMap(entry -> entry.1, entries)))
        ),
        [
            arraySort(
                entry -> entry.1,
                arrayMap(
                    entry -> (
                        toUInt32OrZero(extract(entry.1, '^(\\d{1,4})(?:\\.|$)')),
                        extract(entry.1, '^\\d+\\.(.*)$'),
                        entry.2
                    ),
                    arrayFilter(
                        entry -> match(entry.1, '^\\d{1,4}(?:\\.|$)'),
                        arrayMap(
                            (key, value) -> (if(startsWith(key, prefix), substring(key, length(prefix) + 1), ''), value),
                            mapKeys(attributes),
                            mapValues(attributes)
                        )
                    )
                )
            )
        ]
    )[1]
