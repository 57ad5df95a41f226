"""Vercel AI SDK (v4 to v6): ``ai.operationId`` says what a span is; the ``do...`` spans are the model calls.

The outer span of a call, with its loop of steps and tools, is the agent. Version 7 writes the conventions.
"""

from __future__ import annotations

from surefoot.instrumentation import semconv
from surefoot.processors.genai.dialects import otel_genai
from surefoot.processors.genai.dialects.dialect import Dialect, attribute
from surefoot.processors.genai.dialects.reading import provider, seconds_of_millis, words

_CALLS = ("generateText", "streamText", "generateObject", "streamObject")
OPERATIONS = {
    **{f"ai.{call}": semconv.INVOKE_AGENT for call in _CALLS},
    **{f"ai.{call}.do{inner}": semconv.CHAT for call in _CALLS for inner in ("Generate", "Stream")},
    "ai.toolCall": semconv.EXECUTE_TOOL,
    "ai.embed.doEmbed": semconv.EMBEDDINGS,
    "ai.embedMany.doEmbed": semconv.EMBEDDINGS,
}
_PROVIDERS = {
    "google.vertex": "gcp.vertex_ai",
    "google.generative-ai": "gcp.gemini",
    "azure-openai": "azure.ai.openai",
    "azure": "azure.ai.openai",
}


def _provider(text: str) -> str:
    """``openai.chat``, ``google.vertex.chat``, ``amazon-bedrock``: a vendor, and mostly the kind of its interface."""
    for start, name in _PROVIDERS.items():
        if text.startswith(start):
            return name
    return provider(text.partition(".")[0])


_KIND = attribute("ai.operationId", words(OPERATIONS))
_METADATA = "ai.telemetry.metadata."

DIALECT = Dialect(
    name="vercel_ai",
    scopes=frozenset({"ai"}),
    markers=frozenset({"ai.operationId"}),
    columns={
        **otel_genai.COLUMNS,
        "operation": (_KIND, otel_genai.OPERATION),
        "agent_name": (
            attribute(semconv.AGENT_NAME),
            attribute("ai.telemetry.functionId", on=semconv.INVOKE_AGENT),
            attribute("resource.name", on=semconv.INVOKE_AGENT),
        ),
        "conversation_id": (
            semconv.CONVERSATION_ID,
            *(f"{_METADATA}{name}" for name in ("conversationId", "threadId", "sessionId", "chatId")),
            "session.id",
        ),
        "tool_name": ("ai.toolCall.name", semconv.TOOL_NAME),
        "tool_call_id": ("ai.toolCall.id", semconv.TOOL_CALL_ID),
        "provider_name": (
            attribute("ai.model.provider", _provider),
            attribute(semconv.PROVIDER_NAME, _provider),
            attribute("gen_ai.system", _provider),
        ),
        "request_model": (semconv.REQUEST_MODEL, "ai.model.id"),
        "response_model": (semconv.RESPONSE_MODEL, "ai.response.model"),
        "response_id": (semconv.RESPONSE_ID, "ai.response.id"),
        "finish_reasons": (semconv.FINISH_REASONS, "ai.response.finishReason", "ai.finishReason"),
        "time_to_first_chunk": (
            attribute(semconv.TIME_TO_FIRST_CHUNK),
            attribute("ai.response.msToFirstChunk", seconds_of_millis),
        ),
        "input_tokens": (semconv.INPUT_TOKENS, "ai.usage.inputTokens", "ai.usage.promptTokens", "ai.usage.tokens"),
        "output_tokens": (semconv.OUTPUT_TOKENS, "ai.usage.outputTokens", "ai.usage.completionTokens"),
        "cache_read_tokens": (semconv.CACHE_READ_TOKENS, "ai.usage.cachedInputTokens"),
        "reasoning_tokens": (semconv.REASONING_TOKENS, "ai.usage.reasoningTokens"),
    },
    contents=frozenset(
        {
            "ai.prompt",
            "ai.prompt.*",
            "ai.request.body",
            "ai.response.body",
            "ai.response.object",
            "ai.response.reasoning",
            "ai.response.text",
            "ai.response.toolCalls",
            "ai.result.*",
            "ai.toolCall.args",
            "ai.toolCall.input",
            "ai.toolCall.output",
            "ai.toolCall.result",
            "ai.value",
            "ai.values",
            "ai.embedding",
            "ai.embeddings",
        }
    ),
)
