"""OpenLIT: the conventions with about 600 names of its own, of which only those below are taken.

A chat span carries the name of the tool that the model asked for, an agent's id is an address in memory, ``error.type``
is the error's message, and an ``invoke_agent`` with a source is a handoff.
"""

from __future__ import annotations

from surefoot.instrumentation import semconv
from surefoot.processors.genai.dialects import otel_genai
from surefoot.processors.genai.dialects.dialect import HANDOFF, Dialect, attribute
from surefoot.processors.genai.dialects.reading import always, error_name

_AGENT = (semconv.OPERATION_NAME, semconv.INVOKE_AGENT)

DIALECT = Dialect(
    name="openlit",
    scopes=frozenset({"openlit", "openlit.", "openlit-ts"}),
    columns={
        **otel_genai.COLUMNS,
        "operation": (attribute("gen_ai.agent.source", always(HANDOFF), where=_AGENT), otel_genai.OPERATION),
        "agent_id": (),
        "conversation_id": (
            semconv.CONVERSATION_ID,
            "gen_ai.openai.thread.id",
            "gen_ai.session.id",
            "session.id",
        ),
        "tool_name": (attribute(semconv.TOOL_NAME, on=semconv.EXECUTE_TOOL),),
        "tool_call_id": (attribute(semconv.TOOL_CALL_ID, on=semconv.EXECUTE_TOOL),),
        "tool_type": (attribute(semconv.TOOL_TYPE, on=semconv.EXECUTE_TOOL),),
        "provider_name": (*otel_genai.COLUMNS["provider_name"], "gen_ai.llm.provider"),
        "request_model": (semconv.REQUEST_MODEL, "gen_ai.llm.model"),
        "time_to_first_chunk": (semconv.TIME_TO_FIRST_CHUNK, "gen_ai.server.time_to_first_token"),
        "input_tokens": (*otel_genai.COLUMNS["input_tokens"], "gen_ai.token.usage.input"),
        "output_tokens": (*otel_genai.COLUMNS["output_tokens"], "gen_ai.token.usage.output"),
        "cache_read_tokens": (
            *otel_genai.COLUMNS["cache_read_tokens"],
            "gen_ai.usage.prompt_tokens_details.cached_tokens",
        ),
        "cache_write_tokens": (
            *otel_genai.COLUMNS["cache_write_tokens"],
            "gen_ai.usage.prompt_tokens_details.cache_creation_tokens",
        ),
        "reasoning_tokens": (
            *otel_genai.COLUMNS["reasoning_tokens"],
            "gen_ai.usage.completion_tokens_details.reasoning_tokens",
        ),
        "error_type": (attribute(semconv.ERROR_TYPE, error_name),),
    },
    contents=frozenset(
        {
            "gen_ai.tool.args",
            "gen_ai.tool.input",
            "gen_ai.tool.output",
            "gen_ai.tool.result",
            "gen_ai.agent.instructions",
            "gen_ai.agent.goal",
            "gen_ai.agent.backstory",
            "gen_ai.agent.input",
            "gen_ai.agent.output",
            "gen_ai.task.*description",
            "gen_ai.task.expected_output",
            "gen_ai.workflow.input",
            "gen_ai.workflow.output",
            "gen_ai.content.*",
        }
    ),
)
