"""Message content: off unless asked for, and never with a model's reasoning.

The standard variable OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT switches it on: SPAN_ONLY, EVENT_ONLY,
SPAN_AND_EVENT or, as older tools wrote it, true. What other instrumentations put on spans all the same is dropped
before it leaves the process.
"""

from __future__ import annotations

import json
import os
from typing import Any, Final

from surefoot.instrumentation import semconv

_ON_SPANS: Final = frozenset({"span_only", "span_and_event", "true", "1"})
_ANYWHERE: Final = _ON_SPANS | {"event_only"}
_REASONING_TYPES: Final = frozenset({"reasoning", "thinking", "redacted_thinking"})
_REASONING_KEYS: Final = frozenset({"reasoning", "reasoning_content", "thinking", "thinking_blocks"})
_MENTIONS: Final = tuple(f'"{word}' for word in ("reasoning", "thinking", "redacted_thinking"))

# Where known instrumentations put content; a name that ends in "." is a prefix.
CONTENT_KEYS: Final = semconv.CONTENT_ATTRIBUTES | {
    *("all_messages_events", "final_result", "pydantic_ai.all_messages", "tool_arguments", "tool_response"),
    *("gen_ai.prompt", "gen_ai.completion", "gen_ai.tool.message", "input.value", "output.value"),
    *("traceloop.entity.input", "traceloop.entity.output", "gcp.vertex.agent.llm_request"),
    *("gcp.vertex.agent.llm_response", "gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response"),
    *("langfuse.observation.input", "langfuse.observation.output", "mlflow.spanInputs", "mlflow.spanOutputs"),
    *("gen_ai.prompt.", "gen_ai.completion.", "llm.input_messages.", "llm.output_messages."),
}
_EXACT: Final = frozenset(key for key in CONTENT_KEYS if not key.endswith("."))
_PREFIXES: Final = tuple(key for key in CONTENT_KEYS if key.endswith("."))
# Log events of older conventions whose body is a message.
MESSAGE_EVENTS: Final = frozenset(
    {*(f"gen_ai.{role}.message" for role in ("system", "user", "assistant", "tool")), "gen_ai.choice"}
)


def mode() -> str:
    """The capture mode in force, in lower case; ``no_content`` if the variable is not set."""
    return os.environ.get(semconv.CAPTURE_CONTENT_VARIABLE, "").strip().lower() or "no_content"


def captures_on_spans() -> bool:
    """Whether content may be kept as span attributes."""
    return mode() in _ON_SPANS


def captures() -> bool:
    """Whether content may be kept at all."""
    return mode() in _ANYWHERE


def is_content(key: str) -> bool:
    """Whether an attribute of this name holds message content."""
    return key in _EXACT or key.startswith(_PREFIXES)


def as_json(content: Any) -> str:
    """Content as JSON text without reasoning parts. What JSON does not know is written as its text."""
    return json.dumps(without_reasoning(content), ensure_ascii=False, default=str)


def without_reasoning(content: Any) -> Any:
    """The same content without parts and fields that hold a model's reasoning."""
    if isinstance(content, (list, tuple)):
        return [without_reasoning(item) for item in content if not _is_reasoning(item)]
    if isinstance(content, dict):
        return {key: without_reasoning(item) for key, item in content.items() if key not in _REASONING_KEYS}
    return content


def text_without_reasoning(text: str) -> str | None:
    """JSON text without reasoning; None if it mentions some and cannot be parsed, for then it cannot be taken out."""
    if not any(word in text for word in _MENTIONS):
        return text
    try:
        return as_json(json.loads(text))
    except ValueError:
        return None


def _is_reasoning(item: Any) -> bool:
    return isinstance(item, dict) and (
        item.get("type") in _REASONING_TYPES or item.get("part_kind") in _REASONING_TYPES
    )
