"""Logfire's own instrumentations: what a span is stands in the template of its message; and pydantic-evals.

Names are bare attributes, told apart by what the span is. A streamed call is two spans in two traces, the second a log
with the usage.
"""

from __future__ import annotations

from surefoot.instrumentation import semconv
from surefoot.processors.genai.dialects import otel_genai
from surefoot.processors.genai.dialects.dialect import EVALUATE, HANDOFF, NOTHING, Dialect, attribute
from surefoot.processors.genai.dialects.reading import always, json_field, words

_TEMPLATES = {
    "agent run": semconv.INVOKE_AGENT,
    "function": semconv.EXECUTE_TOOL,
    "handoff": HANDOFF,
    "openai agents trace": semconv.INVOKE_WORKFLOW,
    "chat completion with": semconv.CHAT,
    "responses api": semconv.CHAT,
    "streaming response from": semconv.CHAT,
    "message with": semconv.CHAT,
    "completion with": semconv.TEXT_COMPLETION,
    "embedding creation with": semconv.EMBEDDINGS,
}


def _operation(template: str) -> str | None:
    low = template.lower()
    return next((operation for start, operation in _TEMPLATES.items() if low.startswith(start)), None)


DIALECT = Dialect(
    name="logfire",
    scopes=frozenset({"logfire", "logfire."}),
    columns={
        **otel_genai.COLUMNS,
        "operation": (otel_genai.OPERATION, attribute("logfire.msg_template", _operation)),
        "agent_name": (
            semconv.AGENT_NAME,
            attribute("name", on=semconv.INVOKE_AGENT),
            attribute("agent_name", on=semconv.INVOKE_AGENT),
        ),
        "conversation_id": (
            *otel_genai.COLUMNS["conversation_id"],
            attribute("group_id", words({"null": NOTHING}, others=True)),
        ),
        "workflow_name": (semconv.WORKFLOW_NAME, attribute("name", on=semconv.INVOKE_WORKFLOW)),
        "tool_name": (
            attribute(semconv.TOOL_NAME, on=semconv.EXECUTE_TOOL),
            attribute("name", on=semconv.EXECUTE_TOOL),
        ),
        "request_model": (semconv.REQUEST_MODEL, attribute("request_data", json_field("model"))),
        "error_type": (
            attribute(semconv.ERROR_TYPE),
            attribute("logfire.level_num", words({"17": "_OTHER", "21": "_OTHER"})),
        ),
    },
    contents=frozenset(
        {
            "error",  # a failed tool's holds its arguments
            "events",
            "input",
            "output",
            "inputs",
            "output_guardrails",
            "raw_input",
            "request_data",
            "response",
            "response_data",
            "combined_chunk_content",
            "messages",
            "metadata",
        }
    ),
)

EVALS = Dialect(
    name="pydantic_evals",
    scopes=frozenset({"pydantic-evals"}),
    columns={
        **otel_genai.COLUMNS,
        "operation": (otel_genai.OPERATION, attribute("evaluator_name", always(EVALUATE))),
    },
    contents=frozenset({"inputs", "output", "expected_output", "metadata"}),
)
