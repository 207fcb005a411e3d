-- answers: in which index versions did a gold passage come, change or go, by id or by its wording?
-- grain:   one row per label × gold passage that some index version holds or could hold
-- reads:   rag_labels, rag_label_passages, rag_index_changes, rag_index_chains, rag_chunks
-- by_id: (index, [(version, deleted, sha)]) per labelled chunk. by_text, for a passage without ids: the whole
-- versions that state it, and those that hold a text which is not known.
create or replace view rag_gold_changes as
with
    passages as (
        select label_id, passage, known_chunk_ids, has_ids, claims
        from rag_label_passages
        where passage > 0
    ),
    by_id as (
        select
            wanted.label_id as label_id,
            wanted.passage as passage,
            groupArray((toString(changes.index_name), changes.changes)) as by_id
        from (
            select label_id, passage, arrayJoin(known_chunk_ids) as chunk_id
            from passages
        ) as wanted
        inner join (
            select *
            from rag_index_changes
            where chunk_id in (select arrayJoin(known_chunk_ids) from passages)
        ) as changes on changes.chunk_id = wanted.chunk_id
        group by label_id, passage
    ),
    worded as (
        select label_id, passage, claims
        from passages
        where not has_ids and notEmpty(claims)
    ),
    members as (
        select
            chains.index_name as index_name,
            chains.version as version,
            changes.chunk_id as chunk_id,
            arrayFirst(
                change -> change.1 = arrayFirst(link -> has(changes.changes.1, link), chains.chain),
                changes.changes
            ) as change
        from (
            select *
            from rag_index_changes
            where (select count() from rag_labels where empty(chunk_ids) and empty(doc_ids)) > 0
        ) as changes
        inner join (
            select *
            from rag_index_chains
            where is_whole
        ) as chains on chains.index_name = changes.index_name
        where change.1 != '' and change.2 = 0
    ),
    by_text as (
        select
            label_id,
            passage,
            groupArrayIf((toString(index_name), version), is_stated) as stated_in,
            groupArrayIf((toString(index_name), version), has_unknown_texts) as unread_in
        from (
            select
                worded.label_id as label_id,
                worded.passage as passage,
                members.index_name as index_name,
                members.version as version,
                max(arrayExists(claim -> rag_contains(texts.text_norm, claim), worded.claims)) as is_stated,
                max(texts.chunk_sha = '') as has_unknown_texts
            from members
            left join (
                select chunk_sha, any(text_norm) as text_norm
                from rag_chunks
                group by chunk_sha
            ) as texts on texts.chunk_sha = members.change.3
            cross join worded
            group by label_id, passage, index_name, version
        )
        group by label_id, passage
    )
select label_id, passage, by_id, [] as stated_in, [] as unread_in
from by_id
union all
select label_id, passage, [] as by_id, stated_in, unread_in
from by_text
settings join_use_nulls = 0
