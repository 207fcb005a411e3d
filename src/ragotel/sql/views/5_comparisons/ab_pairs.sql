-- answers: which questions did the one arm win, and which did it lose, by each measure?
-- grain:   one row per pair of arms × label × measure × given × k
-- reads:   rag_requests, ab_answers
-- An arm is all requests of one rag.arm (kind arm), one rag.run.id (run), or both (run/arm). Repeats of a question
-- within an arm vote: value is 1, 0, or null where nothing could be measured or the vote is even; flips counts the
-- outvoted. gained is what got better: of lures, fewer. given is the condition under which an answer counts at all:
-- asked, returned (a hit), document_returned (the gold's document is in the list). k is 0 where the measure has none.
create or replace view ab_pairs as
with
    names as (
        select distinct name.1 as kind, name.2 as named
        from rag_requests
        array join arrayFilter(
            one -> one.2 != '',
            [
                ('arm', toString(arm)),
                ('run', run_id),
                ('run/arm', if(run_id = '' or arm = '', '', concat(run_id, '/', arm)))
            ]
        ) as name
    ),
    sides as (
        select
            kind,
            arm_a,
            arm_b,
            place.1 as side,
            place.2 as named
        from (
            select a.kind as kind, a.named as arm_a, b.named as arm_b
            from names as a
            inner join names as b on b.kind = a.kind
            where a.named != b.named
        )
        array join [('a', arm_a), ('b', arm_b)] as place
    ),
    answers as (
        select
            * except (names, run_id, arm, service_name, started_at, matched_by),
            name.1 as kind,
            name.2 as named
        from (
            select
                *,
                arrayFilter(
                    one -> one.2 != '',
                    [
                        ('arm', toString(arm)),
                        ('run', run_id),
                        ('run/arm', if(run_id = '' or arm = '', '', concat(run_id, '/', arm)))
                    ]
                ) as names
            from ab_answers
        )
        array join names as name
    ),
    placed as (
        select answers.*, sides.arm_a as arm_a, sides.arm_b as arm_b, sides.side as side
        from answers
        inner join sides on sides.kind = answers.kind and sides.named = answers.named
    ),
    measured as (
        select
            * except (passages_absent, passages_read, last_gold_rank),
            test.1 as measure,
            test.2 as given,
            test.3 as k,
            multiIf(
                given = 'returned', if(ifNull(returned_count, 0) > 0, 1, 0),
                given = 'document_returned', if(document_rank is not null, 1, 0),
                1
            ) as is_given,
            multiIf(
                not is_given, null,
                measure = 'accuracy',
                multiIf(
                    grade = '', null,
                    grade = 'correct' or (grade = 'abstained' and not answerable), 1,
                    0
                ),
                measure = 'lure_first',
                multiIf(
                    not has_lures or not top_is_read or ifNull(returned_count, 0) = 0, null,
                    ifNull(lure_rank, 0) = 1, 1,
                    ifNull(unread_rank, 0) = 1, null,
                    0
                ),
                measure = 'stale_first',
                multiIf(
                    not (has_lures or tells_superseded) or not top_is_read or ifNull(returned_count, 0) = 0, null,
                    ifNull(stale_rank, 0) = 1, 1,
                    ifNull(unread_rank, 0) = 1, null,
                    0
                ),
                measure = 'lure_before_gold',
                multiIf(
                    not has_lures or passages_read < passage_count or passage_count = 0, null,
                    lure_rank is not null and lure_rank < ifNull(gold_rank, 4294967295), 1,
                    unread_rank is not null and unread_rank < ifNull(gold_rank, 4294967295), null,
                    0
                ),
                measure = 'clean',
                multiIf(
                    not (has_lures or tells_superseded) or not top_is_read or ifNull(returned_count, 0) = 0, null,
                    ifNull(stale_rank, 4294967295) <= k, 0,
                    ifNull(unread_rank, 4294967295) <= k or not list_is_whole, null,
                    1
                ),
                passage_count = 0, null,
                measure = 'recall',
                multiIf(ifNull(gold_rank, 4294967295) <= k, 1, passages_read < passage_count, null, 0),
                measure = 'current',
                multiIf(ifNull(current_rank, 4294967295) <= k, 1, passages_read < passage_count, null, 0),
                measure = 'all_present',
                multiIf(
                    passages_absent > 0 or ifNull(last_gold_rank, 0) > k, 0,
                    passages_read < passage_count, null,
                    1
                ),
                measure = 'document_recall',
                multiIf(ifNull(document_rank, 4294967295) <= k, 1, not document_is_read, null, 0),
                null
            )::Nullable(UInt8) as value
        from placed
        array join arrayConcat(
            [
                ('accuracy', 'asked', 0),
                ('lure_first', 'asked', 0),
                ('stale_first', 'asked', 0),
                ('lure_before_gold', 'asked', 0)
            ],
            arrayFlatten(
                arrayMap(
                    at -> [
                        ('recall', 'asked', at),
                        ('recall', 'returned', at),
                        ('recall', 'document_returned', at),
                        ('document_recall', 'asked', at),
                        ('document_recall', 'returned', at),
                        ('all_present', 'asked', at),
                        ('all_present', 'returned', at),
                        ('all_present', 'document_returned', at),
                        ('current', 'asked', at),
                        ('current', 'returned', at),
                        ('current', 'document_returned', at),
                        ('clean', 'asked', at)
                    ],
                    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 30, 50, 100]
                )
            )
        ) as test
    ),
    voted as (
        select
            kind,
            arm_a,
            arm_b,
            label_id,
            label_set,
            population,
            split,
            is_split_declared,
            measure,
            given,
            k,
            any(question) as question,
            countIf(side = 'a') as repeats_a,
            countIf(side = 'b') as repeats_b,
            countIf(side = 'a' and ifNull(value, 0) = 1) as hits_a,
            countIf(side = 'b' and ifNull(value, 0) = 1) as hits_b,
            countIf(side = 'a' and ifNull(value, 1) = 0) as misses_a,
            countIf(side = 'b' and ifNull(value, 1) = 0) as misses_b,
            arraySort(groupArrayIf(duration_ms, side = 'a')) as durations_ms_a,
            arraySort(groupArrayIf(duration_ms, side = 'b')) as durations_ms_b,
            arraySort(groupArrayIf(request_id, side = 'a')) as request_ids_a,
            arraySort(groupArrayIf(request_id, side = 'b')) as request_ids_b,
            arraySort(groupArrayIf(request_id, side = 'a' and degraded)) as degraded_requests_a,
            arraySort(groupArrayIf(request_id, side = 'b' and degraded)) as degraded_requests_b
        from measured
        group by kind, arm_a, arm_b, label_id, label_set, population, split, is_split_declared, measure, given, k
    )
select
    kind,
    arm_a,
    arm_b,
    label_id,
    label_set,
    population,
    split,
    is_split_declared,
    question,
    measure,
    given,
    k,
    multiIf(hits_a > misses_a, 1, misses_a > hits_a, 0, null)::Nullable(UInt8) as value_a,
    multiIf(hits_b > misses_b, 1, misses_b > hits_b, 0, null)::Nullable(UInt8) as value_b,
    multiIf(
        repeats_b = 0, 'only_a',
        repeats_a = 0, 'only_b',
        value_a is null or value_b is null, 'unmeasured',
        value_a != value_b, if((value_b = 1) = (measure not in ('lure_first', 'stale_first', 'lure_before_gold')), 'gained', 'lost'),
        value_a = 1, 'both',
        'neither'
    ) as outcome,
    repeats_a,
    repeats_b,
    least(hits_a, misses_a) as flips_a,
    least(hits_b, misses_b) as flips_b,
    durations_ms_a,
    durations_ms_b,
    request_ids_a,
    request_ids_b,
    degraded_requests_a,
    degraded_requests_b
from voted
settings join_use_nulls = 0
