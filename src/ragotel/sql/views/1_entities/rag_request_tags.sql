-- answers: by which free properties can requests be told apart?
-- grain:   one row per request × tag
-- reads:   rag_requests
-- {"gated": true} is the tag gated with the value true; in a list, "gated" and "gated:True" mean the same, and
-- "plan=team" or "plan:team" is the tag plan with the value team.
create or replace view rag_request_tags as
with
    told as (
        select trace_id, request_id, started_at, service_name, tags
        from rag_requests
        where tags not in ('', '[]', '{}')
        limit 1 by trace_id, request_id
    ),
    listed as (
        select
            *,
            multiIf(
                not isValidJSON(tags), [],
                JSONType(tags) = 'Array', JSONExtractArrayRaw(tags),
                JSONType(tags) = 'Object', [tags],
                []
            ) as elements
        from told
    ),
    read as (
        select
            trace_id,
            request_id,
            started_at,
            service_name,
            if(
                JSONType(element) = 'Object',
                JSONExtractKeysAndValuesRaw(element),
                [('', element)]
            ) as pairs
        from listed
        array join elements as element
    ),
    unquoted as (
        select
            trace_id,
            request_id,
            started_at,
            service_name,
            pair.1 as own_key,
            if(JSONType(pair.2) = 'String', JSONExtractString(pair.2), pair.2) as told_value
        from read
        array join pairs as pair
    ),
    split as (
        select
            trace_id,
            request_id,
            started_at,
            service_name,
            own_key,
            told_value,
            own_key = '' and match(told_value, '^[\\pL\\pN_. -]+[=:][^/]') as is_pair
        from unquoted
    )
select distinct
    trace_id,
    request_id,
    started_at,
    service_name,
    multiIf(
        own_key != '', own_key,
        is_pair, extract(told_value, '^([^=:]+)[=:]'),
        told_value
    ) as tag_key,
    multiIf(
        own_key != '', told_value,
        is_pair and match(told_value, '[=:](True|False)$'), lower(extract(told_value, '[=:](True|False)$')),
        is_pair, extract(told_value, '(?s)^[^=:]+[=:](.*)$'),
        'true'
    ) as tag_value
from split
where tag_key != ''
