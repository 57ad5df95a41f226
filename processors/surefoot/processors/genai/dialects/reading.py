"""Functions that read one value, shared by dialects. Rule: they take any text and raise nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from surefoot.processors.genai.dialects.dialect import NOTHING, Read

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][\w.\-]{0,199}")
_PREFIX: Final = re.compile(r"((?:\w+\.)*[A-Z]\w*)[:(]")
_REPR: Final = re.compile(r"<.*>|.* object at 0x[0-9a-f]+.*", re.DOTALL)

# Spellings of gen_ai.provider.name: older ones, vendors' own, and frameworks that write themselves there.
PROVIDERS: Final[dict[str, str]] = {
    **{
        name: name
        for name in [
            "openai",
            "gcp.gen_ai",
            "gcp.vertex_ai",
            "gcp.gemini",
            "anthropic",
            "cohere",
            "azure.ai.inference",
            "azure.ai.openai",
            "ibm.watsonx.ai",
            "aws.bedrock",
            "perplexity",
            "x_ai",
            "deepseek",
            "groq",
            "mistral_ai",
            "moonshot_ai",
        ]
    },
    "vertex_ai": "gcp.vertex_ai",
    "vertexai": "gcp.vertex_ai",
    "google_vertexai": "gcp.vertex_ai",
    "gemini": "gcp.gemini",
    "google": "gcp.gen_ai",
    "google_genai": "gcp.gen_ai",
    "google-genai": "gcp.gen_ai",
    "az.ai.inference": "azure.ai.inference",
    "az.ai.openai": "azure.ai.openai",
    "azure": "azure.ai.openai",
    "azure_openai": "azure.ai.openai",
    "xai": "x_ai",
    "aws": "aws.bedrock",
    "bedrock": "aws.bedrock",
    "aws_bedrock": "aws.bedrock",
    "amazon-bedrock": "aws.bedrock",
    "amazon_bedrock": "aws.bedrock",
    "mistral": "mistral_ai",
    "mistralai": "mistral_ai",
    "watsonx": "ibm.watsonx.ai",
    "moonshot": "moonshot_ai",
    **dict.fromkeys(
        (
            "langchain",
            "langgraph",
            "crewai",
            "strands-agents",
            "microsoft.agent_framework",
            "pydantic-ai",
            "gcp.vertex.agent",
        ),
        NOTHING,
    ),
}

# Why a model stopped, in the conventions' words.
FINISH_REASONS: Final[dict[str, str]] = {
    **dict.fromkeys(("end_turn", "stop_sequence", "eos", "eos_token", "complete"), "stop"),
    **dict.fromkeys(("tool_use", "tool_calls", "tool-calls", "function_call"), "tool_call"),
    **dict.fromkeys(("max_tokens", "max_output_tokens", "model_length"), "length"),
    **dict.fromkeys(("safety", "refusal", "content-filter", "content_filtered"), "content_filter"),
}
_FINISHED: Final = frozenset({"stop", "length", "content_filter", "tool_call", "compaction", "error"})


def words(known: Mapping[str, str], *, others: bool = False) -> Read:
    """A reader of words, JSON-quoted or not. Those it does not know are passed on with ``others``, else unsaid."""

    def read(text: str) -> str | None:
        word = unquoted(text)
        return known.get(word, word if others else None)

    return read


def always(answer: str) -> Read:
    """A reader for an attribute whose presence says it all."""
    return lambda _: answer


def matching(pattern: str) -> Read:
    """A reader that gives the first group of a pattern that matches the whole text."""
    compiled = re.compile(pattern, re.DOTALL)

    def read(text: str) -> str | None:
        found = compiled.fullmatch(text)
        return found[1] if found else None

    return read


def json_field(*names: str) -> Read:
    """A reader of JSON objects: the first of these fields that holds a text or a number."""

    def read(text: str) -> str | None:
        if not any(name in text for name in names):
            return None
        content = parsed(text)
        if not isinstance(content, dict):
            return None
        return next((found for name in names if (found := scalar(content.get(name))) is not None), None)

    return read


def parsed(text: str) -> Any:
    """The content of JSON text, also of JSON text that holds JSON text; None if it is not JSON."""
    try:
        content = json.loads(text)
        return json.loads(content) if isinstance(content, str) and content[:1] in "[{" else content
    except (ValueError, RecursionError):
        return None


def scalar(value: Any) -> str | None:
    """A text or a number as text; None for all else."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def unquoted(text: str) -> str:
    """Text without the JSON quotes around it, if it has some."""
    inner = parsed(text) if text.startswith('"') else None
    return inner if isinstance(inner, str) else text


def provider(text: str) -> str:
    """A provider's name as the conventions spell it, NOTHING for a framework's."""
    return PROVIDERS.get(text.lower(), text)


def model(text: str) -> str:
    """A model's name; NOTHING for ``unknown`` and for the repr of an object that stands for one."""
    return NOTHING if text.lower() == "unknown" or _REPR.fullmatch(text) else text


def finish_reasons(text: str) -> str:
    """A JSON list of reasons in the conventions' words, from a list, a scalar, or JSON text of either."""
    content = parsed(text) if text[:1] in '["' else text
    reasons = content if isinstance(content, list) else [text if content is None else content]
    return json.dumps([finish_reason(reason) for reason in reasons if reason is not None], separators=(",", ":"))


def finish_reason(reason: Any) -> Any:
    """One reason in the conventions' word; what is unknown stays as it is."""
    if not isinstance(reason, str):
        return reason
    low = reason.lower()
    return low if low in _FINISHED else FINISH_REASONS.get(low, reason)


def error_name(text: str) -> str:
    """An error's type from a text that may be one, begin with one, or be a message (then ``_OTHER``)."""
    if _IDENTIFIER.fullmatch(text):
        return text
    prefix = _PREFIX.match(text)
    return prefix[1] if prefix else "_OTHER"


def seconds_of_millis(text: str) -> str | None:
    """Milliseconds as seconds."""
    try:
        return repr(float(text) / 1000)
    except ValueError:
        return None
