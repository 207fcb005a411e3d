-- answers: what does this normalised text state, without what it denies?
-- grain:   one function
-- reads:   nothing
-- What follows a negation up to the end of its clause is cut out; "not more than 5" still states 5.
create or replace function rag_without_negated as (body) ->
    replaceRegexpAll(
        replaceRegexpAll(
            body,
            '\\b(?:no|not|cannot|nicht) (more|later|less|fewer|earlier|sooner|longer than|exceed|over|above|only|limited|mehr als)\\b',
            '\\1'
        ),
        '(?:\\b(?:not|never|cannot|nor|neither|no longer|without|instead of|rather than|nicht|keine?[nmrs]?|niemals|statt)\\b|n[\\x27’]t\\b).{0,200}?(?:[.;:!?,](?: |$)| but | sondern |$)',
        ' '
    )
