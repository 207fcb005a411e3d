"""Attributes: every key on a ragotel span, with type, unit and meaning.

Pipeline: recorder -> encoding -> [span attributes] -> OTLP -> otel_traces -> views

Both halves share these names. Lists are JSON text in one string attribute. Keys that the GenAI
convention of OpenTelemetry has are used as it spells them; `rag.*` is only for what it lacks.
"""

from __future__ import annotations

SCOPE_NAME = "ragotel"
"""Name of the instrumentation scope of every span of ours."""
SCHEMA_VERSION = 1
"""Value of `rag.schema`."""

# On every span.

SCHEMA = "rag.schema"
"""int. Version of this table."""
STAGE = "rag.stage"
"""string. request, retrieve, fuse, rerank, blend, filter, assemble, generate or ingest; model_call
for a model's call after the one that gave the answer (a judge, a title)."""
REQUEST_ID = "rag.request.id"
"""string, 16 hex digits. The request; absent on a stage that ran outside of any."""
STAGE_NAME = "rag.stage.name"
"""string. Leg or callable: dense, bm25, rerank."""
OUTCOME = "rag.outcome"
"""string. ok, error, cancelled, stopped_early or abandoned."""
CONTENT_MODE = "rag.content_mode"
"""string. What became of the texts on this span: full, redacted, truncated, hashed or off; of
several texts the one that lacks most. full: nothing was changed, whatever the rule."""
REDACTIONS = "rag.redactions"
"""JSON object from kind to number: what was masked on this span: email, phone, card, iban, key,
custom (texts that your own function changed); failed: texts left out as it raised. Absent for
none."""
CAPTURE_ERRORS = "rag.capture.errors"
"""int. Faults of ragotel itself on this span; absent when there was none."""
TEXT_REPAIRED = "rag.text_repaired"
"""bool. A lone surrogate in a text of this span was replaced by U+FFFD; absent when none was."""
ERROR_TYPE = "error.type"
"""string. Class of the exception that ended the stage."""
LATE = "rag.late"
"""bool. The stage ended after its request had; absent otherwise."""

# On request.

USER_ID = "user.id"
"""string. Who asked."""
CONVERSATION_ID = "gen_ai.conversation.id"
"""string. Session or conversation."""
TENANT = "rag.tenant"
"""string. Customer or workspace of the user."""
PRINCIPAL = "rag.principal"
"""string. Role or group whose permissions the retrieval obeyed."""
TAGS = "rag.tags"
"""JSON list of strings. Free properties to slice by."""
QUERY = "rag.query"
"""string. The question as asked."""
ANSWER = "rag.answer"
"""string. The answer as given; the part that was given when the request was stopped early."""
ANSWER_CHARS = "rag.answer.chars"
"""int, characters. Length of the whole answer, also where its text was cut or left out."""
RUN_ID = "rag.run.id"
"""string. Evaluation run that asked."""
ARM = "rag.arm"
"""string. Arm of an A/B comparison."""
LABEL_ID = "rag.label.id"
"""string. Label being asked."""

# On request, retrieve, rerank and generate.

OPERATION = "gen_ai.operation.name"
"""string. invoke_workflow on request, retrieval, rerank, chat."""
INPUT_MESSAGES = "gen_ai.input.messages"
"""JSON list of messages, on request and generate: the question, the prompt. Only with the setting
`gen_ai_messages`."""
OUTPUT_MESSAGES = "gen_ai.output.messages"
"""JSON list of messages, on request and generate: the answer, the model's reply. Only with the
setting `gen_ai_messages`."""

# On retrieve.

RETRIEVAL_QUERY = "gen_ai.retrieval.query.text"
"""string. What was searched for."""
TOP_K = "gen_ai.retrieval.top_k"
"""int, candidates. How many were asked for."""
DATA_SOURCE = "gen_ai.data_source.id"
"""string. Name of the index."""
DOCUMENTS = "gen_ai.retrieval.documents"
"""JSON list of candidates, best first: what the leg returned."""
INDEX_VERSION = "rag.index.version"
"""string. Version of the index that served, or that an ingest run wrote."""
FILTER = "rag.filter"
"""string. Condition that the search was restricted by."""
FILTER_EXCLUDED = "rag.filter.excluded_count"
"""int, candidates. How many the condition excluded."""

# On every stage with a list.

