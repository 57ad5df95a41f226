"""OpenTelemetry GenAI conventions: the current names, and the older ones that are still on the wire.

Names: open-telemetry/semantic-conventions-genai (2026-08) and core up to v1.41; older spellings from its
migration guide. Also the AWS distribution's instrumentations, which write the same, and openai-agents-v2, whose
placeholders name no agent.
"""

from __future__ import annotations

from surefoot.instrumentation import semconv
from surefoot.processors.genai.dialects.dialect import HANDOFF, NOTHING, Columns, Dialect, attribute
from surefoot.processors.genai.dialects.reading import words

# Words that stand in gen_ai.operation.name and are not the conventions'. All others are passed on: the list is open.
OPERATIONS: dict[str, str] = {
    "unknown": NOTHING,
    "execute_task": NOTHING,
    "experiment": NOTHING,
    "execute_event_loop_cycle": NOTHING,
    "agent_handoff": HANDOFF,
    "invoke_swarm": semconv.INVOKE_WORKFLOW,
    "invoke_graph": semconv.INVOKE_WORKFLOW,
    "llm_call": semconv.CHAT,
    "tool_call": semconv.EXECUTE_TOOL,
    "agent_call": semconv.INVOKE_AGENT,
}
OPERATION = attribute(semconv.OPERATION_NAME, words(OPERATIONS, others=True))

COLUMNS: Columns = {
    "operation": (OPERATION,),
    "agent_name": (semconv.AGENT_NAME,),
    "agent_id": (semconv.AGENT_ID,),
    "agent_version": (semconv.AGENT_VERSION,),
    "conversation_id": (semconv.CONVERSATION_ID, "session.id"),
    "workflow_name": (semconv.WORKFLOW_NAME,),
    "tool_name": (semconv.TOOL_NAME,),
    "tool_call_id": (semconv.TOOL_CALL_ID,),
    "tool_type": (semconv.TOOL_TYPE,),
    "provider_name": (semconv.PROVIDER_NAME, "gen_ai.system"),
    "request_model": (semconv.REQUEST_MODEL,),
    "response_model": (semconv.RESPONSE_MODEL,),
    "response_id": (semconv.RESPONSE_ID,),
    "finish_reasons": (semconv.FINISH_REASONS, "gen_ai.response.finish_reason", "gen_ai.response.stop_reason"),
    "output_type": (semconv.OUTPUT_TYPE, "gen_ai.openai.request.response_format"),
    "time_to_first_chunk": (semconv.TIME_TO_FIRST_CHUNK,),
    "input_tokens": (semconv.INPUT_TOKENS, "gen_ai.usage.prompt_tokens"),
    "output_tokens": (semconv.OUTPUT_TOKENS, "gen_ai.usage.completion_tokens"),
    "cache_read_tokens": (semconv.CACHE_READ_TOKENS, "gen_ai.usage.cache_read_input_tokens"),
    "cache_write_tokens": (
        semconv.CACHE_WRITE_TOKENS,
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.cache_creation_input_tokens",
        "gen_ai.usage.cache_write_input_tokens",
    ),
    "reasoning_tokens": (semconv.REASONING_TOKENS, "gen_ai.usage.reasoning_tokens"),
}

# Instrumentations write these beside their own. Not gen_ai.prompt.name and .version.
CONTENTS = semconv.CONTENT_ATTRIBUTES | {
    "gen_ai.prompt",
    "gen_ai.prompt.[0-9]*",
    "gen_ai.prompt.variable.*",
    "gen_ai.completion",
    "gen_ai.completion.[0-9]*",
    "gen_ai.content.prompt",
    "gen_ai.content.completion",
    "gen_ai.input_messages",
    "gen_ai.output_messages",
    "gen_ai.request.messages",
    "gen_ai.event.content",
    "gen_ai.retrieval.query.text",
    "gen_ai.retrieval.documents",
    "gen_ai.memory.query.text",
    "gen_ai.memory.records",
}

DIALECT = Dialect(
    name="otel_genai",
    scopes=frozenset(
        {
            "surefoot",
            "opentelemetry.instrumentation.genai.",
            "opentelemetry.instrumentation.google_genai",
            "opentelemetry.instrumentation.google_genai.",
            "opentelemetry.instrumentation.openai_v2",
            "amazon.opentelemetry.distro.instrumentation.",
        }
    ),
    markers=frozenset({"gen_ai."}),
    columns=COLUMNS,
    contents=CONTENTS,
)

# openai-agents-v2 has the scope name of Traceloop's instrumentation, whose spans have markers.
PLACEHOLDERS = Dialect(
    name="otel_genai",
    shared_scopes=frozenset({"opentelemetry.instrumentation.openai_agents"}),
    columns={
        **COLUMNS,
        "agent_name": (attribute(semconv.AGENT_NAME, words({"OpenAI Agent": NOTHING}, others=True)),),
        "agent_id": (attribute(semconv.AGENT_ID, words({"agent": NOTHING}, others=True)),),
    },
)
