"""Dialects: how each instrumentation writes down what the conventions describe.

A dialect is data plus at most a few value functions, one file each. Recognition looks at scope names and marker
attributes before it trusts any operation name, in the order of ``DIALECTS``: a specific dialect stands before the one
it is built on. One name may have several entries, where an instrumentation differs by library. Adding one is a file
here, a capture under tests and a row in the docs (docs/dialects.md).
"""

from __future__ import annotations

from typing import Final

from surefoot.processors.genai.dialects import (
    coding_agents,
    frameworks,
    langfuse,
    langsmith,
    logfire,
    mlflow,
    openinference,
    openlit,
    otel_genai,
    pydantic_ai,
    traceloop,
    vercel,
)
from surefoot.processors.genai.dialects.dialect import Dialect

DIALECTS: Final[tuple[Dialect, ...]] = (
    pydantic_ai.DIALECT,
    logfire.EVALS,
    logfire.DIALECT,
    frameworks.GOOGLE_ADK,
    frameworks.STRANDS,
    frameworks.AGENT_FRAMEWORK,
    frameworks.ANTHROPIC,
    coding_agents.CLAUDE_CODE,
    coding_agents.GEMINI_CLI,
    openlit.DIALECT,
    langfuse.DIALECT,
    langsmith.DIALECT,
    mlflow.DIALECT,
    vercel.DIALECT,
    openinference.OPENAI_AGENTS,
    openinference.CREWAI,
    openinference.DIALECT,
    traceloop.DIALECT,
    frameworks.AGENTCORE,
    frameworks.MCP,
    otel_genai.PLACEHOLDERS,
    otel_genai.DIALECT,
)

__all__ = ["DIALECTS", "Dialect"]
