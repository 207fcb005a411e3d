-- How long each kind is kept. Change the numbers, then run it in the database of ragotel; again whenever they change.
--
--   clickhouse-client --user ragotel_admin --password … --database ragotel --multiquery < retention.sql
--
-- Requests that a label, a grade or a complaint is about stay, with their stages and prompts: their verdicts rest on
-- them. A complaint that comes after a row is gone brings nothing back. On a cluster write NAME_local `on cluster`.

-- What spans were written as. Everything below was filled from it; only `ragotel backfill` reads it again.
alter table otel_traces modify ttl toDateTime(Timestamp) + interval 30 day;
alter table otel_traces_trace_id_ts modify ttl toDateTime(Start) + interval 30 day;

-- Prompts are the bulk, and the most personal of it.
alter table rag_prompts modify ttl toDateTime(started_at) + interval 90 day delete where (trace_id, request_id) not in (select trace_id, request_id from rag_labelled_requests) and trace_id not in (select trace_id from rag_complaints) and request_id not in (select request_id from rag_complaints);

-- Questions, answers, lists: a year.
alter table rag_requests modify ttl toDateTime(started_at) + interval 365 day delete where label_id = '' and query_hash not in (select question_hash from rag_labels) and trace_id not in (select trace_id from rag_grades) and request_id not in (select request_id from rag_grades) and trace_id not in (select trace_id from rag_complaints) and request_id not in (select request_id from rag_complaints) and trace_id not in (select trace_id from rag_label_attachments) and request_id not in (select request_id from rag_label_attachments);
alter table rag_stages modify ttl toDateTime(started_at) + interval 365 day delete where (trace_id, request_id) not in (select trace_id, request_id from rag_labelled_requests) and trace_id not in (select trace_id from rag_complaints) and request_id not in (select request_id from rag_complaints);

-- rag_chunks has no retention: a text is sent once and may be in the list of any later request. rag_labels, rag_grades,
-- rag_complaints, manifests, probes, ablations, rules and limits are small and what everything else is measured by.
