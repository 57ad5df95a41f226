"""OpenInference: span kinds, ``llm.*`` and ``input.value``; the conventions' names beside them when it writes both.

What it writes in the conventions' names is right but for the request model, which is the response's. An AGENT without
``agent.name`` has its name in the span's, except the root that openai-agents adds: that one has none.
"""

from __future__ import annotations

import re

from surefoot.instrumentation import semconv
from surefoot.processors.genai.dialects import otel_genai
from surefoot.processors.genai.dialects.dialect import (
    CHAIN,
    EVALUATE,
    GUARDRAIL,
    HANDOFF,
    NOTHING,
    Columns,
    Dialect,
    Source,
    attribute,
    span_name,
)
from surefoot.processors.genai.dialects.reading import always, json_field, matching, words

KINDS = {
    "LLM": semconv.CHAT,
    "EMBEDDING": semconv.EMBEDDINGS,
    "RETRIEVER": semconv.RETRIEVAL,
    "TOOL": semconv.EXECUTE_TOOL,
    "AGENT": semconv.INVOKE_AGENT,
    "CHAIN": CHAIN,
    "EVALUATOR": EVALUATE,
    "GUARDRAIL": GUARDRAIL,
    "RERANKER": NOTHING,
    "PROMPT": NOTHING,
    "UNKNOWN": NOTHING,
}
_KIND = "openinference.span.kind"
_LLM, _TOOL = (_KIND, "LLM"), (_KIND, "TOOL")
_AZURE = ("llm.provider", "azure")
_AGENT_NAMES = (
    attribute(semconv.AGENT_NAME),
    attribute("agent.name", on=semconv.INVOKE_AGENT),
    attribute("graph.node.name", on=semconv.INVOKE_AGENT),
)


def _lc_agent_name(metadata: str) -> str | None:
    found = re.search(r'"lc_agent_name": "([^"\\]+)"', metadata)
    return found[1] if found else None


def _of_agent_node(metadata: str) -> str | None:
    return CHAIN if '"langgraph_node": "agent"' in metadata else None


