-- answers: which quantities does this normalised text state?
-- grain:   one function
-- reads:   nothing
-- An array of (number, unit): the unit is %, eur, usd, gbp, jpy, date (the number is then the whole date), the one or
-- two words that follow, or empty. Numbers in words count from two on, where they stand alone.
create or replace function rag_quantities as (body) ->
    arrayFilter(
        quantity -> quantity.1 != '',
        arrayMap(
            part -> (
                multiIf(
                    match(part, '^(?:\\d{4}-\\d\\d-\\d\\d|\\d{1,2}[./]\\d{1,2}[./]\\d{4})$|(?:^|[ .])(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)(?:uary|ruary|ch|il|ust|tember|ober|ember)?(?:[ .,]|$)'),
                    (trimBoth(part, ' .,'), 'date'),
                    match(part, '\\d'),
                    (
                        extract(part, '\\d+(?:[.,]\\d+)*'),
                        multiIf(
                            match(part, '%|\\d ?(?:percent|per cent|prozent)'), '%',
                            match(part, '€|\\d ?(?:eur|euros?)(?: |$)'), 'eur',
                            match(part, '\\$|\\d ?(?:usd|dollars?)(?: |$)'), 'usd',
                            match(part, '£|\\d ?(?:gbp|pounds?)(?: |$)'), 'gbp',
                            match(part, '¥|\\d ?(?:jpy|yen)(?: |$)'), 'jpy',
                            replaceRegexpOne(
                                extract(part, '\\d[- ]?(\\pL.*)$'),
                                '(?:^| )(?:of|and|or|in|to|for|the|a|an|is|are|was|were|at|on|by|per|with|from|as|if|then|than|that|this|it|you|we|they|will|can|must|not|no|more|less|each|every|after|before|until|within|so|but|which|und|oder|von|bis|der|die|das)(?: .*)?$',
                                ''
                            )
                        )
                    ),
                    (
                        transform(
                            extract(part, '^\\pL+'),
                            ['two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven', 'twelve', 'twenty', 'thirty', 'sixty', 'ninety'],
                            ['2', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12', '20', '30', '60', '90'],
                            ''
                        ),
                        multiIf(
                            match(part, '^\\pL+[- ](?:percent|per cent|prozent)'), '%',
                            match(part, '^\\pL+[- ](?:eur|euros?)(?: |$)'), 'eur',
                            match(part, '^\\pL+[- ](?:usd|dollars?)(?: |$)'), 'usd',
                            match(part, '^\\pL+[- ](?:gbp|pounds?)(?: |$)'), 'gbp',
                            match(part, '^\\pL+[- ](?:jpy|yen)(?: |$)'), 'jpy',
                            replaceRegexpOne(
                                extract(part, '^\\pL+[- ](\\pL.*)$'),
                                '(?:^| )(?:of|and|or|in|to|for|the|a|an|is|are|was|were|at|on|by|per|with|from|as|if|then|than|that|this|it|you|we|they|will|can|must|not|no|more|less|each|every|after|before|until|within|so|but|which|und|oder|von|bis|der|die|das)(?: .*)?$',
                                ''
                            )
                        )
                    )
                )
            ),
            extractAll(
                body,
                '(?:^|[^\\pL\\pN._])((?:\\d{4}-\\d\\d-\\d\\d|\\d{1,2}[./]\\d{1,2}[./]\\d{4}|(?:january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec)\\.? \\d{1,2}(?:st|nd|rd|th)?(?:,? \\d{4})?|\\d{1,2}(?:st|nd|rd|th)?\\.? (?:january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec)(?:,? \\d{4})?|[€$£¥] ?\\d+(?:[.,]\\d+)*|\\d+(?:[.,]\\d+)*(?: ?[%€$£¥]|[- ]?\\pL+(?: \\pL+)?)?|(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|sixty|ninety)(?:[- ]\\pL+(?: \\pL+)?|\\b)))'
            )
        )
    )
