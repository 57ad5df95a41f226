"""Traceloop / OpenLLMetry, and the decorators of its SDK.

``traceloop.span.kind`` is asked before the operation: a workflow or task calls itself ``invoke_agent`` too. The agent's
name is inherited by every span below an agent, so it counts on the agent's own only.
"""

from __future__ import annotations

from surefoot.instrumentation import semconv
from surefoot.processors.genai.dialects import otel_genai
from surefoot.processors.genai.dialects.dialect import NOTHING, Dialect, Source, attribute, span_name
from surefoot.processors.genai.dialects.reading import always, matching, model, provider, words

KINDS = {
    "workflow": semconv.INVOKE_WORKFLOW,
    "agent": semconv.INVOKE_AGENT,
    "tool": semconv.EXECUTE_TOOL,
    "task": NOTHING,
}
REQUEST_TYPES = {
    "chat": semconv.CHAT,
    "completion": semconv.TEXT_COMPLETION,
    "embedding": semconv.EMBEDDINGS,
    "rerank": NOTHING,
}
_HANDOFF = ("gen_ai.operation.name", "handoff")
_INSTRUMENTED = [
    "agno",
    "alephalpha",
    "anthropic",
    "bedrock",
    "chromadb",
    "cohere",
    "crewai",
    "google_generativeai",
    "groq",
    "haystack",
    "lancedb",
    "langchain",
    "llamaindex",
    "marqo",
    "mcp",
    "milvus",
    "mistralai",
    "ollama",
    "openai",
    "pinecone",
    "qdrant",
    "replicate",
    "sagemaker",
    "together",
    "transformers",
    "voyageai",
    "watsonx",
    "weaviate",
    "writer",
]
_ON_AGENTS = frozenset({semconv.INVOKE_AGENT, semconv.CREATE_AGENT})
_PROPERTIES = "traceloop.association.properties."


def _told_model(text: str) -> str | None:
    return model(text) or None


def _told_provider(text: str) -> str | None:
    return provider(text) or None


DIALECT = Dialect(
    name="traceloop",
    scopes=frozenset(
        {
            "traceloop.tracer",
            *(f"opentelemetry.instrumentation.{library}" for library in _INSTRUMENTED),
            *(f"opentelemetry.instrumentation.{library}." for library in _INSTRUMENTED),
        }
    ),
    # Not traceloop.association. and traceloop.workflow.: its SDK writes these on every span of the process.
    markers=frozenset({"traceloop.span.kind", "traceloop.entity.", "llm.request.type"}),
    columns={
        **otel_genai.COLUMNS,
        "operation": (
            attribute("traceloop.span.kind", always("handoff"), where=_HANDOFF),
            attribute("traceloop.span.kind", words(KINDS)),
            otel_genai.OPERATION,
            attribute("llm.request.type", words(REQUEST_TYPES)),
        ),
        "agent_name": (
            Source(semconv.AGENT_NAME, on=_ON_AGENTS),
            Source("traceloop.entity.name", on=_ON_AGENTS),
            span_name(matching(r"(.+)\.agent"), on=semconv.INVOKE_AGENT),
        ),
        "conversation_id": (
            semconv.CONVERSATION_ID,
            f"{_PROPERTIES}conversation_id",
            f"{_PROPERTIES}thread_id",
            f"{_PROPERTIES}session_id",
            "traceloop.correlation.id",
            "session.id",
        ),
        "workflow_name": (semconv.WORKFLOW_NAME, "traceloop.workflow.name"),
        "tool_name": (
            attribute(semconv.TOOL_NAME, on=semconv.EXECUTE_TOOL),
            attribute("traceloop.entity.name", on=semconv.EXECUTE_TOOL),
            span_name(matching(r"(.+)\.tool"), on=semconv.EXECUTE_TOOL),
        ),
        # Of LangChain it writes "unknown" and "langgraph", and what LangChain says beside it.
        "provider_name": (
            attribute(semconv.PROVIDER_NAME, _told_provider),
            attribute("gen_ai.system", _told_provider),
            attribute(f"{_PROPERTIES}ls_provider"),
        ),
        "request_model": (
            attribute(semconv.REQUEST_MODEL, _told_model),
            attribute("llm.request.model"),
            Source(f"{_PROPERTIES}ls_model_name", on=semconv.MODEL_OPERATIONS),
        ),
        "response_model": (semconv.RESPONSE_MODEL, "llm.response.model"),
        "finish_reasons": (*otel_genai.COLUMNS["finish_reasons"], "llm.response.finish_reason"),
        "input_tokens": (*otel_genai.COLUMNS["input_tokens"], "llm.usage.prompt_tokens"),
        "output_tokens": (*otel_genai.COLUMNS["output_tokens"], "llm.usage.completion_tokens"),
        "cache_read_tokens": (*otel_genai.COLUMNS["cache_read_tokens"], "llm.usage.cache_read_input_tokens"),
        "cache_write_tokens": (*otel_genai.COLUMNS["cache_write_tokens"], "llm.usage.cache_creation_input_tokens"),
    },
    contents=frozenset(
        {
            "traceloop.entity.input",
            "traceloop.entity.output",
            "traceloop.prompt.template_variables",
            "gen_ai.task.input",
            "gen_ai.task.output",
            "llm.request.functions.*",
            "llm.prompts.*",
            "llm.completions.*",
            "mcp.request.argument",
            "mcp.response.value",
        }
    ),
)
