-- Verdicts kept apart, for dashboards over many labels: `triage_requests` as it was at judged_at. Optional.
--
--   clickhouse-client --user ragotel_admin --password … --database ragotel --multiquery < kept-verdicts.sql
--
-- The views judge anew each time they are asked: 10,000 labelled requests cost some 8 seconds on two cores. This table
-- is judged every 15 minutes and answers at once, with what was known then: a label, a grade or a manifest that came
-- later is not in it. Whoever needs the verdict of now asks triage_requests, as the commands of ragotel do. It holds no
-- question, answer, user or session. Run it again after an upgrade. On a cluster one node is enough: it asks all shards.
drop view if exists kept_triage_requests;
create materialized view kept_triage_requests
refresh every 15 minute
engine = MergeTree
order by (label_set, started_at, trace_id, request_id, label_id)
as
select * except (question, answer, user_id, session_id, why), now64(3, 'UTC') as judged_at
from triage_requests;
grant select on kept_triage_requests to ragotel_reader;
