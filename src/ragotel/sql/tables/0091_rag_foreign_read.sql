-- answers: what does a span of another instrumentation say, whatever its convention?
-- grain:   keeps nothing; a row per span, on its way to rag_requests, rag_stages, rag_prompts, rag_chunks
-- reads:   nothing
-- documents are (id, score, text, doc_id) best first; taken_in are the texts that a reranker was given.
create table if not exists rag_foreign_read
(
    trace_id         String,
    request_id       String,
    is_request       UInt8,
    span_id          String,
    parent_span_id   String,
    started_at       DateTime64(9, 'UTC'),
    duration         UInt64,
    service_name     LowCardinality(String),
    span_name        LowCardinality(String),
    status_code      LowCardinality(String),
    convention       LowCardinality(String),
    stage            LowCardinality(String),
    session_id       String,
    user_id          String,
    question         String,
    answer           String,
    documents        Array(Tuple(id Nullable(String), score Nullable(Float64), text Nullable(String), doc_id String)),
    candidate_count  Nullable(UInt32),
    taken_in         Array(String),
    in_count         Nullable(UInt32),
    evidence         LowCardinality(String),
    index_name       String,
    index_version    String,
    filter           String,
    model            String,
    provider         String,
    top_k            Nullable(UInt32),
    is_distance      UInt8,
    input_tokens     Nullable(UInt64),
    output_tokens    Nullable(UInt64),
    finish_reasons   Array(String),
    temperature      Nullable(Float64),
    first_token_ms   Nullable(Float64),
    prompt           String,
    prompt_state     LowCardinality(String),
    template_name    String,
    template_version String
)
engine = Null
