-- answers: why is the gold passage in no index: never listed, parsed to nothing, dissolved by the chunker, or deleted?
-- grain:   one row per request × label × gold passage whose bucket is corpus_gap
-- reads:   triage_passages, rag_stages, rag_labelled_requests, rag_label_passages, rag_gold_changes, rag_index_changes, rag_index_chains, rag_index_chunks, rag_index_versions, rag_ingest_runs, rag_chunks, dist_ingest_runs
-- The run is the one that wrote the first version without the passage. decided_by: chunk (its own deletion is on
-- record) · document (the manifest holds the rest of its document) · counters (of the run beside the run before,
-- read as a set) · elimination. What they leave open is unknown: suspects and missing say more. docs/alerts.md has
-- the rules. Lists end after 50 ids, the counts beside them do not.
create or replace view triage_gap_causes as
with
    searched as (
        select trace_id, request_id, toString(index_name) as searched_index, toString(index_version) as searched_version
        from rag_stages
        where
            stage = 'retrieve'
            and index_name != ''
            and (trace_id, request_id) in (select trace_id, request_id from rag_labelled_requests)
        group by trace_id, request_id, searched_index, searched_version
    ),
    whole_chains as (
        select toString(index_name) as index_name, version, chain
        from rag_index_chains
        where is_whole
    ),
    links as (
        select index_name, version, link.1 as link_version, link.2 as link_number
        from whole_chains
        array join arrayZip(chain, arrayEnumerate(chain)) as link
    ),
    run_orders as (
        select index_name, groupArray((index_version, ran_at)) as runs
        from (
            select toString(index_name) as index_name, toString(index_version) as index_version, max(started_at) as ran_at
            from rag_ingest_runs
            where
                outcome in ('ok', '')
                and (toString(index_name), toString(index_version)) in (select index_name, version from whole_chains)
            group by index_name, index_version
        )
        group by index_name
    ),
    lineages as (
        select
            whole_chains.index_name as index_name,
            whole_chains.version as version,
            arrayFirst(run -> run.1 = chain[-1], run_orders.runs).2 as root_ran_at,
            arraySlice(
                arrayDistinct(
                    arrayConcat(
                        chain,
                        arrayMap(
                            run -> run.1,
                            arrayReverseSort(run -> run.2, arrayFilter(run -> run.2 < root_ran_at, run_orders.runs))
                        )
                    )
                ),
                1,
                60
            ) as lineage
        from whole_chains
        left join run_orders on run_orders.index_name = whole_chains.index_name
    ),
    wanted_chunks as (
        select label_id, passage, arrayJoin(known_chunk_ids) as chunk_id
        from rag_label_passages
        where passage > 0
    ),
    gold_chunks_in as (
        select
            links.index_name as index_name,
            links.version as version,
            changed.chunk_id as chunk_id,
            argMin(changed.is_deleted, links.link_number) = 0 as is_in,
            max(changed.is_deleted and links.link_number = 1) as is_deleted_here
        from links
        inner join (
            select chunk_id, toString(index_name) as index_name, change.1 as link_version, change.2 as is_deleted
            from rag_index_changes
            array join changes as change
            where chunk_id in (select chunk_id from wanted_chunks)
        ) as changed
            on changed.index_name = links.index_name and changed.link_version = links.link_version
        group by index_name, version, chunk_id
    ),
    gold_in as (
        select
            wanted_chunks.label_id as label_id,
            wanted_chunks.passage as passage,
            gold_chunks_in.index_name as index_name,
            gold_chunks_in.version as version,
            max(gold_chunks_in.is_in) as is_in,
            max(gold_chunks_in.is_deleted_here) as is_deleted_here
        from gold_chunks_in
        inner join wanted_chunks on wanted_chunks.chunk_id = gold_chunks_in.chunk_id
        group by label_id, passage, index_name, version
        union all
        select label_id, passage, stated.1, stated.2, 1, 0
        from rag_gold_changes
        array join stated_in as stated
    ),
    completed as (
        select
            toString(chunks.index_name) as index_name,
            chunks.version as version,
            chunks.chunk_id as chunk_id,
            chunks.doc_id as doc_id,
            chunks.chunk_sha as chunk_sha,
            chunks.chars as chars,
            chunks.deleted as deleted,
            chunks.position as position
        from rag_index_chunks as chunks final
        inner join (
            select index_name, version, load_id
            from rag_index_versions final
        ) as versions
            on versions.index_name = chunks.index_name
            and versions.version = chunks.version
            and versions.load_id = chunks.load_id
    ),
    wanted_docs as (
        select label_id, passage, arrayJoin(known_doc_ids) as doc_id
        from rag_label_passages
        where passage > 0
    ),
    doc_chunks as (
        select
            links.index_name as index_name,
            links.version as version,
            rows.chunk_id as chunk_id,
            anyIf(rows.doc_id, rows.doc_id != '') as doc_id,
            argMin((rows.position, rows.chunk_id, rows.chunk_sha, rows.chars), links.link_number) as chunk
        from links
        inner join (
            select *
            from completed
            where chunk_id in (
                select chunk_id
                from rag_index_chunks
                where doc_id in (select doc_id from wanted_docs)
            )
        ) as rows on rows.index_name = links.index_name and rows.version = links.link_version
        group by index_name, version, chunk_id
        having argMin(rows.deleted, links.link_number) = 0
    ),
    documents as (
        select
            wanted_docs.label_id as label_id,
            wanted_docs.passage as passage,
            doc_chunks.index_name as index_name,
            doc_chunks.version as version,
            arraySort(groupArray(doc_chunks.chunk)) as chunks
        from doc_chunks
        inner join wanted_docs on wanted_docs.doc_id = doc_chunks.doc_id
        group by label_id, passage, index_name, version
    ),
    losing_versions as (
        select index_name, version, any(version_before) as version_before
        from (
            select
                pairs.index_name as index_name,
                pairs.version as version,
                gold_chunks_in.chunk_id as chunk_id,
                any(pairs.version_before) as version_before,
                max(pairs.side.2 and gold_chunks_in.is_in) as is_in_now,
                max(not pairs.side.2 and gold_chunks_in.is_in) as is_in_before
            from gold_chunks_in
            inner join (
                select index_name, version, lineage[2] as version_before, side
                from lineages
                array join [(version, true), (lineage[2], false)] as side
                where version_before != ''
            ) as pairs
                on pairs.index_name = gold_chunks_in.index_name and pairs.side.1 = gold_chunks_in.version
            group by index_name, version, chunk_id
        )
        where is_in_before and not is_in_now
        group by index_name, version
    ),
    damaged_chunks as (
        select
            sides.index_name as index_name,
            sides.version as version,
            rows.chunk_id as chunk_id,
            anyIf(rows.doc_id, rows.doc_id != '') as doc_id,
            countIf(sides.is_now) > 0 and argMinIf(rows.deleted, links.link_number, sides.is_now) = 0 as is_in_now,
            countIf(not sides.is_now) > 0 and argMinIf(rows.deleted, links.link_number, not sides.is_now) = 0 as is_in_before,
            argMinIf(ifNull(rows.chars, 0), links.link_number, sides.is_now) as chars_now,
            argMinIf(ifNull(rows.chars, 0), links.link_number, not sides.is_now) as chars_before
        from (
            select index_name, version, side.1 as side_version, side.2 as is_now
            from losing_versions
            array join [(version, true), (version_before, false)] as side
        ) as sides
        inner join links on links.index_name = sides.index_name and links.version = sides.side_version
        inner join completed as rows
            on rows.index_name = links.index_name and rows.version = links.link_version
        group by index_name, version, chunk_id
    ),
    damaged_docs as (
        select
            index_name,
            version,
            doc_id,
            countIf(is_in_before and not is_in_now) as gone_count,
            groupArrayIf(50)(chunk_id, is_in_before and not is_in_now) as gone_ids,
            doc_id != '' and countIf(is_in_before) > 0 and countIf(is_in_now) = 0 as is_vanished,
            not is_vanished and doc_id != '' and countIf(is_in_now) > 0
            and sumIf(chars_now, is_in_now) * 10 < sumIf(chars_before, is_in_before) as is_shrunk
        from damaged_chunks
        group by index_name, version, doc_id
    ),
    damages as (
        select
            index_name,
            version,
            sum(gone_count) as gone_chunks,
            arraySlice(arraySort(groupArrayArray(gone_ids)), 1, 50) as gone_chunk_ids,
            countIf(is_vanished) as vanished_documents,
            arraySort(groupArrayIf(50)(doc_id, is_vanished)) as vanished_doc_ids,
            countIf(is_shrunk) as shrunk_documents,
            arraySort(groupArrayIf(50)(doc_id, is_shrunk)) as shrunk_doc_ids
        from damaged_docs
        group by index_name, version
    ),
    writers as (
        select *
        from dist_ingest_runs
        where index_version != '' and outcome in ('ok', '')
        order by started_at desc
        limit 1 by index_name, index_version
    ),
    asked as (
        select
            gaps.label_id as label_id,
            gaps.passage as passage,
            searched.searched_index as index_name,
            searched.searched_version as version,
            groupArray(
                tuple(gaps.trace_id, gaps.request_id, gaps.started_at, gaps.service_name, gaps.label_set, gaps.run_id)
            ) as requests
        from (
            select trace_id, request_id, started_at, service_name, label_id, label_set, passage, run_id
            from triage_passages
            where bucket = 'corpus_gap'
        ) as gaps
        left join searched on searched.trace_id = gaps.trace_id and searched.request_id = gaps.request_id
        group by label_id, passage, index_name, version
    ),
    followed as (
        select
            asked.label_id as label_id,
            asked.passage as passage,
            asked.index_name as index_name,
            asked.version as version,
            asked.requests as requests,
            lineages.lineage as lineage
        from asked
        left join lineages on lineages.index_name = asked.index_name and lineages.version = asked.version
    ),
    stepped as (
        select
            label_id,
            passage,
            index_name,
            version,
            any(requests) as requests,
            any(lineage) as lineage,
            minIf(step.2, gold_in.is_in and step.2 > 1) as had_at,
            groupArrayIf(step.2, gold_in.is_deleted_here) as deleted_at
        from (
            select *, step
            from followed
            left array join arrayZip(lineage, arrayEnumerate(lineage)) as step
        ) as steps
        left join gold_in
            on gold_in.label_id = steps.label_id
            and gold_in.passage = steps.passage
            and gold_in.index_name = steps.index_name
            and gold_in.version = steps.step.1
        group by label_id, passage, index_name, version
    ),
    located as (
        select
            label_id,
            passage,
            index_name,
            version,
            requests,
            length(lineage) as known_versions,
            if(had_at > 1, lineage[had_at - 1], version) as lost_in,
            if(had_at > 1, lineage[had_at], '') as held_by,
            had_at > 1 and has(deleted_at, had_at - 1) as is_deleted_by_row
        from stepped
    ),
    documented as (
        select
            located.label_id as label_id,
            located.passage as passage,
            located.index_name as index_name,
            located.version as version,
            tuple(located.requests, located.known_versions, located.lost_in, located.held_by, located.is_deleted_by_row) as place,
            notEmpty(labels.doc_ids) or ever.label_id != '' as is_document_known,
            labels.claims as claims,
            lengthUTF8(labels.text) as gold_chars,
            here.chunks as chunks_here,
            earlier.chunks as chunks_earlier
        from located
        left join rag_label_passages as labels
            on labels.label_id = located.label_id and labels.passage = located.passage
        left join documents as here
            on here.label_id = located.label_id
            and here.passage = located.passage
            and here.index_name = located.index_name
            and here.version = located.version
        left join documents as earlier
            on earlier.label_id = located.label_id
            and earlier.passage = located.passage
            and earlier.index_name = located.index_name
            and earlier.version = located.held_by
        left join (
            select distinct label_id, passage, index_name
            from documents
        ) as ever
            on ever.label_id = located.label_id
            and ever.passage = located.passage
            and ever.index_name = located.index_name
    ),
    read as (
        select
            label_id,
            passage,
            index_name,
            version,
            any(place) as place,
            any(is_document_known) as is_document_known,
            any(claims) as claims,
            any(gold_chars) as gold_chars,
            any(chunks_here) as chunks_here,
            any(chunks_earlier) as chunks_earlier,
            count() = countIf(texts.chunk_sha != '') as texts_are_known,
            count() = countIf(texts.chunk_sha != '' or piece.4 is not null) as chars_are_known,
            sum(coalesce(piece.4, lengthUTF8(texts.text_norm))) as chars,
            arrayMap(
                entry -> (entry.2, entry.3),
                arraySort(groupArray((piece.1, piece.2, texts.text_norm)))
            ) as texts_here
        from (
            select *, piece
            from documented
            left array join chunks_here as piece
        ) as pieces
        left join (
            select chunk_sha, any(text_norm) as text_norm
            from rag_chunks
            where chunk_sha in (
                select chunk_sha
                from rag_index_chunks
                where doc_id in (select doc_id from wanted_docs)
            )
            group by chunk_sha
        ) as texts on texts.chunk_sha = pieces.piece.3
        group by label_id, passage, index_name, version
    ),
    claimed as (
        select
            * except (place),
            place.1 as requests,
            place.2 as known_versions,
            place.3 as lost_in,
            place.4 as held_by,
            place.5 as is_deleted_by_row,
            arrayFirst(
                entry -> arrayExists(claim -> rag_contains(entry.2, claim), claims),
                texts_here
            ).1 as claim_in_chunk_id,
            arrayExists(
                claim -> rag_contains(arrayStringConcat(texts_here.2, ' '), claim)
                or rag_contains(arrayStringConcat(texts_here.2), claim),
                claims
            ) as claim_stands_in_all,
            arrayMin(claim -> lengthUTF8(claim), claims) as shortest_claim_chars,
            arraySum(chunk -> ifNull(chunk.4, 0), chunks_earlier) as chars_earlier,
            arrayExists(
                chunk -> not has(arrayMap(other -> (other.2, other.3), chunks_earlier), (chunk.2, chunk.3)),
                chunks_here
            ) as is_rewritten,
            length(chunks_here) as document_chunks
        from read
    ),
    joined as (
        select
            claimed.label_id as label_id,
            claimed.passage as passage,
            claimed.index_name as index_name,
            claimed.version as version,
            claimed.requests as requests,
            claimed.lost_in as lost_in,
            claimed.held_by as held_by,
            claimed.is_deleted_by_row as is_deleted_by_row,
            claimed.is_document_known as is_document_known,
            claimed.held_by != '' as is_held,
            if(claimed.held_by != '', true, if(claimed.known_versions > 1, false, null))::Nullable(Bool) as was_there,
            claimed.document_chunks as document_chunks,
            if(claimed.document_chunks > 0 and claimed.chars_are_known, claimed.chars, null)::Nullable(UInt64) as document_chars,
            claimed.document_chunks > 0
            and claimed.chars_are_known
            and (
                claimed.chars = 0
                or claimed.chars < claimed.shortest_claim_chars
                or claimed.chars * 10 < greatest(claimed.chars_earlier, claimed.gold_chars)
            ) as is_near_empty,
            claimed.is_rewritten as is_rewritten,
            claimed.claim_in_chunk_id as claim_in_chunk_id,
            if(
                claimed.document_chunks > 0 and claimed.texts_are_known,
                claimed.claim_in_chunk_id = '' and claimed.claim_stands_in_all,
                null
            )::Nullable(Bool) as is_claim_split,
            writers.trace_id as ingest_trace_id,
            writers.started_at as ran_at,
            writers.previous_trace_id as previous_ingest_trace_id,
            writers.previous_version as previous_version,
            writers.docs_listed as docs_listed,
            writers.docs_empty as docs_empty,
            writers.mean_chars_per_doc as mean_chars_per_doc,
            writers.chunks_written as chunks_written,
            writers.chunks_deleted as chunks_deleted,
            writers.previous_docs_listed as previous_docs_listed,
            writers.previous_docs_empty as previous_docs_empty,
            writers.previous_mean_chars_per_doc as previous_mean_chars_per_doc,
            writers.previous_chunks_written as previous_chunks_written,
            writers.previous_chunks_deleted as previous_chunks_deleted,
            writers.flags as flags,
            damages.gone_chunks as gone_chunks,
            damages.gone_chunk_ids as gone_chunk_ids,
            damages.vanished_documents as vanished_documents,
            damages.vanished_doc_ids as vanished_doc_ids,
            damages.shrunk_documents as shrunk_documents,
            damages.shrunk_doc_ids as shrunk_doc_ids
        from claimed
        left join writers
            on writers.index_name = claimed.index_name and writers.index_version = claimed.lost_in
        left join damages
            on damages.index_name = claimed.index_name and damages.version = claimed.lost_in
    ),
    weighed as (
        select
            *,
            ingest_trace_id != '' as is_run_known,
            previous_ingest_trace_id != '' as has_run_before,
            not is_held or not has_run_before or previous_version = held_by as is_adjacent,
            ifNull(docs_listed < previous_docs_listed, false) as is_listed_less,
            ifNull(docs_empty > previous_docs_empty, false) or has(flags, 'mean_chars_low') as is_emptier,
            ifNull(chunks_deleted > 3 * previous_chunks_deleted, false) as is_deletion_spike,
            is_listed_less and 2 * (toInt64(previous_docs_listed) - toInt64(docs_listed)) >= vanished_documents as lists_cover,
            is_emptier
            and ifNull(2 * (toInt64(docs_empty) - toInt64(previous_docs_empty)) >= vanished_documents, true) as empties_cover,
            ifNull(chunks_deleted > 0 and 2 * chunks_deleted >= gone_chunks, false) as deletions_cover,
            not is_listed_less
            and is_emptier
            and ifNull(
                if(
                    vanished_documents > 0,
                    toInt64(docs_empty) - toInt64(previous_docs_empty) >= vanished_documents,
                    null
                ),
                not is_deletion_spike
            ) as is_replaced_by_nothing,
            docs_listed is not null
            and previous_docs_listed is not null
            and (
                (mean_chars_per_doc is not null and previous_mean_chars_per_doc is not null)
                or (docs_empty is not null and previous_docs_empty is not null)
            )
            and chunks_deleted = 0 as is_healthy
        from joined
    ),
    decided as (
        select
            *,
            multiIf(
                version = '', ('unknown', '', []),
                document_chunks > 0 and is_near_empty, ('parsed_empty', 'document', []),
                document_chunks > 0 and is_held and not is_rewritten and is_deleted_by_row, ('deleted', 'chunk', []),
                document_chunks > 0 and is_held and not is_rewritten and is_adjacent and deletions_cover, ('deleted', 'counters', []),
                document_chunks > 0, ('chunk_dissolved', 'document', []),
                is_deleted_by_row and is_adjacent and is_replaced_by_nothing, ('parsed_empty', 'counters', []),
                is_deleted_by_row, ('deleted', 'chunk', []),
                not is_run_known or not is_adjacent, ('unknown', '', []),
                is_held and deletions_cover and is_replaced_by_nothing, ('parsed_empty', 'counters', []),
                is_held and deletions_cover, ('deleted', 'counters', []),
                was_there is null and is_deletion_spike, ('deleted', 'counters', []),
                was_there = false and is_document_known and docs_empty = 0, ('never_listed', 'elimination', []),
                was_there = false, ('unknown', '', if(docs_empty > 0, ['never_listed', 'parsed_empty'], ['never_listed', 'chunk_dissolved'])),
                lists_cover and empties_cover, ('unknown', '', ['never_listed', 'parsed_empty']),
                lists_cover, ('never_listed', 'counters', []),
                empties_cover, ('parsed_empty', 'counters', []),
                is_held and not is_document_known and is_healthy, ('chunk_dissolved', 'elimination', []),
                is_held, ('unknown', '', ['never_listed', 'chunk_dissolved']),
                is_document_known and docs_empty = 0 and chunks_deleted = 0, ('never_listed', 'elimination', []),
                ('unknown', '', if(docs_empty > 0, ['never_listed', 'parsed_empty'], ['never_listed', 'chunk_dissolved']))
            ) as verdict,
            groupUniqArray(label_id) over (partition by index_name, lost_in) as labels_of_the_run
        from weighed
    ),
    told as (
        select
            *,
            verdict.1 as cause,
            verdict.2 as decided_by,
            verdict.3 as suspects,
            transform(
                cause,
                ['never_listed', 'parsed_empty', 'chunk_dissolved', 'deleted'],
                ['crawler', 'parser', 'chunker', 'reconciliation'],
                ''
            ) as owner,
            multiIf(
                cause != 'deleted', '',
                has(flags, 'docs_listed_short') and is_adjacent, 'reconciliation on a truncated crawl',
                'deletion'
            ) as mechanism,
            arraySort(arrayFilter(id -> id != label_id, labels_of_the_run)) as other_labels,
            arrayConcat(
                if(cause != 'unknown' or version != '', [], ['index_version']),
                if(cause != 'unknown' or version = '' or is_run_known, [], ['ingest_run']),
                if(cause != 'unknown' or not is_run_known or has_run_before, [], ['previous_run']),
                if(cause != 'unknown' or is_adjacent, [], ['manifest_between']),
                if(cause != 'unknown' or not is_run_known or docs_listed is not null, [], ['docs_listed']),
                if(cause != 'unknown' or not is_run_known or coalesce(mean_chars_per_doc, docs_empty) is not null, [], ['mean_chars_per_doc']),
                if(cause != 'unknown' or not is_run_known or chunks_deleted is not null, [], ['chunks_deleted']),
                if(cause != 'unknown' or version = '' or is_document_known, [], ['document']),
                if(cause != 'unknown' or version = '' or was_there is not null, [], ['earlier_manifest'])
            ) as missing
        from decided
    )
