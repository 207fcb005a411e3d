-- answers: how is text made comparable, everywhere?
-- grain:   one function
-- reads:   nothing
-- NFKC case folding drops the default-ignorable characters; the class lists all of Unicode White_Space
-- and U+001C to U+001F, because RE2's \s knows ASCII only. ragotel.text.normalise is its twin.
create or replace function rag_normalise as (raw) ->
    replaceRegexpAll(
        normalizeUTF8NFKCCasefold(toValidUTF8(raw)),
        '[\\x{09}-\\x{0D}\\x{1C}-\\x{1F}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}]+',
        ' '
    )
