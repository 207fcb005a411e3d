-- answers: what does it cost the answers where the gold passage stands, and among how many?
-- grain:   one row per service × label set × position of the gold passage × number of passages in the prompt
-- reads:   rag_request_ablations, rag_ablations, rag_labels
-- Points are percentage points. points_lost_by_length compares with the same position among the fewest passages,
-- points_lost_by_position with the best position among as many.
create or replace view dist_positions as
with
    labels as (
        select label_id, label_set
        from rag_labels
        where label_id in (select label_id from rag_ablations where mode = 'position')
        order by loaded_at desc
        limit 1 by label_id
    ),
    counted as (
        select
            runs.service_name as service_name,
            labels.label_set as label_set,
            runs.position as position,
            runs.of as of,
            count() as cases,
            countIf(runs.correct) as correct,
            correct / cases as share
        from rag_request_ablations as runs
        inner join labels on labels.label_id = runs.label_id
        where runs.mode = 'position'
        group by service_name, label_set, position, of
    )
select
    service_name,
    label_set,
    position,
    of,
    correct,
    cases,
    share,
    min(of) over same_position as fewest_of,
    100 * (argMin(share, of) over same_position - share) as points_lost_by_length,
    argMax(position, (share, -toInt64(position))) over same_length as best_position,
    100 * (max(share) over same_length - share) as points_lost_by_position
from counted
window
    same_position as (partition by service_name, label_set, position),
    same_length as (partition by service_name, label_set, of)
settings join_use_nulls = 0
