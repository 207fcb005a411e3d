-- answers: which convention did another instrumentation write this span by?
-- grain:   one function; '' where it is none that is read
-- reads:   nothing
-- OpenInference first: it may write gen_ai keys beside its own. Traceloop shares the gen_ai keys and is told by
-- its own keys or the name of its scope.
create or replace function rag_foreign_convention as (attributes, scope, event_names) ->
    multiIf(
        mapContains(attributes, 'openinference.span.kind'), 'openinference',
        mapContains(attributes, 'langfuse.observation.type'), 'langfuse',
        mapContains(attributes, 'mlflow.spanType'), 'mlflow',
        mapContains(attributes, 'traceloop.span.kind')
        or mapContains(attributes, 'llm.request.type')
        or mapContains(attributes, 'gen_ai.is_streaming')
        or (
            match(scope, '^opentelemetry\\.instrumentation\\.(openai(\\.v\\d+)?|anthropic|cohere|mistralai|ollama|groq|bedrock|vertexai|google_generativeai|watsonx|together|replicate|transformers|sagemaker|alephalpha|haystack|langchain|llamaindex|crewai|agno|openai_agents|mcp|writer|voyageai|chromadb|pinecone|qdrant|weaviate|milvus|marqo|lancedb)$')
            and (
                mapContains(attributes, 'gen_ai.operation.name')
                or mapContains(attributes, 'gen_ai.system')
                or mapContains(attributes, 'db.system')
            )
        ), 'traceloop',
        mapContains(attributes, 'gen_ai.operation.name')
        or mapContains(attributes, 'gen_ai.system')
        or mapContains(attributes, 'gen_ai.provider.name'), 'genai',
        has(event_names, 'db.query.result') or has(event_names, 'db.search.result'), 'other',
        ''
    )
