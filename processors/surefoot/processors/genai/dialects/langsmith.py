"""LangSmith's OpenTelemetry export: LangChain runs, with the metadata of each as attributes.

Agents are chains: only their metadata says so, and it stands on all that run inside of one. So a chain is an agent if
it bears the agent's name; where none does, the topmost one stands for the run. ``langsmith.trace.session_id`` is the
project, not a session.
"""

from __future__ import annotations

from surefoot.instrumentation import semconv
from surefoot.processors.genai.dialects import otel_genai
from surefoot.processors.genai.dialects.dialect import CHAIN, NOTHING, Dialect, Source, attribute, span_name
from surefoot.processors.genai.dialects.reading import always, json_field, words

KINDS = {
    "llm": semconv.CHAT,
    "tool": semconv.EXECUTE_TOOL,
    "retriever": semconv.RETRIEVAL,
    "embedding": semconv.EMBEDDINGS,
    "chain": CHAIN,
    "prompt": NOTHING,
    "parser": NOTHING,
}
_ON_AGENTS = frozenset({semconv.INVOKE_AGENT, CHAIN})
_INPUT_DETAILS = "gen_ai.usage.input_token_details"

DIALECT = Dialect(
    name="langsmith",
    scopes=frozenset({"langsmith"}),
    markers=frozenset({"langsmith."}),
    columns={
        **otel_genai.COLUMNS,
        "operation": (
            Source(
                "langsmith.metadata.lc_agent_name",
                always(semconv.INVOKE_AGENT),
                where=("langsmith.span.kind", "chain"),
                named=str,
            ),
            otel_genai.OPERATION,
            attribute("langsmith.span.kind", words(KINDS)),
        ),
        "agent_name": (
            semconv.AGENT_NAME,
            Source("langsmith.metadata.lc_agent_name", on=_ON_AGENTS),
            Source("langsmith.agent.name", on=_ON_AGENTS),
        ),
        "conversation_id": (
            semconv.CONVERSATION_ID,
            "langsmith.metadata.conversation_id",
            "langsmith.metadata.thread_id",
            "langsmith.thread_id",
            "langsmith.metadata.session_id",
            "session.id",
        ),
        "workflow_name": (semconv.WORKFLOW_NAME, attribute("langsmith.trace.name", on=CHAIN)),
        "tool_name": (
            attribute(semconv.TOOL_NAME, on=semconv.EXECUTE_TOOL),
            attribute("langsmith.tool.name", on=semconv.EXECUTE_TOOL),
            span_name(on=semconv.EXECUTE_TOOL),
        ),
        "tool_call_id": (semconv.TOOL_CALL_ID, "langsmith.tool.id"),
        "provider_name": ("langsmith.metadata.ls_provider", *otel_genai.COLUMNS["provider_name"]),
        "request_model": (
            attribute(semconv.REQUEST_MODEL),
            Source("langsmith.metadata.ls_model_name", on=semconv.MODEL_OPERATIONS),
            Source("langsmith.model_name", on=semconv.MODEL_OPERATIONS),
        ),
        "input_tokens": (
            *otel_genai.COLUMNS["input_tokens"],
            "langsmith.usage.prompt_tokens",
            "langsmith.token_usage.prompt_tokens",
        ),
        "output_tokens": (
            *otel_genai.COLUMNS["output_tokens"],
            "langsmith.usage.completion_tokens",
            "langsmith.token_usage.completion_tokens",
        ),
        "cache_read_tokens": (
            *otel_genai.COLUMNS["cache_read_tokens"],
            attribute(_INPUT_DETAILS, json_field("cache_read")),
        ),
        "cache_write_tokens": (
            *otel_genai.COLUMNS["cache_write_tokens"],
            attribute(_INPUT_DETAILS, json_field("cache_creation")),
        ),
        "reasoning_tokens": (
            *otel_genai.COLUMNS["reasoning_tokens"],
            attribute("gen_ai.usage.output_token_details", json_field("reasoning")),
        ),
    },
    contents=frozenset(
        {
            "langsmith.inputs",
            "langsmith.outputs",
            "langsmith.tool.arguments",
            "langsmith.tool.result",
            "gen_ai.serialized.doc",
            "gen_ai.serialized.signature",
        }
    ),
)
