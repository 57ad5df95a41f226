"""What the spans of the captures say in canonical columns, checked by hand against what was recorded.

A line reads: how many spans, their operation, who (agent, tool or model; - for none), input/output tokens. Spans of
other operations are left out.
"""

from __future__ import annotations

from typing import Final

# What the spans of a recorded program say, and the captures (without .json) in which they say just that.
TOLD: Final = {
    "1 chat fake-model; 1 invoke_agent weather_agent": (
        "agent-framework-core-1.23.0__native.model_error",
        "langgraph-1.2.24__langsmith-otel-0.15.1.model_error",
        "langgraph-1.2.24__openinference-langchain-0.1.80.model_error",
        "langgraph-1.2.24__otel-genai-langchain-1.3b0.model_error",
        "langgraph-1.2.24__traceloop-langchain-0.62.4.model_error",
        "pydantic-ai-2.68.0__native-v2.model_error",
        "pydantic-ai-2.68.0__native-v5.model_error",
        "pydantic-ai-2.68.0__native-v6.model_error",
    ),
    "2 chat fake-model 11/7; 1 execute_tool add; 1 execute_tool get_weather; 1 invoke_agent weather_agent": (
        "langgraph-1.2.24__langsmith-otel-0.15.1.multi_tool",
        "langgraph-1.2.24__openinference-langchain-0.1.80.multi_tool",
        "langgraph-1.2.24__otel-genai-langchain-1.3b0.multi_tool",
        "langgraph-1.2.24__traceloop-langchain-0.62.4.multi_tool",
        "pydantic-ai-2.68.0__native-v2.multi_tool",
        "pydantic-ai-2.68.0__native-v5.multi_tool",
        "pydantic-ai-2.68.0__native-v6.multi_tool",
    ),
    "2 chat gpt-4o-mini 20/9": (
        "dup__openai-genai1.3b0+openinference0.1.66.stream",
        "openai-3.57.0__openinference-openai-0.1.66-dualwrite.chat_tool",
        "openai-3.57.0__openinference-openai-0.1.66.chat_tool",
        "openai-3.57.0__otel-genai-openai-1.3b0.chat_tool",
        "openai-3.57.0__traceloop-openai-0.62.4.chat_tool",
    ),
    "": (
        "langfuse-5.0.4.evaluator",
        "pydantic-evals-2.62.0.offline",
        "pydantic-evals-2.62.0.online",
        "smolagents-1.26.0__openinference-smolagents-0.1.43.model_error",
    ),
    "1 chat bad-model": (
        "openai-3.57.0__openinference-openai-0.1.66-dualwrite.error429",
        "openai-3.57.0__openinference-openai-0.1.66.error429",
        "openai-3.57.0__otel-genai-openai-1.3b0.error429",
        "openai-3.57.0__traceloop-openai-0.62.4.error429",
    ),
    "1 chat gpt-4o-mini": (
        "openai-3.57.0__openinference-openai-0.1.66-dualwrite.stream_abandoned",
        "openai-3.57.0__openinference-openai-0.1.66.stream_abandoned",
        "openai-3.57.0__otel-genai-openai-1.3b0.stream_abandoned",
        "openai-3.57.0__traceloop-openai-0.62.4.stream_abandoned",
    ),
    "1 chat gpt-4o-mini 20/9": (
        "openai-3.57.0__openinference-openai-0.1.66-dualwrite.stream",
        "openai-3.57.0__openinference-openai-0.1.66.stream",
        "openai-3.57.0__otel-genai-openai-1.3b0.stream",
        "openai-3.57.0__traceloop-openai-0.62.4.stream",
    ),
    "1 chat gpt-4o-mini 5/2": (
        "openai-3.57.0__openinference-openai-0.1.66-dualwrite.responses",
        "openai-3.57.0__openinference-openai-0.1.66.responses",
        "openai-3.57.0__otel-genai-openai-1.3b0.responses",
        "openai-3.57.0__traceloop-openai-0.62.4.responses",
    ),
    "1 embeddings text-embedding-3-small 3/None": (
        "openai-3.57.0__openinference-openai-0.1.66-dualwrite.embeddings",
        "openai-3.57.0__openinference-openai-0.1.66.embeddings",
        "openai-3.57.0__otel-genai-openai-1.3b0.embeddings",
        "openai-3.57.0__traceloop-openai-0.62.4.embeddings",
    ),
    "1 execute_tool flaky; 1 invoke_agent weather_agent": (
        "openai-agents-0.24.0__logfire-5.4.0.tool_error",
        "openai-agents-0.24.0__otel-genai-openai-agents-1.3b0.tool_error",
        "traceloop-sdk-0.62.4.tool_error",
        "util-genai-1.3b0__manual.error",
    ),
    "2 chat fake-model 11/7; 1 execute_tool flaky; 1 invoke_agent weather_agent": (
        "langfuse-5.0.4.tool_error",
        "pydantic-ai-2.68.0__native-v2.tool_retry",
        "pydantic-ai-2.68.0__native-v5.tool_retry",
        "pydantic-ai-2.68.0__native-v6.tool_retry",
    ),
    "2 chat fake-model 11/7; 1 execute_tool get_weather; 1 invoke_agent weather_agent": (
        "langfuse-5.0.4.multi_tool",
        "langgraph-1.2.24__langsmith-otel-0.15.1.astream",
        "langgraph-1.2.24__openinference-langchain-0.1.80.astream",
        "langgraph-1.2.24__otel-genai-langchain-1.3b0.astream",
        "langgraph-1.2.24__traceloop-langchain-0.62.4.astream",
    ),
    "1 chat fake-model 11/7; 1 execute_tool fatal; 1 invoke_agent weather_agent": (
        "pydantic-ai-2.68.0__native-v2.tool_fatal",
        "pydantic-ai-2.68.0__native-v5.tool_fatal",
        "pydantic-ai-2.68.0__native-v6.tool_fatal",
    ),
    "1 chat fake-model 11/7; 1 execute_tool flaky; 1 invoke_agent weather_agent": (
        "langgraph-1.2.24__langsmith-otel-0.15.1.tool_error",
        "langgraph-1.2.24__openinference-langchain-0.1.80.tool_error",
        "langgraph-1.2.24__otel-genai-langchain-1.3b0.tool_error",
        "langgraph-1.2.24__traceloop-langchain-0.62.4.tool_error",
    ),
    "1 chat fake-model 50/2; 1 invoke_agent stream_agent": (
        "pydantic-ai-2.68.0__native-v2.stream",
        "pydantic-ai-2.68.0__native-v5.stream",
        "pydantic-ai-2.68.0__native-v6.stream",
    ),
    "1 invoke_agent Weather Agent": (
        "crewai-1.15.30__openinference-crewai-1.1.21.model_error",
        "crewai-1.15.30__openinference-crewai-1.1.21.multi_tool",
        "crewai-1.15.30__openinference-crewai-1.1.21.tool_error",
    ),
    "2 chat fake-model 11/7; 1 execute_tool flaky": (
        "langgraph-1.2.24__langsmith-otel-0.15.1.tool_handled",
        "langgraph-1.2.24__openinference-langchain-0.1.80.tool_handled",
        "langgraph-1.2.24__otel-genai-langchain-1.3b0.tool_handled",
    ),
    (
        "4 chat fake-model 11/7; 1 execute_tool ask; 1 execute_tool get_weather; 1 invoke_agent boss; "
        "1 invoke_agent weather_agent"
    ): (
        "pydantic-ai-2.68.0__native-v2.delegate",
        "pydantic-ai-2.68.0__native-v5.delegate",
        "pydantic-ai-2.68.0__native-v6.delegate",
    ),
    "1 chat -; 1 invoke_agent weather_agent": (
        "strands-agents-1.62.0__native.model_error",
        "strands-agents-1.62.0__oi.model_error",
    ),
    "1 chat claude-x 117/7": (
        "anthropic-2.14.0__native.chat",
        "anthropic-2.14.0__native.stream",
    ),
    "1 execute_tool add; 1 execute_tool get_weather; 1 invoke_agent -; 1 invoke_agent weather_agent": (
        "openai-agents-0.24.0__openinference-openai-agents-2.6.0.multi_tool",
        "openai-agents-0.24.0__otel-openai-agents-v2-0.1.0.multi_tool",
    ),
    "1 execute_tool add; 1 execute_tool get_weather; 1 invoke_agent weather_agent": (
        "openai-agents-0.24.0__logfire-5.4.0.multi_tool",
        "openai-agents-0.24.0__otel-genai-openai-agents-1.3b0.multi_tool",
    ),
    (
        "1 execute_tool ask_sub; 1 execute_tool get_weather; 1 invoke_agent -; 1 invoke_agent boss_agent; "
        "1 invoke_agent sub_agent"
    ): (
        "openai-agents-0.24.0__openinference-openai-agents-2.6.0.agent_as_tool",
        "openai-agents-0.24.0__otel-openai-agents-v2-0.1.0.agent_as_tool",
    ),
    "1 execute_tool ask_sub; 1 execute_tool get_weather; 1 invoke_agent boss_agent; 1 invoke_agent sub_agent": (
        "openai-agents-0.24.0__logfire-5.4.0.agent_as_tool",
        "openai-agents-0.24.0__otel-genai-openai-agents-1.3b0.agent_as_tool",
    ),
    "1 execute_tool fatal; 1 invoke_agent -; 1 invoke_agent weather_agent": (
        "openai-agents-0.24.0__openinference-openai-agents-2.6.0.tool_fatal",
        "openai-agents-0.24.0__otel-openai-agents-v2-0.1.0.tool_fatal",
    ),
    "1 execute_tool fatal; 1 invoke_agent weather_agent": (
        "openai-agents-0.24.0__logfire-5.4.0.tool_fatal",
        "openai-agents-0.24.0__otel-genai-openai-agents-1.3b0.tool_fatal",
    ),
    "1 execute_tool flaky; 1 invoke_agent -; 1 invoke_agent weather_agent": (
        "openai-agents-0.24.0__openinference-openai-agents-2.6.0.tool_error",
        "openai-agents-0.24.0__otel-openai-agents-v2-0.1.0.tool_error",
    ),
    "1 handoff -; 1 invoke_agent -; 1 invoke_agent french_agent; 1 invoke_agent triage_agent": (
        "openai-agents-0.24.0__openinference-openai-agents-2.6.0.handoff",
        "openai-agents-0.24.0__otel-openai-agents-v2-0.1.0.handoff",
    ),
    "1 invoke_agent -; 1 invoke_agent weather_agent": (
        "openai-agents-0.24.0__openinference-openai-agents-2.6.0.model_error",
        "openai-agents-0.24.0__otel-openai-agents-v2-0.1.0.model_error",
    ),
    "1 invoke_agent weather_agent": (
        "openai-agents-0.24.0__logfire-5.4.0.model_error",
        "openai-agents-0.24.0__otel-genai-openai-agents-1.3b0.model_error",
    ),
    "2 chat - 11/7; 1 execute_tool add; 1 execute_tool get_weather; 1 invoke_agent weather_agent 22/14": (
        "strands-agents-1.62.0__native.multi_tool",
        "strands-agents-1.62.0__oi.multi_tool",
    ),
    "2 chat - 11/7; 1 execute_tool flaky; 1 invoke_agent weather_agent 22/14": (
        "strands-agents-1.62.0__native.tool_error",
        "strands-agents-1.62.0__oi.tool_error",
    ),
    "2 chat claude-x 117/7": (
        "anthropic-2.14.0__genai.chat",
        "anthropic-2.14.0__genai.stream",
    ),
    "2 chat claude-x 117/7; 1 execute_tool get_weather; 1 invoke_agent -": (
        "anthropic-2.14.0__native.tool_runner",
        "anthropic-2.14.0__native.tool_runner_error",
    ),
    "4 chat claude-x 117/7; 1 execute_tool get_weather; 1 invoke_agent -": (
        "anthropic-2.14.0__genai.tool_runner",
        "anthropic-2.14.0__genai.tool_runner_error",
    ),
    "1 chat bad": ("anthropic-2.14.0__native.error529",),
    (
        "1 chat fake-model 11/7; 1 embeddings emb 3/None; 1 execute_tool get_weather; 1 invoke_agent remote 5/6; "
        "1 invoke_agent weather_agent"
    ): ("util-genai-1.3b0__manual.ok",),
    (
        "1 execute_tool (merged tools); 1 execute_tool add; 1 execute_tool get_weather; "
        "2 generate_content fake-model 11/7; 1 invoke_agent weather_agent"
    ): ("google-adk-2.13.0__native.multi_tool",),
    "1 execute_tool add; 1 execute_tool get_weather; 3 invoke_agent -; 1 invoke_agent weather_agent": (
        "openai-agents-0.20.0__openlit-1.45.0.multi_tool",
    ),
    (
        "1 execute_tool ask_sub; 1 execute_tool get_weather; 6 invoke_agent -; 1 invoke_agent boss_agent; "
        "1 invoke_agent sub_agent"
    ): ("openai-agents-0.20.0__openlit-1.45.0.agent_as_tool",),
    "1 execute_tool fatal; 2 invoke_agent -; 1 invoke_agent weather_agent": (
        "openai-agents-0.20.0__openlit-1.45.0.tool_fatal",
    ),
    "1 execute_tool final_answer; 1 execute_tool flaky; 1 invoke_agent weather_agent 22/14": (
        "smolagents-1.26.0__openinference-smolagents-0.1.43.tool_error",
    ),
    "1 execute_tool final_answer; 1 execute_tool get_weather; 1 invoke_agent weather_agent 11/7": (
        "smolagents-1.26.0__openinference-smolagents-0.1.43.code_agent",
    ),
    "1 execute_tool final_answer; 2 execute_tool get_weather; 1 invoke_agent weather_agent 22/14": (
        "smolagents-1.26.0__openinference-smolagents-0.1.43.multi_tool",
    ),
    "1 execute_tool flaky; 1 generate_content fake-model 11/7; 1 invoke_agent weather_agent": (
        "google-adk-2.13.0__native.tool_error",
    ),
    "1 execute_tool flaky; 3 invoke_agent -; 1 invoke_agent weather_agent": (
        "openai-agents-0.20.0__openlit-1.45.0.tool_error",
    ),
    "1 execute_tool get_weather; 1 invoke_agent weather_agent": ("traceloop-sdk-0.62.4.multi_tool",),
    (
        "1 execute_tool transfer_to_agent; 2 generate_content fake-model 11/7; 1 invoke_agent french_agent; "
        "1 invoke_agent root_agent"
    ): ("google-adk-2.13.0__native.transfer",),
    "1 generate_content fake-model; 1 invoke_agent weather_agent": ("google-adk-2.13.0__native.model_error",),
    "1 handoff -; 1 invoke_agent french_agent; 1 invoke_agent triage_agent": (
        "openai-agents-0.24.0__logfire-5.4.0.handoff",
    ),
    "1 handoff french_agent; 3 invoke_agent -; 1 invoke_agent french_agent; 1 invoke_agent triage_agent": (
        "openai-agents-0.20.0__openlit-1.45.0.handoff",
    ),
    "1 invoke_agent french_agent; 1 invoke_agent triage_agent": (
        "openai-agents-0.24.0__otel-genai-openai-agents-1.3b0.handoff",
    ),
    "2 chat bad": ("anthropic-2.14.0__genai.error529",),
    "2 chat fake-model 11/7; 1 execute_tool add; 1 execute_tool get_weather; 1 invoke_agent weather_agent 22/14": (
        "agent-framework-core-1.23.0__native.multi_tool",
    ),
    "2 chat fake-model 11/7; 1 execute_tool flaky; 1 invoke_agent weather_agent 22/14": (
        "agent-framework-core-1.23.0__native.tool_error",
    ),
    "2 chat fake-model 11/7; 1 execute_tool flaky; 1 invoke_agent weather_graph": (
        "langgraph-1.2.24__traceloop-langchain-0.62.4.tool_handled",
    ),
    "2 invoke_agent -; 1 invoke_agent weather_agent": ("openai-agents-0.20.0__openlit-1.45.0.model_error",),
    "3 execute_tool flaky": ("fastmcp-4.2.3_mcp-2.3.0__native.tool_error",),
    "3 execute_tool get_weather": ("fastmcp-4.2.3_mcp-2.3.0__native.ok",),
    "4 chat gpt-4o-mini 20/9": ("dup__openai-genai1.3b0+openinference0.1.66.chat_tool",),
}

