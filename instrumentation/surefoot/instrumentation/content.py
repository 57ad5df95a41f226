"""Message content: off unless asked for, and never with a model's reasoning.

The standard variable OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT switches it on: SPAN_ONLY, EVENT_ONLY,
SPAN_AND_EVENT or, as older tools wrote it, true. What other instrumentations record all the same is dropped before it
leaves the process (``redaction.py``). Reasoning that cannot be told from the rest takes the rest with it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from surefoot.instrumentation import semconv


@dataclass(frozen=True, slots=True)
class CaptureMode:
    """Where message content may be kept."""

    spans: bool
    events: bool

    def __bool__(self) -> bool:
        return self.spans or self.events


_OFF: Final = CaptureMode(spans=False, events=False)
_BOTH: Final = CaptureMode(spans=True, events=True)
_MODES: Final = {
    "span_only": CaptureMode(spans=True, events=False),
    "event_only": CaptureMode(spans=False, events=True),
    "span_and_event": _BOTH,
    "true": _BOTH,
    "1": _BOTH,
}

_REASONING_TYPES: Final = frozenset({"reasoning", "thinking", "redacted_thinking"})
_REASONING_KEYS: Final = frozenset(
    {"reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks", "thoughts"}
)
_MENTIONS: Final = ("reasoning", "thinking", "thought")

# Where known instrumentations put content; a name that ends in "." is a prefix.
_KEYS: Final = semconv.CONTENT_ATTRIBUTES | {
    *("all_messages_events", "final_result", "model_request_parameters", "pydantic_ai.all_messages"),
    *("tool_arguments", "tool_response", "logfire.json_schema"),
    *("gen_ai.prompt", "gen_ai.completion", "gen_ai.tool.message", "gen_ai.task.input", "gen_ai.task.output"),
    *("gen_ai.retrieval.query.text", "gen_ai.retrieval.documents", "gen_ai.memory.query.text", "gen_ai.memory.records"),
    *("input", "output", "inputs", "expected_output", "crew_inputs", "crew_agents", "crew_tasks"),
    *("request_data", "response_data"),
    *("input.value", "output.value", "traceloop.entity.input", "traceloop.entity.output"),
    *("gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"),
    *("gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response", "gcp.vertex.agent.data"),
    *("langfuse.observation.input", "langfuse.observation.output", "mlflow.spanInputs", "mlflow.spanOutputs"),
    *("langfuse.trace.input", "langfuse.trace.output", "tool.parameters", "llm.invocation_parameters"),
    *("gen_ai.prompt.", "gen_ai.completion.", "gen_ai.prompt.variable.", "llm.input_messages.", "llm.output_messages."),
    *("llm.prompts.", "llm.completions.", "llm.tools.", "retrieval.documents.", "llm.prompt_template."),
}
_EXACT: Final = frozenset(key for key in _KEYS if not key.endswith("."))
_PREFIXES: Final = tuple(key for key in _KEYS if key.endswith("."))
# Events of older conventions that are messages: on spans their attributes, on log records their body is the content.
MESSAGE_EVENTS: Final = frozenset(
    {
        *(f"gen_ai.{role}.message" for role in ("system", "user", "assistant", "tool")),
        *("gen_ai.choice", "gen_ai.content.prompt", "gen_ai.content.completion"),
    }
)


def capture_mode(environ: Mapping[str, str] = os.environ) -> CaptureMode:
    """The mode that the standard variable asks for; a word that is not known means off."""
    return _MODES.get(environ.get(semconv.CAPTURE_CONTENT_VARIABLE, "").strip().lower(), _OFF)


def is_content(key: str) -> bool:
    """Whether an attribute of this name holds message content."""
    return key in _EXACT or key.startswith(_PREFIXES)


def as_json(content: Any) -> str:
    """Content as JSON text without reasoning parts. What JSON does not know is written as its text."""
    return json.dumps(without_reasoning(content), ensure_ascii=False, default=str)


def without_reasoning(content: Any) -> Any:
    """The same content without the parts and fields that hold a model's reasoning. Text that is JSON is looked into.

    Text that mentions reasoning and is not JSON stays: the word alone is no reasoning.
    """
    if isinstance(content, str):
        return _text_without_reasoning(content)
    if isinstance(content, Mapping):
        return {key: without_reasoning(item) for key, item in content.items() if key not in _REASONING_KEYS}
    if isinstance(content, (list, tuple)):
        return [without_reasoning(item) for item in content if not _is_reasoning(item)]
    return content


def _text_without_reasoning(text: str) -> str | None:
    if not text.lstrip().startswith(("{", "[")) or not any(word in text for word in _MENTIONS):
        return text
    try:
        content = json.loads(text)
    except ValueError:
        # Cut off by a length limit, most likely; the reasoning cannot be found, so nothing of it may stay.
        return None
    return None if _is_reasoning(content) else as_json(content)


def flattened_reasoning(attributes: Mapping[str, Any]) -> tuple[str, ...]:
    """Prefixes of attributes that are reasoning, where messages are flattened into one attribute per field."""
    return tuple(
        key.removesuffix("type")
        for key, value in attributes.items()
        if key.endswith(".type") and value in _REASONING_TYPES and is_content(key)
    )


def names_reasoning(key: str) -> bool:
    """Whether a content attribute's own name says that it holds reasoning (``gen_ai.completion.0.reasoning``)."""
    return not _REASONING_KEYS.isdisjoint(key.split("."))


def _is_reasoning(item: Any) -> bool:
    if not isinstance(item, Mapping):
        return False
    # Google's parts have no type: `"thought": true` marks them.
    return (
        item.get("type") in _REASONING_TYPES or item.get("part_kind") in _REASONING_TYPES or item.get("thought") is True
    )
