-- answers: does this normalised text state this normalised claim?
-- grain:   one function
-- reads:   nothing
-- No letter or digit may adjoin a letter or digit at the claim's ends: '10 seats' is not in '110 seats'.
-- The byte search and the characters beside its first find decide nearly all rows. Only a find that is part of a
-- longer word needs the pattern, which is compiled for each row and costs a thousand times more.
create or replace function rag_contains as (body, claim) ->
    multiIf(
        claim = '' or position(body, claim) = 0, 0,
        (
            not match(claim, '^[\\pL\\pN]')
            or not match(substring(body, greatest(position(body, claim) - 4, 1), least(position(body, claim) - 1, 4)), '[\\pL\\pN]$')
        )
        and (
            not match(claim, '[\\pL\\pN]$')
            or not match(substring(body, position(body, claim) + length(claim), 4), '^[\\pL\\pN]')
        ), 1,
        match(
            body,
            concat(
                if(match(claim, '^[\\pL\\pN]'), '(?:^|[^\\pL\\pN])', ''),
                regexpQuoteMeta(claim),
                if(match(claim, '[\\pL\\pN]$'), '(?:$|[^\\pL\\pN])', '')
            )
        )
    )
