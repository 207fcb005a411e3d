-- answers: which stage is a span of another instrumentation?
-- grain:   one function; retrieve, rerank, generate, chain (may be the request), else other
-- reads:   nothing
-- Other is what neither ranks nor answers (embeddings, tools, parsers) and the inner or outer half of a call
-- that its instrumentation always writes twice. docs/conventions.md names each rule.
create or replace function rag_foreign_stage as (convention, attributes, name, scope, event_names) ->
    multiIf(
        convention = 'openinference',
        multiIf(
            attributes['openinference.span.kind'] = 'RETRIEVER',
            if(
                endsWith(scope, 'llama_index')
                and match(name, '\\._a?retrieve$')
                and not arrayExists(key -> startsWith(key, 'retrieval.documents.'), mapKeys(attributes)),
                'other',
                'retrieve'
            ),
            attributes['openinference.span.kind'] = 'RERANKER', 'rerank',
            attributes['openinference.span.kind'] = 'LLM',
            if(
                mapContains(attributes, 'llm.prompt_template.template')
                and not arrayExists(
                    key -> match(key, '^llm\\.(input_messages|output_messages|prompts|token_count)(\\.|$)'),
                    mapKeys(attributes)
                ),
                'other',
                'generate'
            ),
            attributes['openinference.span.kind'] in ('CHAIN', 'AGENT', 'UNKNOWN'), 'chain',
            'other'
        ),
        convention = 'langfuse',
        multiIf(
            attributes['langfuse.observation.type'] = 'retriever', 'retrieve',
            attributes['langfuse.observation.type'] = 'generation', 'generate',
            attributes['langfuse.observation.type'] in ('span', 'chain', 'agent'),
            if(match(lower(name), 're_?rank'), 'rerank', 'chain'),
            'other'
        ),
        convention = 'mlflow',
        multiIf(
            attributes['mlflow.spanType'] = '"RETRIEVER"', 'retrieve',
            attributes['mlflow.spanType'] = '"RERANKER"', 'rerank',
            attributes['mlflow.spanType'] in ('"CHAT_MODEL"', '"LLM"'), 'generate',
            attributes['mlflow.spanType'] in ('"CHAIN"', '"AGENT"', '"UNKNOWN"', '"WORKFLOW"', '"TASK"'), 'chain',
            'other'
        ),
        attributes['gen_ai.operation.name'] in ('retrieval', 'vector_db_retrieve', 'RETRIEVER'), 'retrieve',
        attributes['gen_ai.operation.name'] in ('rerank', 'RERANKER') or attributes['llm.request.type'] = 'rerank', 'rerank',
        attributes['gen_ai.operation.name'] in ('chat', 'text_completion', 'completion', 'generate_content', 'CHAT_MODEL', 'LLM')
        or attributes['llm.request.type'] in ('chat', 'completion'), 'generate',
        attributes['gen_ai.operation.name'] in ('embeddings', 'embedding', 'execute_tool', 'create_agent')
        or attributes['llm.request.type'] = 'embedding'
        or attributes['traceloop.span.kind'] = 'tool', 'other',
        has(event_names, 'db.query.result') or has(event_names, 'db.search.result'), 'retrieve',
        mapContains(attributes, 'db.system') and not mapContains(attributes, 'traceloop.span.kind'),
        if(
            lower(attributes['db.system']) in ('chroma', 'chromadb', 'pinecone', 'qdrant', 'milvus', 'weaviate', 'marqo', 'lancedb')
            and match(lower(name), '(^|[. _])(query|search|hybrid_search|query_points|query_batch_points|recommend|discover|near_text|near_vector|bm25|hybrid)$'),
            'retrieve',
            'other'
        ),
        endsWith(scope, '.llamaindex') and match(name, '^\\w*Retriever\\.(task|workflow)$'),
        if(
            JSONHas(attributes['traceloop.entity.input'], 'query_bundle')
            and not JSONHas(attributes['traceloop.entity.input'], 'str_or_query_bundle'),
            'other',
            'retrieve'
        ),
        endsWith(scope, '.llamaindex')
        and JSONHas(attributes['traceloop.entity.output'], 'raw')
        and (JSONHas(attributes['traceloop.entity.output'], 'text') or JSONHas(attributes['traceloop.entity.output'], 'message')), 'generate',
        endsWith(scope, '.llamaindex') and mapContains(attributes, 'gen_ai.output.messages'), 'other',
        attributes['traceloop.span.kind'] in ('workflow', 'agent', 'task')
        or attributes['gen_ai.operation.name'] in ('invoke_agent', 'invoke_workflow', 'handle_conversation_turn', 'execute_task', 'plan', 'CHAIN', 'AGENT', 'WORKFLOW', 'TASK', 'UNKNOWN'), 'chain',
        attributes['gen_ai.operation.name'] = ''
        and (
            mapContains(attributes, 'gen_ai.request.model')
            or mapContains(attributes, 'gen_ai.usage.input_tokens')
            or mapContains(attributes, 'gen_ai.usage.prompt_tokens')
        ), 'generate',
        'other'
    )