CANDIDATES = "rag.candidates"
"""JSON list of candidates: what the stage returned, best first; on assemble what was sent, in
prompt order; on ingest the chunks written."""
COUNT = "rag.candidates.count"
"""int. True length of the list, also where it was cut or content is off."""
IN_COUNT = "rag.candidates.in_count"
"""int. Number of distinct candidates that went into the stage."""
DROPPED = "rag.dropped"
"""JSON list of {"id", "reason", "inferred"}: limit, top_n, threshold, permission, dedupe,
per_document_cap, budget or other."""
CHUNKS = "rag.chunks"
"""JSON object from `sha` to text: only texts that this process had not sent before."""
SCORE_KIND = "rag.score.kind"
"""string. cosine, dot, l2, bm25, rrf, cross_encoder, ...; kinds are never compared."""
HIGHER_IS_BETTER = "rag.score.higher_is_better"
"""bool. False for distances."""
LIMIT = "rag.limit"
"""int, candidates. Cut of the stage."""
FUSE_METHOD = "rag.fuse.method"
"""string. rrf, weighted, ..."""
RERANK_WINDOW = "rag.rerank.window_chars"
"""int, characters. How much of each text the reranker reads."""
RERANK_EFFECT = "rag.rerank.effect"
"""string. `identity`: order and scores left exactly as they came in; `reordered` otherwise."""
SERVER_SIDE = "rag.rerank.server_side"
"""bool. The ranking happened inside the search service."""

# On assemble.

PROMPT_NAME = "gen_ai.prompt.name"
"""string. Template's name."""
PROMPT_VERSION = "gen_ai.prompt.version"
"""string. Template's version; `sha256:` + 16 hex digits where ragotel made it from the text."""
PROMPT_VERSION_SOURCE = "rag.prompt.version_source"
"""string. given; template: hash of the template's text; skeleton: hash of the prompt without the
question and the passages."""
PROMPT_TEXT = "rag.prompt.text"
"""string. The exact string that was sent to the model."""
PROMPT_SHA256 = "rag.prompt.sha256"
"""string, 64 hex digits. SHA-256 of the whole prompt in UTF-8."""
PROMPT_CHARS = "rag.prompt.chars"
"""int, characters. Length of the whole prompt."""
PROMPT_TOKENS = "rag.prompt.tokens"
"""int, tokens. Length of the whole prompt."""
PROMPT_TOKENS_SOURCE = "rag.prompt.tokens_source"
"""string. reported by the service, counted by its tokeniser, or estimated: four characters each."""
BUDGET_TOKENS = "rag.budget.tokens"
"""int, tokens. What the passages may take."""

# On generate.

REQUEST_MODEL = "gen_ai.request.model"
"""string. Model asked for; on rerank the reranker's."""
PROVIDER = "gen_ai.provider.name"
"""string. openai, anthropic, ..."""
INPUT_TOKENS = "gen_ai.usage.input_tokens"
"""int, tokens."""
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
"""int, tokens."""
FINISH_REASONS = "gen_ai.response.finish_reasons"
"""JSON list of strings."""
TEMPERATURE = "gen_ai.request.temperature"
"""float."""
TIME_TO_FIRST_TOKEN = "rag.time_to_first_token_ms"  # noqa: S105 - a duration
"""float, milliseconds. From the call to the first chunk of a stream."""
CITATIONS = "rag.citations"
"""JSON list of candidate ids that the answer cites."""

# On ingest.

DOCS_LISTED = "rag.ingest.docs_listed"
"""int, documents. How many the source listed."""
DOCS_PARSED = "rag.ingest.docs_parsed"
"""int, documents. How many were parsed."""
DOCS_EMPTY = "rag.ingest.docs_empty"
"""int, documents. How many parsed to nothing."""
MEAN_CHARS_PER_DOC = "rag.ingest.mean_chars_per_doc"
"""float, characters."""
CHUNKS_WRITTEN = "rag.ingest.chunks_written"
"""int, chunks."""
CHUNKS_DELETED = "rag.ingest.chunks_deleted"
"""int, chunks."""
PARENT_VERSION = "rag.index.parent_version"
"""string. Version that the run started from."""
CHUNKER = "rag.chunker"
"""string. Name and parameters of the chunker."""

# On the span `ragotel.loss`, which has no stage.

LOSS_CAUSE = "rag.loss.cause"
"""string. queue_full, too_large, export_failed, encode_failed, shutdown, ..."""
LOSS_SPANS = "rag.loss.spans"
"""int, spans."""
LOSS_REQUESTS = "rag.loss.requests"
"""int, requests."""
