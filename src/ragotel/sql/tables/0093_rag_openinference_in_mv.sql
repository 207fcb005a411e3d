-- answers: which spans are written by the OpenInference convention?
-- grain:   fills rag_openinference_in at insert, one row per span
-- reads:   rag_foreign_in
create materialized view if not exists rag_openinference_in_mv to rag_openinference_in as
select *
from rag_foreign_in
where convention = 'openinference'
