-- answers: how likely is so uneven a split of gains and losses, if neither side were better?
-- grain:   one function
-- reads:   nothing
-- The exact two-sided sign test: twice the binomial tail of the smaller count at one half, at most 1; ties are left
-- out by who counts. Each term goes through logarithms, so that thousands of questions neither overflow nor vanish;
-- their noise is rounded off, so that 0.375 prints as 0.38.
create or replace function rag_sign_test as (gained, lost) ->
    arrayMap(
        p_value -> least(1., if(p_value < 0.001, p_value, round(p_value, 13))),
        [
            2 * arraySum(
                hits -> exp(
                    lgamma(gained + lost + 1.) - lgamma(hits + 1.) - lgamma(gained + lost - hits + 1.) - (gained + lost) * log(2)
                ),
                range(toUInt64(least(gained, lost)) + 1)
            )
        ]
    )[1]
