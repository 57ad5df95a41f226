"""Langfuse's SDK: ``langfuse.observation.*``, usage as JSON, names as span names.

Its kinds of usage exclude each other, so what was read from or written to a cache is added to the input.
"""

from __future__ import annotations

from typing import Any, TypeGuard

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
from surefoot.processors.genai.dialects.reading import error_name, json_field, parsed, words

TYPES = {
    "generation": semconv.CHAT,
    "embedding": semconv.EMBEDDINGS,
    "retriever": semconv.RETRIEVAL,
    "tool": semconv.EXECUTE_TOOL,
    "agent": semconv.INVOKE_AGENT,
    "chain": CHAIN,
    "evaluator": EVALUATE,
    "guardrail": GUARDRAIL,
    "span": NOTHING,
    "event": NOTHING,
}
_USAGE = "langfuse.observation.usage_details"
_ERROR = ("langfuse.observation.level", "ERROR")


def input_tokens(text: str) -> str | None:
    """All input tokens of a usage: OpenAI's total as it is, else the sum of the kinds."""
    usage = parsed(text)
    if not isinstance(usage, dict):
        return None
    whole = usage.get("prompt_tokens")
    if _is_count(whole):
        return str(whole)
    first = "input_tokens" if "input_tokens" in usage else "input"
    parts = [usage.get(first)]
    parts += [count for kind, count in usage.items() if kind.startswith("input_") and kind != "input_tokens"]
    parts += [usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")]
    counts: list[int] = [count for count in parts if _is_count(count)]
    return str(sum(counts)) if counts else None


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**15


def _error_prefix(message: str) -> str:
    return error_name(message) if ":" in message else "_OTHER"


DIALECT = Dialect(
    name="langfuse",
    scopes=frozenset({"langfuse-sdk"}),
    markers=frozenset({"langfuse.observation."}),  # langfuse.trace. stands on every span of the process
    columns={
        **otel_genai.COLUMNS,
        "operation": (attribute("langfuse.observation.type", words(TYPES)), otel_genai.OPERATION),
        "agent_name": (semconv.AGENT_NAME, span_name(on=semconv.INVOKE_AGENT)),
        "workflow_name": (semconv.WORKFLOW_NAME, "langfuse.trace.name"),
        "tool_name": (semconv.TOOL_NAME, span_name(on=semconv.EXECUTE_TOOL)),
        "request_model": ("langfuse.observation.model.name", semconv.REQUEST_MODEL),
        "input_tokens": (attribute(_USAGE, input_tokens), *otel_genai.COLUMNS["input_tokens"]),
        "output_tokens": (
            attribute(_USAGE, json_field("output", "output_tokens", "completion_tokens")),
            *otel_genai.COLUMNS["output_tokens"],
        ),
        "cache_read_tokens": (
            attribute(_USAGE, json_field("cache_read_input_tokens", "input_cache_read", "input_cached_tokens")),
            *otel_genai.COLUMNS["cache_read_tokens"],
        ),
        "cache_write_tokens": (
            attribute(_USAGE, json_field("cache_creation_input_tokens", "input_cache_creation")),
            *otel_genai.COLUMNS["cache_write_tokens"],
        ),
        "error_type": (
            attribute(semconv.ERROR_TYPE),
            attribute("langfuse.observation.status_message", _error_prefix, where=_ERROR),
            attribute("langfuse.observation.level", words({"ERROR": "_OTHER"})),
        ),
    },
    contents=frozenset(
        {
            "langfuse.observation.input",
            "langfuse.observation.output",
            "langfuse.trace.input",
            "langfuse.trace.output",
        }
    ),
)
