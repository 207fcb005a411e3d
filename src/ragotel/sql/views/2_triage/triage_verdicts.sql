-- answers: which factor of a right answer failed first, for each passage that the answer needs?
-- grain:   one row per request × label × gold passage; passage 0 where the label asks for none
-- reads:   rag_labelled_requests, rag_request_labels, rag_label_passages, rag_requests, rag_request_flows, rag_gold_ranks, rag_gold_changes, rag_index_chains, rag_stages, rag_ingest_runs, rag_prompts, rag_request_probes, rag_ablations, rag_request_grades
-- Evidence that was not recorded gives null factors and bucket 'unknown', never the next bucket.
-- docs/triage.md states each rule in words, in the order of the columns below.
create or replace view triage_verdicts as
with
    (
        select groupArray((toString(index_name), version, is_whole, chain))
        from rag_index_chains
    ) as index_chains,
    (
        select groupArray((toString(index_name), hour, versions))
        from (
            select
                index_name,
                toStartOfHour(started_at) as hour,
                groupUniqArray(toString(index_version)) as versions
            from rag_stages
            where stage = 'retrieve' and index_version != '' and index_name != ''
            group by index_name, hour
        )
    ) as recorded_versions,
    (
        select groupArray((toString(index_name), toString(index_version), from_at, until_at))
        from (
            select
                index_name,
                index_version,
                started_at + toIntervalMillisecond(toInt64(least(duration_ms, 86400000))) as from_at,
                leadInFrame(from_at, 1, toDateTime64('2261-01-01 00:00:00', 9, 'UTC')) over (
                    partition by index_name
                    order by from_at
                    rows between unbounded preceding and unbounded following
                ) as until_at
            from rag_ingest_runs final
            where index_version != '' and outcome in ('ok', '')
        )
    ) as written_versions,
    requests as (
        select *
        from rag_requests
        where (trace_id, request_id) in (select trace_id, request_id from rag_labelled_requests)
        limit 1 by trace_id, request_id
    ),
    flows as (
        select *
        from rag_request_flows
        where (trace_id, request_id) in (select trace_id, request_id from rag_labelled_requests)
    ),
    prompts as (
        select
            trace_id,
            request_id,
            span_id,
            prompt_norm,
            is_whole,
            template_name,
            template_version,
            budget_tokens,
            sent_tokens,
            evidence
        from rag_prompts final
        prewhere (trace_id, request_id) in (select trace_id, request_id from rag_labelled_requests)
    ),
    ranks as (
        select
            trace_id,
            request_id,
            label_id,
            passage,
            groupArray(
                cast(
                    (
                        span_id,
                        stage,
                        gold_rank,
                        is_absent,
                        drop_reason,
                        is_inferred,
                        dropped_at > 0,
                        is_trimmed,
                        has_untrimmed,
                        is_hash_proof,
                        is_hash_absence,
                        gold_texts_are_known,
                        any_gold_text_states_claim,
                        ifNull(other_stating_chunk_id, ''),
                        claim_offset_chars,
                        nullIf(doc_rank, 0),
                        is_document_absent
                    ),
                    'Tuple(span String, stage String, rank Nullable(UInt32), is_absent Bool, reason Nullable(String), is_inferred Bool, is_dropped Bool, is_trimmed Bool, has_untrimmed Bool, is_hash_proof Bool, is_hash_absence Bool, texts_are_known Bool, text_states_claim Bool, other_chunk_id String, claim_offset Nullable(Int64), document_rank Nullable(UInt32), is_document_absent Bool)'
                )
            ) as steps
        from rag_gold_ranks
        group by trace_id, request_id, label_id, passage
    ),
    probes as (
        select
            trace_id,
            request_id,
            label_id,
            passage,
            groupArray((leg, principal, deep_rank, index_version)) as found
        from rag_request_probes
        group by trace_id, request_id, label_id, passage
    ),
    grades_by_request as (
        select request_id, groupArray((trace_id, label_id, standing, toString(grade), toString(source))) as grades
        from rag_request_grades
        where request_id != ''
        group by request_id
    ),
    grades_by_trace as (
        select trace_id, groupArray((trace_id, label_id, standing, toString(grade), toString(source))) as grades
        from rag_request_grades
        where request_id = ''
        group by trace_id
    ),
    ablations_by_request as (
        select request_id, groupArray((trace_id, label_id, ablated_at, correct)) as runs
        from rag_ablations
        where mode = 'gold_only' and request_id != ''
        group by request_id
    ),
    ablations_by_trace as (
        select trace_id, groupArray((trace_id, label_id, ablated_at, correct)) as runs
        from rag_ablations
        where mode = 'gold_only' and request_id = ''
        group by trace_id
    ),
    gathered as (
        select
            matched.trace_id as trace_id,
            matched.request_id as request_id,
            requests.started_at as started_at,
            requests.service_name as service_name,
            requests.user_id as user_id,
            requests.session_id as session_id,
            requests.query as question,
            requests.answer as answer,
            requests.run_id as run_id,
            requests.arm as arm,
            matched.label_id as label_id,
            matched.matched_by as matched_by,
            passages.label_set as label_set,
            passages.population as population,
            passages.split as split,
            passages.passage as passage,
            passages.passage_count as passage_count,
            passages.answerable as answerable,
            passages.has_ids as has_ids,
            passages.claims as claims,
            passages.known_chunk_ids as gold_chunk_ids,
            arrayStringConcat(arrayFilter(name -> name != '', arrayDistinct(arrayMap(pair -> pair.1, flows.searched))), ', ') as index_name,
            arrayStringConcat(arrayFilter(name -> name != '', arrayDistinct(arrayMap(pair -> pair.2, flows.searched))), ', ') as index_version,
            prompts.template_name as template_name,
            prompts.template_version as template_version,
            prompts.budget_tokens as budget_tokens,
            if(
                notEmpty(prompts.sent_tokens) and arrayAll(tokens -> tokens is not null, prompts.sent_tokens) and prompts.evidence = 'whole',
                arraySum(tokens -> ifNull(tokens, 0), prompts.sent_tokens),
                if(prompts.evidence = 'empty', 0, null)
            ) as sent_tokens,
            flows.sent_count as sent_count,
            prompts.is_whole as prompt_is_whole,
            prompts.prompt_norm != '' as prompt_is_read,
            arrayExists(claim -> rag_contains(prompts.prompt_norm, claim), passages.claims) as claim_stands,
            flows.prompt_span_id as prompt_span_id,
            flows.list_span_ids as list_span_ids,
            flows.lists_are_recorded as lists_are_recorded,
            flows.rerank_input_span_ids as rerank_input_span_ids,
            flows.leg_span_ids as leg_span_ids,
            flows.later_span_ids as later_span_ids,
            flows.later_stage_kinds as later_stage_kinds,
            flows.top_k as top_k,
            flows.searched as searched,
            flows.degraded as degraded,
            flows.rerank_window_chars as rerank_window_chars,
            ranks.steps as steps,
            changes.by_id as changes_by_id,
            changes.stated_in as stated_in,
            changes.unread_in as unread_in,
            probes.found as found_probes,
            arrayConcat(grades_by_request.grades, grades_by_trace.grades) as all_grades,
            arrayConcat(ablations_by_request.runs, ablations_by_trace.runs) as all_gold_only_runs,
            passages.principal as principal
        from rag_request_labels as matched
        inner join requests
            on requests.trace_id = matched.trace_id and requests.request_id = matched.request_id
        inner join rag_label_passages as passages on passages.label_id = matched.label_id
        left join flows
            on flows.trace_id = matched.trace_id and flows.request_id = matched.request_id
        left join prompts
            on prompts.trace_id = matched.trace_id
            and prompts.request_id = matched.request_id
            and prompts.span_id = flows.prompt_span_id
        left join ranks
            on ranks.trace_id = matched.trace_id
            and ranks.request_id = matched.request_id
            and ranks.label_id = matched.label_id
            and ranks.passage = passages.passage
        left join rag_gold_changes as changes
            on changes.label_id = matched.label_id and changes.passage = passages.passage
        left join probes
            on probes.trace_id = matched.trace_id
            and probes.request_id = matched.request_id
            and probes.label_id = matched.label_id
            and probes.passage = passages.passage
        left join grades_by_request on grades_by_request.request_id = matched.request_id
        left join grades_by_trace on grades_by_trace.trace_id = matched.trace_id
        left join ablations_by_request on ablations_by_request.request_id = matched.request_id
        left join ablations_by_trace on ablations_by_trace.trace_id = matched.trace_id
    ),
    read as (
        select
            *,
            arrayFlatten(
                arrayMap(
                    pair -> arrayMap(
                        version -> (
                            pair.1,
                            pair.2,
                            version,
                            arrayFirst(one -> one.1 = pair.1 and one.2 = version, index_chains)
                        ),
                        if(
                            pair.2 != '' or pair.1 = '',
                            [pair.2],
                            arrayDistinct(
                                arrayConcat(
                                    [''],
                                    arrayFirst(
                                        one -> one.1 = pair.1 and one.2 = toStartOfHour(started_at),
                                        recorded_versions
                                    ).3,
                                    arrayMap(
                                        run -> run.2,
                                        arrayFilter(
                                            run -> run.1 = pair.1
                                            and run.3 < toStartOfHour(started_at) + toIntervalHour(1)
                                            and run.4 > toStartOfHour(started_at),
                                            written_versions
                                        )
                                    )
                                )
                            )
                        )
                    ),
                    searched
                )
            ) as served,
            arrayFilter(
                probe -> probe.2 in ('', principal)
                and has(arrayMap(pair -> pair.2, searched), probe.4)
                and probe.4 != '',
                found_probes
            ) as usable_probes,
            arrayExists(
                probe -> not has(arrayMap(pair -> pair.2, searched), probe.4) or probe.4 = '',
                found_probes
            ) as has_unusable_probe,
            arraySort(
                one -> one.3,
                arrayFilter(
                    one -> one.1 in ('', trace_id) and one.2 in ('', label_id),
                    all_grades
                )
            )[1] as best_grade,
            arraySort(
                run -> run.3,
                arrayFilter(
                    run -> run.1 in ('', trace_id) and run.2 in ('', label_id),
                    all_gold_only_runs
                )
            ) as gold_only_runs,
            notEmpty(claims) as has_claim,
            arrayFilter(step -> has(list_span_ids, step.span), steps) as list_steps,
            arrayFilter(step -> has(leg_span_ids, step.span), steps) as leg_steps,
            arrayMap(
                span -> arrayFirst(step -> step.span = span, steps),
                later_span_ids
            ) as later_steps,
            arrayFirst(step -> step.span = prompt_span_id and prompt_span_id != '', steps) as sent_step,
            arrayFilter(step -> step.stage != 'assemble', steps) as candidate_steps,
            arrayFilter(step -> step.stage = 'retrieve', steps) as all_leg_steps
        from gathered
    ),
    ranked as (
        select
            *,
            arrayMap(
                one -> (
                    one.1,
                    multiIf(
                        one.2 = '' and one.3 = '', null,
                        not one.4 .3, null,
                        has_ids,
                        arrayExists(
                            chunk -> chunk.1 = one.1
                            and arrayExists(
                                change -> change.2 = 0
                                and change.1 = arrayFirst(link -> has(chunk.2 .1, link), one.4 .4),
                                chunk.2
                            ),
                            changes_by_id
                        ),
                        has(stated_in, (one.1, one.3)), 1,
                        has(unread_in, (one.1, one.3)), null,
                        0
                    )::Nullable(UInt8),
                    multiIf(
                        one.1 = '', 'index_name',
                        one.2 = '', 'index_version',
                        not one.4 .3, 'manifest',
                        'chunk_texts'
                    )
                ),
                arrayFilter(
                    one -> not (one.2 = '' and one.3 = '' and one.1 != '' and countEqual(served.1, one.1) > 1),
                    served
                )
            ) as tested,
            best_grade.4 as grade,
            best_grade.5 as grade_source,
            notEmpty(gold_only_runs) as is_ablated,
            gold_only_runs[-1].4 as is_right_with_gold_only,
            has_ids or has_claim as has_gold,
            nullIf(arrayMin(step -> ifNull(step.rank, 4294967295), list_steps), 4294967295) as best_list_rank,
            nullIf(arrayMin(step -> ifNull(step.rank, 4294967295), leg_steps), 4294967295) as best_leg_rank_or_max,
            nullIf(arrayMin(step -> ifNull(step.rank, 4294967295), all_leg_steps), 4294967295) as best_any_leg_rank,
            arrayMin(probe -> ifNull(probe.3, 4294967295), usable_probes) as best_probe,
            multiIf(
                not has_claim or not prompt_is_read, null,
                claim_stands, 1,
                prompt_is_whole, 0,
                null
            )::Nullable(UInt8) as claim_in_prompt,
            multiIf(
                not has_ids, null,
                sent_step.rank is not null, 1,
                sent_step.is_absent, 0,
                null
            )::Nullable(UInt8) as id_in_prompt
        from read
    ),
    versioned as (
        select
            *,
            arrayMap(
                name -> arrayMap(one -> one.2, arrayFilter(one -> one.1 = name, tested)),
                arrayDistinct(arrayMap(one -> one.1, tested))
            ) as tests_by_index,
            if(empty(list_steps), null, best_list_rank) as gold_rank,
            if(empty(all_leg_steps), null, best_any_leg_rank) as any_leg_rank,
            if(empty(leg_steps), null, best_leg_rank_or_max) as leg_rank,
            if(empty(usable_probes) or best_probe = 4294967295, null, best_probe) as probe_rank,
            multiIf(
                claim_in_prompt is not null, claim_in_prompt,
                has_claim and sent_step.is_hash_proof, 1,
                sent_step.is_hash_absence, 0,
                id_in_prompt = 0, 0,
                not has_claim and id_in_prompt = 1 and sent_step.has_untrimmed, 1,
                null
            )::Nullable(UInt8) as in_prompt
        from ranked
    ),
    tested_versions as (
        select
            *,
            arrayMap(
                tests -> if(
                    arrayExists(test -> test is null, tests) or length(arrayDistinct(tests)) > 1,
                    null,
                    tests[1]
                ),
                tests_by_index
            ) as index_answers,
            coalesce(probe_rank, any_leg_rank) as deep_rank,
            multiIf(
                in_prompt is null, '',
                claim_in_prompt is not null, 'text',
                has_claim and sent_step.is_hash_proof, 'hash',
                sent_step.is_hash_absence, 'hash',
                'id'
            ) as decided_by
        from versioned
    ),
    placed as (
        select
            *,
            multiIf(
                has(index_answers, 1), 1,
                empty(index_answers) or arrayExists(answer -> answer is null, index_answers), null,
                0
            )::Nullable(UInt8) as in_manifest,
            if(decided_by in ('text', 'hash'), in_prompt, null) as text_in_prompt
        from tested_versions
    ),
    proven as (
        select
            *,
            if(
                in_manifest is not null,
                [],
                if(
                    arrayExists(one -> one.2 is null, tested),
                    arraySort(arrayDistinct(arrayMap(one -> one.3, arrayFilter(one -> one.2 is null, tested)))),
                    if(empty(tested), [], ['index_version'])
                )
            ) as missing_for_existence,
            multiIf(
                gold_rank is not null, 1,
                sent_step.rank is not null or sent_step.is_dropped, 1,
                notEmpty(list_steps) and arrayAll(step -> step.is_absent, list_steps), 0,
                text_in_prompt = 1
                and not arrayExists(step -> step.is_absent, later_steps)
                and not (notEmpty(leg_steps) and arrayAll(step -> step.is_absent, leg_steps)), 1,
                null
            )::Nullable(UInt8) as in_ranked_list
        from placed
    ),
    factors as (
        select
            *,
            multiIf(
                not has_gold, null,
                arrayExists(step -> step.rank is not null or step.is_dropped, steps), 1,
                probe_rank is not null, 1,
                in_manifest is not null, in_manifest,
                in_ranked_list = 1, 1,
                null
            )::Nullable(UInt8) as in_index
        from proven
    ),
    judged as (
        select
            *,
            multiIf(
                not answerable, 'not_answerable',
                not has_gold, 'unknown',
                in_index = 0, 'corpus_gap',
                in_index is null, 'unknown',
                in_ranked_list = 0, 'retrieval_miss',
                in_ranked_list is null, 'unknown',
                in_prompt = 0, 'context_problem',
                in_prompt is null, 'unknown',
                grade = 'correct', 'passed',
                grade in ('wrong', 'abstained'), 'generation_error',
                'ungraded'
            ) as bucket,
            ifNull(top_k, 4294967295) as cutoff,
            arrayFilter(
                mark -> mark.2 > 0,
                arrayConcat(
                    [('retrieve', ifNull(leg_rank, 0))],
                    arrayMap((kind, step) -> (kind, ifNull(step.rank, 0)), later_stage_kinds, later_steps)
                )
            ) as trail,
            arrayLastIndex(step -> step.rank is not null, later_steps) as last_seen_at
        from factors
    ),
    traced as (
        select
            *,
            arrayLastIndex(
                (step, at) -> at > last_seen_at and step.is_dropped,
                later_steps,
                arrayEnumerate(later_steps)
            ) as said_dropped_at,
            arrayLastIndex(mark -> mark.2 <= cutoff, trail) as last_within
        from judged
    ),
    dropped_on_the_way as (
        select
            *,
            multiIf(
                said_dropped_at > 0, said_dropped_at,
                empty(trail) or last_seen_at >= length(later_steps), 0,
                last_seen_at + 1
            ) as next_at
        from traced
    ),
    followed as (
        select
            *,
            next_at > 0 as has_next,
            later_steps[next_at] as next_step,
            later_stage_kinds[next_at] as next_kind
        from dropped_on_the_way
    ),
    stepped as (
        select
            *,
            multiIf(
                notEmpty(trail) and last_within = 0, 'retrieve',
                last_within < length(trail), trail[last_within + 1].1,
                gold_rank is null and has_next, next_kind,
                ''
            ) as mover
        from followed
    ),
    bucketed as (
        select
            *,
            rag_moved_past(mover, has(later_stage_kinds, 'fuse')) as moved_past
        from stepped
    ),
    lost as (
        select
            *,
            multiIf(
                not answerable, 'none',
                not has_gold, 'unknown',
                in_index = 0, 'not_indexed',
                in_ranked_list = 1 and in_prompt = 1, 'none',
                gold_rank is not null and gold_rank > cutoff, moved_past,
                gold_rank is not null or in_ranked_list = 1, if(in_prompt = 0 or id_in_prompt = 0, 'assemble', 'unknown'),
                empty(trail) and not has_next and notEmpty(leg_steps) and arrayAll(step -> step.is_absent, leg_steps), 'not_retrieved_by_any_leg',
                not has_next or not (next_step.is_absent or next_step.is_dropped), 'unknown',
                next_kind = 'filter' or ifNull(next_step.reason, '') in ('permission', 'threshold', 'per_document_cap'), 'filtered',
                next_kind = 'fuse', 'fusion_limit',
                moved_past
            ) as loss_stage,
            arrayFirst(step -> step.claim_offset is not null, steps).claim_offset as claim_offset_chars,
            arrayConcat(
                multiIf(
                    bucket != 'unknown', [],
                    not has_gold, ['gold'],
                    in_index is null, if(empty(missing_for_existence), ['candidates'], missing_for_existence),
                    in_ranked_list is null,
                    if(not has_ids and lists_are_recorded, ['chunk_texts'], ['candidates']),
                    not has_claim, if(id_in_prompt = 1, ['claim'], ['sent_ids']),
                    ['prompt']
                ),
                if(has_unusable_probe, ['probe'], [])
            ) as missing
        from bucketed
    )
