-- answers: where in this text does each of these words first stand, in bytes from 1; 0 for none?
-- grain:   one function
-- reads:   nothing
-- Not multiSearchAllPositions: that takes 255 words at most, and refuses a text that is the same in all rows.
create or replace function rag_positions as (body, words) -> arrayMap(word -> position(body, word), words)