select
    request.1 as trace_id,
    request.2 as request_id,
    request.3 as started_at,
    request.4 as service_name,
    request.5 as label_set,
    request.6 as run_id,
    told.label_id as label_id,
    told.passage as passage,
    told.index_name as index_name,
    told.version as index_version,
    cause,
    owner,
    decided_by,
    mechanism,
    suspects,
    was_there,
    held_by as held_by_version,
    if(cause = 'unknown' and version = '', '', lost_in) as lost_in_version,
    ingest_trace_id,
    if(ingest_trace_id = '', null, ran_at)::Nullable(DateTime64(9, 'UTC')) as ingest_started_at,
    docs_listed,
    previous_docs_listed,
    mean_chars_per_doc,
    previous_mean_chars_per_doc,
    docs_empty,
    previous_docs_empty,
    chunks_written,
    previous_chunks_written,
    chunks_deleted,
    previous_chunks_deleted,
    document_chunks,
    document_chars,
    claim_in_chunk_id,
    is_claim_split,
    gone_chunks,
    gone_chunk_ids,
    vanished_documents,
    vanished_doc_ids,
    shrunk_documents,
    shrunk_doc_ids,
    length(other_labels) as other_label_count,
    arraySlice(other_labels, 1, 50) as other_label_ids,
    missing,
    concat(
        multiIf(
            cause = 'parsed_empty' and decided_by = 'document',
            concat('Its document is in the index with next to no text (', toString(document_chars), ' characters): the parser returned almost nothing.'),
            cause = 'parsed_empty',
            concat('The run listed as many documents as the one before and parsed more of them to nothing', if(has(flags, 'mean_chars_low'), concat(': ', toString(round(mean_chars_per_doc)), ' characters per document, before ', toString(round(previous_mean_chars_per_doc))), ''), '.'),
            cause = 'chunk_dissolved' and decided_by = 'document' and claim_in_chunk_id != '',
            concat('Its document was cut otherwise: the claim stands in ', claim_in_chunk_id, ' now, so add this id to the label.'),
            cause = 'chunk_dissolved' and decided_by = 'document',
            concat('Its document is in the index by ', toString(document_chunks), if(document_chunks = 1, ' other chunk', ' other chunks'), ', but this one is not', if(is_claim_split, ': the claim is cut in two between neighbours.', '.')),
            cause = 'chunk_dissolved', 'As many documents listed, as much text, nothing deleted: only the chunker is left.',
            cause = 'deleted' and mechanism != 'deletion',
            concat('The run listed ', toString(docs_listed), ' documents, before ', toString(previous_docs_listed), ', and deleted ', ifNull(toString(chunks_deleted), '?'), ' chunks: what a truncated crawl did not list was deleted.'),
            cause = 'deleted' and decided_by = 'chunk', concat('Version ', lost_in, ' deleted the chunk by its id.'),
            cause = 'deleted', concat('It was in version ', if(held_by = '', 'before', held_by), ' or may have been, and the run that wrote ', lost_in, ' deleted ', toString(chunks_deleted), ' chunks.'),
            cause = 'never_listed' and decided_by = 'counters',
            concat('The run listed ', toString(docs_listed), ' documents, before ', toString(previous_docs_listed), ', and what it listed was parsed.'),
            cause = 'never_listed', 'No version has a chunk of its document and no document was parsed to nothing: the crawl does not list it.',
            concat(
                'Not decidable',
                if(empty(suspects), '', concat(' between ', arrayStringConcat(suspects, ' and '))),
                if(empty(missing), ': the counters leave both open.', concat(': ', arrayStringConcat(missing, ', '), ' not recorded.'))
            )
        ),
        if(vanished_documents > 1, concat(' With it ', toString(vanished_documents), ' documents left the index.'), ''),
        if(empty(other_labels), '', concat(' ', toString(length(other_labels)), if(length(other_labels) = 1, ' other label has', ' other labels have'), ' a gap by the same run.'))
    ) as why
from told
array join requests as request
order by cause = 'unknown', indexOf(['chunk', 'document', 'counters', 'elimination'], decided_by), index_name, index_version
limit 1 by trace_id, request_id, label_id, passage
settings join_use_nulls = 0
