"""Claude Code and Gemini CLI: coding agents that report on themselves, with bare attribute names.

Claude Code's input tokens exclude what a cache held; the conventions' include it.
"""

from __future__ import annotations

from surefoot.instrumentation import semconv
from surefoot.processors.genai.dialects import otel_genai
from surefoot.processors.genai.dialects.dialect import NOTHING, Dialect, attribute, span_name
from surefoot.processors.genai.dialects.reading import always, error_name, seconds_of_millis, words

_TYPES = {
    "interaction": semconv.INVOKE_AGENT,
    "llm_request": semconv.CHAT,
    "tool": semconv.EXECUTE_TOOL,
    "tool.execution": NOTHING,
    "tool.blocked_on_user": NOTHING,
    "hook": NOTHING,
}
_FAILED = ("success", "false")

CLAUDE_CODE = Dialect(
    name="claude_code",
    scopes=frozenset({"com.anthropic.claude_code", "com.anthropic.claude_code."}),
    span_names=frozenset({"claude_code."}),
    columns={
        **otel_genai.COLUMNS,
        "operation": (
            attribute("span.type", words(_TYPES)),
            span_name(words({f"claude_code.{kind}": operation for kind, operation in _TYPES.items()})),
        ),
        "agent_name": (semconv.AGENT_NAME, span_name(always("claude-code"), on=semconv.INVOKE_AGENT)),
        "tool_name": (
            attribute("tool_name", on=semconv.EXECUTE_TOOL),
            attribute(semconv.TOOL_NAME, on=semconv.EXECUTE_TOOL),
        ),
        "tool_call_id": (semconv.TOOL_CALL_ID, "tool_use_id"),
        "provider_name": (
            *otel_genai.COLUMNS["provider_name"],
            span_name(always("anthropic"), on=semconv.CHAT),
        ),
        "request_model": (semconv.REQUEST_MODEL, attribute("model", on=semconv.CHAT)),
        "finish_reasons": (semconv.FINISH_REASONS, "stop_reason"),
        "time_to_first_chunk": (attribute("ttft_ms", seconds_of_millis),),
        "input_tokens": ("input_tokens",),
        "output_tokens": ("output_tokens",),
        "cache_read_tokens": ("cache_read_tokens",),
        "cache_write_tokens": ("cache_creation_tokens",),
        "error_type": (
            attribute(semconv.ERROR_TYPE),
            attribute("error", error_name, where=_FAILED),
            attribute("success", words({"false": "_OTHER"})),
        ),
    },
    contents=frozenset(
        {
            "user_prompt",
            "prompt",
            "new_context",
            "llm_request.context",
            "system_prompt",
            "system_prompt_preview",
            "system_reminders",
            "tools",
            "tool_input",
            "tool_parameters",
            "tool_result",
            "full_command",
            "bash_command",
            "file_path",
            "response.model_output",
            "tool.output",
            "output",
            "content",
            "body",
        }
    ),
    input_excludes_cache=True,
)

GEMINI_CLI = Dialect(
    name="gemini_cli",
    scopes=frozenset({"gemini-cli"}),
    columns={
        **otel_genai.COLUMNS,
        "agent_name": (semconv.AGENT_NAME, span_name(always("gemini-cli"), on=semconv.INVOKE_AGENT)),
        "tool_name": (
            attribute(semconv.TOOL_NAME, on=semconv.EXECUTE_TOOL),
            attribute("function_name", on=semconv.EXECUTE_TOOL),
        ),
        "error_type": (attribute(semconv.ERROR_TYPE), attribute("error.message", error_name)),
    },
    contents=frozenset(
        {"prompt", "function_args", "request_text", "response_text", "input", "output", "system_instructions"}
    ),
)