DIALECT_OF_SCOPE: Final = {
    "agent_framework": "agent_framework",
    "com.anthropic.sdk.python": "anthropic_sdk",
    "demo.manual": "otel_genai",
    "fastmcp": "mcp",
    "gcp.vertex.agent": "google_adk",
    "langfuse-sdk": "langfuse",
    "langsmith": "langsmith",
    "logfire.openai_agents": "logfire",
    "mcp-python-sdk": "mcp",
    "openinference.instrumentation.crewai": "openinference",
    "openinference.instrumentation.langchain": "openinference",
    "openinference.instrumentation.openai": "openinference",
    "openinference.instrumentation.openai_agents": "openinference",
    "openinference.instrumentation.smolagents": "openinference",
    "openlit.instrumentation.openai_agents": "openlit",
    "opentelemetry.instrumentation.genai.anthropic": "otel_genai",
    "opentelemetry.instrumentation.genai.langchain": "otel_genai",
    "opentelemetry.instrumentation.genai.openai": "otel_genai",
    "opentelemetry.instrumentation.genai.openai_agents": "otel_genai",
    "opentelemetry.instrumentation.langchain": "traceloop",
    "opentelemetry.instrumentation.openai.v1": "traceloop",
    "opentelemetry.instrumentation.openai_agents": "otel_genai",
    "pydantic-ai": "pydantic_ai",
    "pydantic-evals": "pydantic_evals",
    "strands.telemetry.tracer": "strands",
    "traceloop.tracer": "traceloop",
}
