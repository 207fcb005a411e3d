-- One tenant's reader: only requests whose rag.tenant is `acme`. Put each tenant's name in its place, and run it once per tenant.
--
--   sed "s/acme/globex/g" tenant.sql | clickhouse-client --user ragotel_admin --password … --param_password=… --multiquery
--
-- Row policies stand on the three tables that hold a tenant's text. Verdicts come from a view in a database of the
-- tenant's own: the views of `ragotel` read with their maker's rights and would show every tenant's.
create user if not exists ragotel_tenant_acme identified with sha256_password by {password:String} settings profile 'ragotel_reader';
-- Everybody sees all rows, but a tenant only those that its restrictive policy leaves.
create row policy if not exists everybody on ragotel.rag_requests using 1 as permissive to all;
create row policy if not exists everybody on ragotel.rag_stages using 1 as permissive to all;
create row policy if not exists everybody on ragotel.rag_prompts using 1 as permissive to all;
create row policy if not exists tenant_acme on ragotel.rag_requests using tenant = 'acme' as restrictive to ragotel_tenant_acme;
create row policy if not exists tenant_acme on ragotel.rag_stages using (trace_id, request_id) in (select trace_id, request_id from ragotel.rag_requests where tenant = 'acme') as restrictive to ragotel_tenant_acme;
create row policy if not exists tenant_acme on ragotel.rag_prompts using (trace_id, request_id) in (select trace_id, request_id from ragotel.rag_requests where tenant = 'acme') as restrictive to ragotel_tenant_acme;
grant select on ragotel.rag_requests to ragotel_tenant_acme;
grant select on ragotel.rag_stages to ragotel_tenant_acme;
grant select on ragotel.rag_prompts to ragotel_tenant_acme;
create database if not exists ragotel_acme;
create or replace view ragotel_acme.triage_requests definer = current_user sql security definer as select * from ragotel.triage_requests where (trace_id, request_id) in (select trace_id, request_id from ragotel.rag_requests where tenant = 'acme');
grant select on ragotel_acme.* to ragotel_tenant_acme;
