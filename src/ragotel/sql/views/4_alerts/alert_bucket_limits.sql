-- answers: on which days is the share of a bucket over the limit set for it?
-- grain:   one row per day × service × label set × bucket; corpus gaps have a view of their own
-- reads:   limits_on_buckets
create or replace view alert_bucket_limits as
select
    alert.1::String as name,
    service_name::String as service_name,
    label_set::String as label_set,
    bucket::String as subject,
    toDateTime64(day, 9, 'UTC') as window_at,
    alert.2 as observed,
    alert.3 as allowed,
    toUInt64(sample_count) as sample_count,
    example_trace_id,
    example_request_id,
    ifNull(alert.4, '') as message
from limits_on_buckets
array join broken as alert
where alert.1 = 'bucket_limits'
