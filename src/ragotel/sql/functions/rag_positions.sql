-- answers: where in this text does each of these words first stand, in bytes from 1; 0 for none?
-- grain:   one function
-- reads:   nothing
-- The engine takes 255 words at a time; of more than a thousand the rest counts as absent.
create or replace function rag_positions as (body, words) ->
    arrayResize(
        arrayConcat(
            multiSearchAllPositions(body, arraySlice(words, 1, 250)),
            multiSearchAllPositions(body, arraySlice(words, 251, 250)),
            multiSearchAllPositions(body, arraySlice(words, 501, 250)),
            multiSearchAllPositions(body, arraySlice(words, 751, 250))
        ),
        length(words),
        0
    )
