-- answers: which spans are written by Langfuse and MLflow?
-- grain:   fills rag_observed_in at insert, one row per span
-- reads:   rag_foreign_in
create materialized view if not exists rag_observed_in_mv to rag_observed_in as
select *
from rag_foreign_in
where convention in ('langfuse', 'mlflow')
