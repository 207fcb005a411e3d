-- answers: which sent passages state what a wrong answer said?
-- grain:   one row per request × label that has a wrong grade and at least one such passage
-- reads:   rag_sent_statements
create or replace view rag_competing_passages as
select
    trace_id,
    request_id,
    label_id,
    arrayDistinct(arrayMap(pair -> pair.2, arraySort(groupArray((position, chunk_id))))) as competing_chunk_ids
from rag_sent_statements
where states_wrong and not is_gold
group by trace_id, request_id, label_id
