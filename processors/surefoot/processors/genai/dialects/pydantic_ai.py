"""pydantic-ai, which emits by itself: the conventions, with its own older names beside them.

``gen_ai.aggregated_usage.*`` on its agent span is a sum over model calls and is not a call's usage, so it is no column.
"""

from __future__ import annotations

from surefoot.instrumentation import semconv
from surefoot.processors.genai.dialects import otel_genai
from surefoot.processors.genai.dialects.dialect import Dialect, span_name
from surefoot.processors.genai.dialects.reading import words

DIALECT = Dialect(
    name="pydantic_ai",
    scopes=frozenset({"pydantic-ai"}),
    markers=frozenset({"pydantic_ai."}),
    columns={
        **otel_genai.COLUMNS,
        "operation": (
            otel_genai.OPERATION,
            span_name(words({"agent run": semconv.INVOKE_AGENT, "running tool": semconv.EXECUTE_TOOL})),
        ),
        "agent_name": (semconv.AGENT_NAME, "agent_name"),
        "request_model": (semconv.REQUEST_MODEL, "model_name"),
        "time_to_first_chunk": (semconv.TIME_TO_FIRST_CHUNK, "gen_ai.client.operation.time_to_first_chunk"),
    },
    contents=frozenset(
        {
            "all_messages_events",
            "events",
            "final_result",
            "model_request_parameters",  # holds the instructions
            "pydantic_ai.all_messages",
            "tool_arguments",
            "tool_response",
        }
    ),
)
