-- Who may do what. Run it after `ragotel init`, as the user who ran that; again after an upgrade.
--
--   clickhouse-client --user ragotel_admin --password … --param_writer_password=… \
--       --param_reader_password=… --param_text_reader_password=… --param_triage_password=… \
--       --multiquery < users-and-grants.sql
--
-- The views read with the rights of who made them (users.d/ragotel.xml: default_normal_view_sql_security = DEFINER),
-- so that a reader needs no right on what they read. The profiles are in users.d/ragotel.xml too.

-- The collector: adds spans, reads nothing. The materialized views fill the rest with their maker's rights.
create user if not exists ragotel_writer identified with sha256_password by {writer_password:String} settings profile 'ragotel_writer';
grant insert on ragotel.otel_traces to ragotel_writer;

-- Dashboards and alerts: no question, answer, prompt, passage, note, and no user's or session's id.
create user if not exists ragotel_reader identified with sha256_password by {reader_password:String} settings profile 'ragotel_reader';
grant select on ragotel.dist_* to ragotel_reader;
grant select on ragotel.alert_* to ragotel_reader;
grant select on ragotel.triage_losses to ragotel_reader;
grant select on ragotel.triage_fixes to ragotel_reader;
grant select on ragotel.ab_results to ragotel_reader;
grant select on ragotel.rag_losses to ragotel_reader;
grant select on ragotel.rag_ingest_runs to ragotel_reader;
grant select on ragotel.rag_index_versions to ragotel_reader;
grant select on ragotel.rag_index_chunks to ragotel_reader;
grant select on ragotel.rag_limits to ragotel_reader;
grant select on ragotel.rag_limits_in_force to ragotel_reader;
grant select on ragotel.rag_migrations to ragotel_reader;
grant select(trace_id, request_id, started_at, service_name, label_id, label_set, population, split, matched_by, index_name, index_version, template_name, template_version, run_id, arm, bucket, state, attribution, loss_stage, drop_reason, recall_class, gold_rank, deep_rank, near_miss, rerank_reachable_within, top_k, k_prompt, sent_count, sent_tokens, budget_tokens, grade, grade_source, decided_by, via_other_chunk, degraded, deciding_passage, passage_count, right_without_gold, abstained, missing) on ragotel.triage_requests to ragotel_reader;
grant select(trace_id, request_id, span_id, started_at, duration_ms, service_name, outcome, content_mode, run_id, arm, label_id, convention, capture_errors, ingested_at) on ragotel.rag_requests to ragotel_reader;
grant select(trace_id, request_id, span_id, parent_span_id, started_at, ended_at, duration_ms, service_name, stage, stage_name, outcome, candidate_count, in_count, drop_reasons, index_name, index_version, model, provider, top_k, limit_count, score_kind, fuse_method, rerank_window_chars, rerank_effect, input_tokens, output_tokens, time_to_first_token_ms, content_mode, convention, evidence, capture_errors) on ragotel.rag_stages to ragotel_reader;
grant select(trace_id, request_id, span_id, started_at, service_name, chars, tokens, tokens_source, content_mode, template_name, template_version, budget_tokens, convention, evidence) on ragotel.rag_prompts to ragotel_reader;

-- Who looks into single requests: everything, text too, and changes nothing.
create user if not exists ragotel_text_reader identified with sha256_password by {text_reader_password:String} settings profile 'ragotel_reader';
grant select on ragotel.* to ragotel_text_reader;

-- Who triages, and the jobs that do (`ragotel check`, `labels`, `grade`, `manifest`): reads all, writes what people write.
create user if not exists ragotel_triage identified with sha256_password by {triage_password:String};
grant select on ragotel.* to ragotel_triage;
grant insert on ragotel.rag_labels_in to ragotel_triage;
grant insert on ragotel.rag_grades to ragotel_triage;
grant insert on ragotel.rag_complaints to ragotel_triage;
grant insert on ragotel.rag_label_attachments to ragotel_triage;
grant insert on ragotel.rag_label_decisions to ragotel_triage;
grant insert on ragotel.rag_probes to ragotel_triage;
grant insert on ragotel.rag_ablations to ragotel_triage;
grant insert on ragotel.rag_rules to ragotel_triage;
grant insert on ragotel.rag_limits to ragotel_triage;
grant insert on ragotel.rag_index_chunks to ragotel_triage;
grant insert on ragotel.rag_index_versions to ragotel_triage;
grant insert on ragotel.rag_chunks_in to ragotel_triage;
