-- answers: how are the labelled requests spread over the triage buckets, day by day?
-- grain:   one row per day × service × index version × template version × run × label set × bucket
-- reads:   triage_requests
-- share is 0 to 1 within its group, over all labelled requests of the group; the shares of a group sum to 1.
create or replace view dist_buckets as
select
    toDate(started_at) as day,
    service_name,
    index_name,
    index_version,
    template_name,
    template_version,
    run_id,
    label_set,
    bucket,
    count() as requests,
    sum(requests) over (
        partition by day, service_name, index_name, index_version, template_name, template_version, run_id, label_set
    ) as labelled_requests,
    requests / labelled_requests as share,
    100 * requests / labelled_requests as share_percent,
    countIf(right_without_gold) as right_without_gold,
    countIf(abstained) as abstained
from triage_requests
group by
    day,
    service_name,
    index_name,
    index_version,
    template_name,
    template_version,
    run_id,
    label_set,
    bucket
