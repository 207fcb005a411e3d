-- answers: which adoption rules were set, and since when?
-- grain:   one row per rule text by its hash; the first registration counts
-- reads:   nothing
-- rule_hash is the SHA-256 of what the rule says (as canonical JSON), so that a comment changes nothing and a limit does.
create table if not exists rag_rules
(
    rule_name     String,
    rule_hash     String,
    rule_text     SimpleAggregateFunction(any, String),
    registered_at SimpleAggregateFunction(min, DateTime64(6, 'UTC')) default now64(6)
)
engine = AggregatingMergeTree
order by (rule_name, rule_hash)
