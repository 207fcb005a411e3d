-- answers: how much gold would reciprocal rank fusion have within its first k, beside the fusion that was recorded?
-- grain:   one row per day × service × run × arm × label set × index version × rrf_k × k
-- reads:   what_if_rrf
-- Gold passages are counted whose legs and whose recorded fusion could be read; unreadable_passages are the others.
-- Of equal scores what_if_at_least takes the last place and what_if_at_most the first; gained and lost hold for both.
create or replace view dist_what_if_rrf as
with
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 50, 100]::Array(UInt32) as ks,
    ranked as (
        select
            toDate(started_at) as day,
            service_name,
            run_id,
            arm,
            label_set,
            index_version,
            rrf_k,
            is_whole and (recorded_rank is not null or is_recorded_absent) as is_readable,
            ifNull(recorded_rank, 4294967295) as recorded,
            ifNull(what_if_rank, 4294967295) as best,
            ifNull(what_if_rank_last, 4294967295) as worst
        from what_if_rrf
    )
select
    day,
    service_name,
    run_id,
    arm,
    label_set,
    index_version,
    rrf_k,
    k,
    countIf(is_readable) as passages,
    count() - passages as unreadable_passages,
    countIf(is_readable and recorded <= k) as recorded_within,
    countIf(is_readable and worst <= k) as what_if_at_least,
    countIf(is_readable and best <= k) as what_if_at_most,
    countIf(is_readable and worst <= k and recorded > k) as gained,
    countIf(is_readable and recorded <= k and best > k) as lost
from ranked
array join ks as k
group by day, service_name, run_id, arm, label_set, index_version, rrf_k, k
