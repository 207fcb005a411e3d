-- answers: what does each search leg bring by itself, and what would be lost without it?
-- grain:   one row per day × service × run × arm × label set × index version × leg × k
-- reads:   rag_gold_places
-- Gold passages are counted, of requests in which the leg ran. only_this_leg: within its first k and no other leg's;
-- union_recall - recall_without is what the leg adds at k. lost_if_off is the same for every k: passages in the list
-- handed to assembly that no other leg held at any rank. undecided: another leg's list could not be read.
create or replace view dist_legs as
with
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 50, 100]::Array(UInt32) as ks,
    named as (
        select
            started_at,
            service_name,
            run_id,
            arm,
            label_set,
            index_version,
            final_rank,
            legs,
            arrayJoin(arrayDistinct(arrayMap(one -> one.1, legs))) as leg
        from rag_gold_places
        where notEmpty(legs)
    ),
    parted as (
        select
            toDate(started_at) as day,
            service_name,
            run_id,
            arm,
            label_set,
            index_version,
            leg,
            final_rank is not null as is_final,
            arrayFilter(one -> one.1 = leg, legs) as own,
            arrayFilter(one -> one.1 != leg, legs) as others
        from named
    ),
    ranked as (
        select
            day,
            service_name,
            run_id,
            arm,
            label_set,
            index_version,
            leg,
            is_final,
            arrayMin(one -> ifNull(one.2, 4294967295), own) as own_rank,
            if(empty(others), 4294967295, arrayMin(one -> ifNull(one.2, 4294967295), others)) as other_rank,
            own_rank < 4294967295 or arrayAll(one -> one.3, own) as is_own_known,
            other_rank < 4294967295 or arrayAll(one -> one.3, others) as is_other_known
        from parted
    ),
    summed as (
        select
            day,
            service_name,
            run_id,
            arm,
            label_set,
            index_version,
            leg,
            countIf(is_own_known) as passages,
            countIf(not is_own_known) as unreadable_passages,
            countIf(is_own_known and is_other_known) as compared,
            countIf(is_own_known and not is_other_known) as undecided,
            countIf(is_own_known and is_other_known and is_final and own_rank < 4294967295 and other_rank = 4294967295) as lost_if_off,
            sumForEachIf(arrayMap(k -> toUInt64(own_rank <= k), ks), is_own_known) as founds,
            sumForEachIf(arrayMap(k -> toUInt64(own_rank <= k and other_rank > k), ks), is_own_known and is_other_known) as alones,
            sumForEachIf(arrayMap(k -> toUInt64(least(own_rank, other_rank) <= k), ks), is_own_known and is_other_known) as unions,
            sumForEachIf(arrayMap(k -> toUInt64(other_rank <= k), ks), is_own_known and is_other_known) as rests
        from ranked
        group by day, service_name, run_id, arm, label_set, index_version, leg
    )
select
    day,
    service_name,
    run_id,
    arm,
    label_set,
    index_version,
    leg,
    k,
    passages,
    unreadable_passages,
    if(passages = 0, 0, founds[place]) as found,
    if(passages = 0, null, founds[place] / passages) as recall,
    compared,
    undecided,
    if(compared = 0, 0, alones[place]) as only_this_leg,
    if(compared = 0, null, unions[place] / compared) as union_recall,
    if(compared = 0, null, rests[place] / compared) as recall_without,
    lost_if_off
from summed
array join ks as k, arrayEnumerate(ks) as place
settings join_use_nulls = 0