select
    trace_id,
    request_id,
    started_at,
    service_name,
    user_id,
    session_id,
    label_id,
    label_set,
    population,
    split,
    matched_by,
    question,
    answer,
    index_name,
    index_version,
    template_name,
    template_version,
    run_id,
    arm,
    passage,
    passage_count,
    gold_chunk_ids,
    bucket,
    multiIf(
        bucket = 'corpus_gap', '1',
        bucket = 'retrieval_miss'
        and arrayExists(step -> step.rank is not null or step.is_dropped, candidate_steps), '2a',
        bucket = 'retrieval_miss' and arrayAll(step -> step.is_absent, candidate_steps), '1',
        bucket = 'context_problem', '2a',
        bucket = 'generation_error',
        if(not is_ablated, '2b_or_3', if(is_right_with_gold_only, '2b', '3')),
        null
    )::Nullable(String) as state,
    multiIf(
        bucket = 'corpus_gap', 'ingest',
        bucket = 'retrieval_miss', 'retrieval',
        bucket = 'generation_error', 'generation',
        bucket in ('passed', 'ungraded', 'not_answerable'), 'none',
        bucket = 'unknown', 'unknown',
        not has_ids, 'prompt-assembly',
        id_in_prompt = 0 or (id_in_prompt is null and sent_step.is_dropped), 'prompt-assembly',
        id_in_prompt = 1 and sent_step.text_states_claim, 'prompt-assembly',
        id_in_prompt = 1 and sent_step.texts_are_known, 'chunking',
        id_in_prompt is null and arrayExists(step -> step.text_states_claim, list_steps), 'prompt-assembly',
        'unknown'
    ) as attribution,
    loss_stage,
    multiIf(
        loss_stage = 'assemble', sent_step.reason,
        loss_stage in ('filtered', 'fusion_limit', 'rerank_demoted', 'blend_demoted', 'fused_beyond_cutoff', 'retrieved_beyond_cutoff')
        and gold_rank is null, next_step.reason,
        null
    )::Nullable(String) as drop_reason,
    multiIf(
        empty(rerank_input_span_ids), null,
        arrayExists(step -> has(rerank_input_span_ids, step.span) and step.rank = 1, steps), 'top',
        arrayExists(step -> has(rerank_input_span_ids, step.span) and step.rank > 1, steps), 'buried',
        arrayExists(step -> has(rerank_input_span_ids, step.span), steps)
        and arrayAll(step -> step.is_absent or not has(rerank_input_span_ids, step.span), steps), 'missing',
        null
    )::Nullable(String) as recall_class,
    cast(in_index, 'Nullable(Bool)') as in_index,
    cast(in_ranked_list, 'Nullable(Bool)') as in_ranked_list,
    cast(text_in_prompt, 'Nullable(Bool)') as text_in_prompt,
    cast(id_in_prompt, 'Nullable(Bool)') as id_in_prompt,
    cast(in_prompt, 'Nullable(Bool)') as in_prompt,
    decided_by,
    gold_rank,
    deep_rank,
    if(deep_rank is null or top_k is null, null, deep_rank > top_k and deep_rank <= 2 * top_k)::Nullable(Bool) as near_miss,
    multiIf(
        deep_rank is null, null,
        deep_rank <= 10, 10,
        deep_rank <= 20, 20,
        deep_rank <= 50, 50,
        deep_rank <= 100, 100,
        deep_rank <= 200, 200,
        null
    )::Nullable(UInt32) as rerank_reachable_within,
    top_k,
    sent_count as k_prompt,
    sent_count,
    sent_tokens,
    budget_tokens,
    sent_step.rank as prompt_position,
    if(sent_step.rank is null, null, sent_step.is_trimmed)::Nullable(Bool) as trimmed,
    if(
        has_ids and in_ranked_list = 0 and text_in_prompt = 1,
        nullIf(
            arrayFirst(
                id -> id != '',
                arrayConcat([sent_step.other_chunk_id], arrayMap(step -> step.other_chunk_id, list_steps))
            ),
            ''
        ),
        null
    )::Nullable(String) as via_other_chunk,
    toBool(degraded) as degraded,
    claim_offset_chars,
    if(
        claim_offset_chars is null or rerank_window_chars is null,
        null,
        claim_offset_chars >= rerank_window_chars
    )::Nullable(Bool) as beyond_rerank_window,
    nullIf(grade, '') as grade,
    nullIf(grade_source, '') as grade_source,
    missing,
    multiIf(
        bucket = 'not_answerable', 'The label says that the corpus holds no answer to this question, so abstaining is right.',
        not has_gold, 'The label names no passage and no wording, so nothing could be tested.',
        bucket = 'corpus_gap', concat('The gold passage is not in index ', index_name, ' at version ', index_version, ': no ranking can return it.', if(text_in_prompt = 1, ' Its claim stands in the prompt all the same: are the chunk ids of the label right?', '')),
        bucket = 'retrieval_miss' and gold_rank is null and deep_rank is not null,
        concat('The gold passage is in the index but not in the list handed to the prompt; ', if(probe_rank is not null, 'a deep search finds it at rank ', 'its best rank in a leg was '), toString(deep_rank), if(top_k is null, '', concat(', the cut-off was ', toString(top_k))), if(loss_stage = 'unknown', '.', concat(', lost at ', loss_stage, '.'))),
        bucket = 'retrieval_miss', concat('The gold passage is in the index but not in the list handed to the prompt', if(loss_stage = 'unknown', '.', concat(': lost at ', loss_stage, '.'))),
        bucket = 'context_problem' and id_in_prompt = 0,
        concat('The gold passage was ranked', if(gold_rank is null, '', concat(' ', toString(gold_rank))), ' but not sent', if(sent_step.reason is null, '', concat(' (', sent_step.reason, if(sent_step.is_inferred, ', inferred', ''), ')')), if(sent_tokens is null or budget_tokens is null, '.', concat(': ', toString(sent_tokens), ' of ', toString(budget_tokens), ' budget tokens were taken by what was sent.'))),
        bucket = 'context_problem' and id_in_prompt = 1 and sent_step.text_states_claim, 'The gold passage was sent, but the part that states the claim was trimmed away.',
        bucket = 'context_problem' and id_in_prompt = 1 and sent_step.texts_are_known, 'The gold chunk was sent whole, but its own text does not state the claim: the chunker split it.',
        bucket = 'context_problem', concat('The gold passage was ranked', if(gold_rank is null, '', concat(' ', toString(gold_rank))), ' but its claim does not stand in the prompt.'),
        bucket = 'generation_error', concat('The claim stood in the prompt', if(sent_step.rank is null, '', concat(' (passage ', toString(sent_step.rank), ' of ', ifNull(toString(sent_count), '?'), ')')), ' and the answer was graded ', grade, '.'),
        bucket = 'passed', 'The claim stood in the prompt and the answer was graded correct.',
        bucket = 'ungraded', 'The claim stood in the prompt; the answer has no grade yet.',
        concat(
            'Not decidable: ',
            arrayStringConcat(missing, ', '),
            ' not recorded or not readable.',
            if(has(missing, 'manifest'), concat(' No whole manifest of index ', index_name, ' at version ', index_version, ' is loaded (ragotel manifest load FILE --index ', index_name, ' --version ', index_version, ').'), ''),
            if(has(missing, 'index_version'), ' The service does not say which index version it searched (index_version= of ragotel.retrieve).', ''),
            if(has(missing, 'index_name'), ' The service does not say which index it searched (index= of ragotel.retrieve).', '')
        )
    ) as why,
    nullIf(arrayMin(step -> ifNull(step.document_rank, 4294967295), list_steps), 4294967295)::Nullable(UInt32) as document_rank,
    (notEmpty(list_steps) and arrayAll(step -> step.is_document_absent, list_steps))::Bool as is_document_absent,
    (notEmpty(changes_by_id) or notEmpty(stated_in))::Bool as is_known_to_index,
    cast(
        (
            trail,
            has(later_stage_kinds, 'fuse'),
            empty(trail) and not has_next and notEmpty(leg_steps) and arrayAll(step -> step.is_absent, leg_steps),
            has_next,
            next_kind,
            has_next and (next_step.is_absent or next_step.is_dropped),
            next_kind = 'filter' or ifNull(next_step.reason, '') in ('permission', 'threshold', 'per_document_cap')
        ),
        'Tuple(trail Array(Tuple(stage String, rank UInt32)), is_fused Bool, is_in_no_leg Bool, has_next Bool, next_stage String, is_gone_next Bool, is_filtered_next Bool)'
    ) as journey
from lost
settings join_use_nulls = 0
