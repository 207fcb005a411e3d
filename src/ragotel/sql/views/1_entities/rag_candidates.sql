-- answers: what did each stage return, at which rank and score?
-- grain:   one row per candidate of a stage run; on assemble what was sent, in prompt order
-- reads:   rag_stages
create or replace view rag_candidates as
select
    trace_id,
    request_id,
    span_id,
    started_at,
    service_name,
    stage,
    stage_name,
    candidate_rank as rank,
    chunk_id,
    score,
    score_kind,
    higher_is_better,
    chunk_sha,
    doc_id,
    doc_version,
    tokens,
    chars,
    kept_chars,
    superseded,
    leg,
    index_name,
    index_version,
    convention,
    evidence
from rag_stages final
array join
    arrayEnumerate(chunk_ids) as candidate_rank,
    chunk_ids as chunk_id,
    scores as score,
    candidate_shas as chunk_sha,
    candidate_doc_ids as doc_id,
    candidate_doc_versions as doc_version,
    candidate_tokens as tokens,
    candidate_chars as chars,
    candidate_kept_chars as kept_chars,
    candidate_superseded as superseded,
    candidate_legs as leg
where stage != 'ingest'
