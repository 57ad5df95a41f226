"""Frameworks that emit by themselves and write the conventions, each with a few things of its own.

Google ADK (older versions put the operation into the span's name), Strands, Microsoft Agent Framework, the SDK of
Anthropic, MCP and fastmcp, AWS Bedrock AgentCore.
"""

from __future__ import annotations

from surefoot.instrumentation import semconv
from surefoot.processors.genai.dialects import otel_genai
from surefoot.processors.genai.dialects.dialect import NOTHING, Dialect, attribute, span_name
from surefoot.processors.genai.dialects.reading import always, matching, words


def _adk_operation(name: str) -> str | None:
    if name.startswith("execute_tool "):
        return semconv.EXECUTE_TOOL
    if name.startswith("agent_run ["):
        return semconv.INVOKE_AGENT
    return {"call_llm": semconv.CHAT, "invocation": semconv.INVOKE_WORKFLOW}.get(name)


GOOGLE_ADK = Dialect(
    name="google_adk",
    scopes=frozenset({"gcp.vertex.agent"}),
    columns={
        **otel_genai.COLUMNS,
        "operation": (otel_genai.OPERATION, span_name(_adk_operation)),
        "agent_name": (semconv.AGENT_NAME, span_name(matching(r"agent_run \[(.+)\]"), on=semconv.INVOKE_AGENT)),
        "conversation_id": (semconv.CONVERSATION_ID, "gcp.vertex.agent.session_id", "session.id"),
        "tool_name": (
            semconv.TOOL_NAME,
            span_name(matching(r"execute_tool \[?(.+?)\]?"), on=semconv.EXECUTE_TOOL),
        ),
        "tool_call_id": (attribute(semconv.TOOL_CALL_ID, words({"<not specified>": NOTHING}, others=True)),),
    },
    contents=frozenset(
        {
            "gcp.vertex.agent.llm_request",
            "gcp.vertex.agent.llm_response",
            "gcp.vertex.agent.tool_call_args",
            "gcp.vertex.agent.tool_response",
            "gcp.vertex.agent.data",
        }
    ),
)

STRANDS = Dialect(
    name="strands",
    scopes=frozenset({"strands.telemetry.tracer", "strands-agents"}),
    columns={
        **otel_genai.COLUMNS,
        "error_type": (
            attribute(semconv.ERROR_TYPE),
            attribute("strands.cancellation.type", always("CancelledError")),  # its status is unset
            attribute("gen_ai.tool.status", words({"error": "_OTHER"})),
        ),
    },
    contents=frozenset({"content", "message", "tool.result", "tool_result"}),
)

AGENT_FRAMEWORK = Dialect(
    name="agent_framework",
    scopes=frozenset({"agent_framework", "agent_framework."}),
    columns={
        **otel_genai.COLUMNS,
        "operation": (otel_genai.OPERATION, span_name(words({"workflow.run": semconv.INVOKE_WORKFLOW}))),
        "agent_id": (),  # new with each process
        "workflow_name": (semconv.WORKFLOW_NAME, "workflow.name"),
    },
    contents=frozenset({"workflow.definition", "message.content"}),
)

ANTHROPIC = Dialect(
    name="anthropic_sdk",
    scopes=frozenset({"com.anthropic.sdk.", "com.anthropic.claude-platform"}),
    columns={**otel_genai.COLUMNS, "finish_reasons": (semconv.FINISH_REASONS, "anthropic.message.stop_reason")},
)


def _mcp_operation(method: str) -> str | None:
    return semconv.EXECUTE_TOOL if method == "tools/call" else None


MCP = Dialect(
    name="mcp",
    scopes=frozenset({"fastmcp", "mcp-python-sdk", "mcp"}),
    markers=frozenset({"mcp.method.name"}),
    columns={
        **otel_genai.COLUMNS,
        "operation": (otel_genai.OPERATION, attribute("mcp.method.name", _mcp_operation)),
        "tool_name": (
            semconv.TOOL_NAME,
            attribute("mcp.tool.name", on=semconv.EXECUTE_TOOL),
            span_name(matching(r".*tools/call (.+)"), on=semconv.EXECUTE_TOOL),
        ),
    },
    contents=frozenset({"mcp.request.params", "mcp.tool.arguments", "mcp.tool.result", "mcp.prompt.arguments"}),
)

AGENTCORE = Dialect(
    name="agentcore",
    markers=frozenset({"aws.agent.id", "aws.bedrock.agentcore."}),
    columns={
        **otel_genai.COLUMNS,
        "operation": (
            otel_genai.OPERATION,
            attribute("aws.operation.name", words({"InvokeAgentRuntime": semconv.INVOKE_WORKFLOW})),
        ),
        "agent_id": (semconv.AGENT_ID, "aws.agent.id"),
        "tool_name": (semconv.TOOL_NAME, attribute("tool.name", on=semconv.EXECUTE_TOOL)),
        "error_type": (semconv.ERROR_TYPE, "error_type"),
    },
    contents=frozenset({"request_payload", "response_payload"}),
)
