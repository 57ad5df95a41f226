"""MLflow tracing: ``mlflow.spanType`` and friends, where every value is JSON-encoded text."""

from __future__ import annotations

from surefoot.instrumentation import semconv
from surefoot.processors.genai.dialects import otel_genai
from surefoot.processors.genai.dialects.dialect import (
    CHAIN,
    EVALUATE,
    GUARDRAIL,
    NOTHING,
    Dialect,
    attribute,
    span_name,
)
from surefoot.processors.genai.dialects.reading import json_field, words

TYPES = {
    "CHAT_MODEL": semconv.CHAT,
    "LLM": semconv.CHAT,
    "TOOL": semconv.EXECUTE_TOOL,
    "AGENT": semconv.INVOKE_AGENT,
    "RETRIEVER": semconv.RETRIEVAL,
    "EMBEDDING": semconv.EMBEDDINGS,
    "WORKFLOW": semconv.INVOKE_WORKFLOW,
    "CHAIN": CHAIN,
    "EVALUATOR": EVALUATE,
    "GUARDRAIL": GUARDRAIL,
    **dict.fromkeys(("TASK", "PARSER", "RERANKER", "MEMORY", "UNKNOWN"), NOTHING),
}
_USAGE = "mlflow.chat.tokenUsage"

DIALECT = Dialect(
    name="mlflow",
    scopes=frozenset({"mlflow", "mlflow."}),
    markers=frozenset({"mlflow.spanType"}),
    columns={
        **otel_genai.COLUMNS,
        "operation": (attribute("mlflow.spanType", words(TYPES)), otel_genai.OPERATION),
        "agent_name": (semconv.AGENT_NAME, span_name(on=semconv.INVOKE_AGENT)),
        "conversation_id": (semconv.CONVERSATION_ID, "mlflow.trace.session", "session.id"),
        "workflow_name": (semconv.WORKFLOW_NAME, "mlflow.traceName"),
        "tool_name": (semconv.TOOL_NAME, span_name(on=semconv.EXECUTE_TOOL)),
        "provider_name": (*otel_genai.COLUMNS["provider_name"], "mlflow.llm.provider"),
        "request_model": (semconv.REQUEST_MODEL, "mlflow.llm.model"),
        "input_tokens": (attribute(_USAGE, json_field("input_tokens")), *otel_genai.COLUMNS["input_tokens"]),
        "output_tokens": (attribute(_USAGE, json_field("output_tokens")), *otel_genai.COLUMNS["output_tokens"]),
        "cache_read_tokens": (
            attribute(_USAGE, json_field("cache_read_input_tokens")),
            *otel_genai.COLUMNS["cache_read_tokens"],
        ),
        "cache_write_tokens": (
            attribute(_USAGE, json_field("cache_creation_input_tokens")),
            *otel_genai.COLUMNS["cache_write_tokens"],
        ),
    },
    contents=frozenset(
        {
            "mlflow.spanInputs",
            "mlflow.spanOutputs",
            "mlflow.chat.messages",
            "mlflow.chat.tools",
            "mlflow.traceInputs",
            "mlflow.traceOutputs",
            "mlflow.trace.request",
            "mlflow.trace.response",
        }
    ),
)