COLUMNS: Columns = {
    **otel_genai.COLUMNS,
    "operation": (
        # LangGraph's node for the model is called "agent", which makes it an AGENT in each turn.
        attribute("metadata", _of_agent_node, where=(None, "agent")),
        otel_genai.OPERATION,
        span_name(lambda name: HANDOFF if name.startswith("handoff to ") else None, where=_TOOL),
        attribute("llm.prompts", always(semconv.TEXT_COMPLETION), where=_LLM),
        attribute("llm.prompts.0.prompt.text", always(semconv.TEXT_COMPLETION), where=_LLM),
        # A LangChain agent is a CHAIN that bears the agent's name; what runs inside of it has the name in its metadata.
        Source("metadata", always(semconv.INVOKE_AGENT), where=(_KIND, "CHAIN"), named=_lc_agent_name),
        attribute(_KIND, words(KINDS)),
    ),
    "agent_name": (
        *_AGENT_NAMES,
        span_name(matching(r"agent_run \[(.+)\]"), on=semconv.INVOKE_AGENT),  # google-adk
        span_name(matching(r"(.+)\.a?run"), on=semconv.INVOKE_AGENT),  # smolagents, agno
        span_name(on=semconv.INVOKE_AGENT),
    ),
    "conversation_id": (
        attribute(semconv.CONVERSATION_ID),
        attribute("metadata", json_field("thread_id", "conversation_id")),
        attribute("session.id"),
    ),
    "workflow_name": (attribute(semconv.WORKFLOW_NAME), span_name(on=CHAIN)),
    "tool_name": (
        attribute(semconv.TOOL_NAME, on=semconv.EXECUTE_TOOL),
        attribute("tool.name", on=semconv.EXECUTE_TOOL),
        span_name(on=semconv.EXECUTE_TOOL),
    ),
    "tool_call_id": (
        attribute(semconv.TOOL_CALL_ID, on=semconv.EXECUTE_TOOL),
        *(attribute(key, on=semconv.EXECUTE_TOOL) for key in ("tool.id", "tool_call.id", "tool.call_id")),
    ),
    "provider_name": (
        attribute("llm.system", words({"openai": "azure.ai.openai"}), where=_AZURE),
        attribute(semconv.PROVIDER_NAME, words({"azure": NOTHING}, others=True)),
        attribute("llm.provider", words({"azure": "azure.ai.inference"})),
        attribute("llm.system", words({"vertexai": "gcp.vertex_ai"})),
        attribute("llm.provider"),
        attribute("llm.system"),
    ),
    "request_model": (
        attribute("llm.request.model_name"),
        attribute("llm.invocation_parameters", json_field("model")),
        attribute("embedding.invocation_parameters", json_field("model")),
        attribute(semconv.REQUEST_MODEL),
        attribute("llm.model_name"),
        attribute("embedding.model_name"),
    ),
    "response_model": ("llm.response.model_name", semconv.RESPONSE_MODEL),
    "finish_reasons": (semconv.FINISH_REASONS, "llm.finish_reason"),
    "input_tokens": (semconv.INPUT_TOKENS, "llm.token_count.prompt"),
    "output_tokens": (semconv.OUTPUT_TOKENS, "llm.token_count.completion"),
    "cache_read_tokens": (
        semconv.CACHE_READ_TOKENS,
        "llm.token_count.prompt_details.cache_read",
        "llm.token_count.prompt_details.cache_input",
    ),
    "cache_write_tokens": (
        *otel_genai.COLUMNS["cache_write_tokens"],
        "llm.token_count.prompt_details.cache_write",
    ),
    "reasoning_tokens": (semconv.REASONING_TOKENS, "llm.token_count.completion_details.reasoning"),
}

DIALECT = Dialect(
    name="openinference",
    scopes=frozenset({"openinference.instrumentation."}),
    markers=frozenset({_KIND}),
    columns=COLUMNS,
    contents=frozenset(
        {
            "input.value",
            "output.value",
            "llm.input_messages.*",
            "llm.output_messages.*",
            "llm.input_messages",
            "llm.output_messages",
            "llm.prompts",
            "llm.prompts.*",
            "llm.choices.*",
            "llm.tools",
            "llm.tools.*",
            "llm.function_call",
            "llm.prompt_template.variables",
            "llm.prompt_template.template",
            "embedding.text",
            "embedding.vector",
            "embedding.embeddings.*",
            "retrieval.documents.*",
            "reranker.*_documents.*",
            "reranker.query",
            "tool_call.function.arguments",
            "tool.parameters",  # of strands the arguments, else their schema
            "document.content",
            "message.content*",
            "crew_agents",
            "crew_inputs",
            "crew_tasks",
            "smolagents.task",
        }
    ),
)

# The root of openai-agents is an AGENT named after the workflow, not after an agent.
OPENAI_AGENTS = Dialect(
    name="openinference",
    scopes=frozenset({"openinference.instrumentation.openai_agents"}),
    columns={**COLUMNS, "agent_name": (*_AGENT_NAMES, attribute("graph.node.id", on=semconv.INVOKE_AGENT))},
)

# "<role>.<task>._execute_core", where a role and a task may hold dots: the node's id is the role.
CREWAI = Dialect(
    name="openinference",
    scopes=frozenset({"openinference.instrumentation.crewai"}),
    columns={
        **COLUMNS,
        "agent_name": (
            *_AGENT_NAMES,
            attribute("graph.node.id", on=semconv.INVOKE_AGENT),
            span_name(matching(r"([^.]+)\..*"), on=semconv.INVOKE_AGENT),
            span_name(on=semconv.INVOKE_AGENT),
        ),
    },
    contents=DIALECT.contents,
)
