-- answers: does this normalised text state this normalised claim?
-- grain:   one function
-- reads:   nothing
-- No letter or digit may adjoin a letter or digit at the claim's ends: '10 seats' is not in '110 seats'.
-- The cheap byte search decides nearly all rows; the pattern runs only where it finds something.
create or replace function rag_contains as (body, claim) ->
    if(
        claim = '' or position(body, claim) = 0,
        0,
        match(
            body,
            concat(
                if(match(claim, '^[\\pL\\pN]'), '(?:^|[^\\pL\\pN])', ''),
                regexpQuoteMeta(claim),
                if(match(claim, '[\\pL\\pN]$'), '(?:$|[^\\pL\\pN])', '')
            )
        )
    )
