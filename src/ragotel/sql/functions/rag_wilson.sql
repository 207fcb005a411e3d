-- answers: between which two rates does the true rate lie, at 95 % confidence?
-- grain:   one function
-- reads:   nothing
-- Wilson's score interval as (low, high); nulls where nothing was measured.
create or replace function rag_wilson as (hits, measured) ->
    if(
        measured = 0,
        (null, null),
        (
            (
                greatest(
                    0.,
                    (hits + 1.920729410347062 - 1.959963984540054 * sqrt(hits * (measured - hits) / measured + 0.960364705173531))
                    / (measured + 3.841458820694124)
                )
            )::Nullable(Float64),
            (
                least(
                    1.,
                    (hits + 1.920729410347062 + 1.959963984540054 * sqrt(hits * (measured - hits) / measured + 0.960364705173531))
                    / (measured + 3.841458820694124)
                )
            )::Nullable(Float64)
        )
    )
