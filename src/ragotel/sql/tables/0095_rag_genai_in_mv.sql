-- answers: which spans are written with gen_ai keys?
-- grain:   fills rag_genai_in at insert, one row per span
-- reads:   rag_foreign_in
create materialized view if not exists rag_genai_in_mv to rag_genai_in as
select *
from rag_foreign_in
where convention in ('genai', 'traceloop', 'other')
