"""Every attribute, event and operation name that Surefoot writes or reads, in one place.

The GenAI conventions moved to open-telemetry/semantic-conventions-genai and no PyPI package carries the current
registry (the incubating module is frozen at v1.41), so the project owns its constants. Names are those of that
repository's main branch in August 2026 (model/gen-ai/{spans,events}.yaml); all are of stability "Development".
``surefoot.*`` names have no convention and are documented in docs/instrumentation.md.
"""

from __future__ import annotations

from typing import Final

# Operations (values of gen_ai.operation.name)
CHAT: Final = "chat"
GENERATE_CONTENT: Final = "generate_content"
TEXT_COMPLETION: Final = "text_completion"
EMBEDDINGS: Final = "embeddings"
RETRIEVAL: Final = "retrieval"
CREATE_AGENT: Final = "create_agent"
INVOKE_AGENT: Final = "invoke_agent"
EXECUTE_TOOL: Final = "execute_tool"
INVOKE_WORKFLOW: Final = "invoke_workflow"
MODEL_OPERATIONS: Final = frozenset({CHAT, GENERATE_CONTENT, TEXT_COMPLETION})

# Spans
OPERATION_NAME: Final = "gen_ai.operation.name"
PROVIDER_NAME: Final = "gen_ai.provider.name"
AGENT_NAME: Final = "gen_ai.agent.name"
AGENT_ID: Final = "gen_ai.agent.id"
AGENT_VERSION: Final = "gen_ai.agent.version"
AGENT_DESCRIPTION: Final = "gen_ai.agent.description"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
WORKFLOW_NAME: Final = "gen_ai.workflow.name"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_DESCRIPTION: Final = "gen_ai.tool.description"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
RESPONSE_ID: Final = "gen_ai.response.id"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
OUTPUT_TYPE: Final = "gen_ai.output.type"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS: Final = "gen_ai.usage.cache_write.input_tokens"
REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
ERROR_TYPE: Final = "error.type"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"

# Content (opt-in)
SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
TOOL_DEFINITIONS: Final = "gen_ai.tool.definitions"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
CONTENT_ATTRIBUTES: Final = frozenset(
    {SYSTEM_INSTRUCTIONS, INPUT_MESSAGES, OUTPUT_MESSAGES, TOOL_DEFINITIONS, TOOL_ARGUMENTS, TOOL_RESULT}
)

# Log event with the content of one model call (opt-in)
INFERENCE_EVENT: Final = "gen_ai.client.inference.operation.details"

# Evaluation (log event)
EVALUATION_EVENT: Final = "gen_ai.evaluation.result"
EVALUATION_NAME: Final = "gen_ai.evaluation.name"
EVALUATION_SCORE: Final = "gen_ai.evaluation.score.value"
EVALUATION_LABEL: Final = "gen_ai.evaluation.score.label"
EVALUATION_EXPLANATION: Final = "gen_ai.evaluation.explanation"
# Without a convention; evaluator.* follows the open proposal semantic-conventions-genai#359.
EVALUATOR_NAME: Final = "surefoot.evaluator.name"
EVALUATOR_VERSION: Final = "surefoot.evaluator.version"
EVALUATOR_KIND: Final = "surefoot.evaluator.kind"  # human | executable | model
EVALUATION_KIND: Final = "surefoot.evaluation.kind"  # outcome | process | other
EVALUATION_FINALITY: Final = "surefoot.evaluation.finality"  # provisional | final
EVALUATION_SEVERITY: Final = "surefoot.evaluation.severity"
EVALUATION_SUPERSEDES: Final = "surefoot.evaluation.supersedes"

# Surefoot's own
RUN_STARTED_EVENT: Final = "surefoot.run.started"
TASK_CLASS: Final = "surefoot.task.class"
TASK_ID: Final = "surefoot.task.id"
CONSEQUENCE_CLASS: Final = "surefoot.consequence.class"
INTENT_ID: Final = "surefoot.intent.id"
RUN_GROUP: Final = "surefoot.run_group"
REPETITION: Final = "surefoot.repetition"
VARIANT: Final = "surefoot.variant"
VERSIONS_PREFIX: Final = "surefoot.versions."
STRATUM_PREFIX: Final = "surefoot.stratum."
TOOL_EFFECT: Final = "surefoot.tool.effect"  # read | write | irreversible
TOOL_DEPENDENCY: Final = "surefoot.tool.dependency"
AUTHORITY_DOMAIN: Final = "surefoot.authority.domain"
PRINCIPAL: Final = "surefoot.principal"
CHECKPOINT: Final = "surefoot.checkpoint"
RUN_CONFIDENCE: Final = "surefoot.run.confidence"  # 0 .. 100
CANCELLED: Final = "surefoot.cancelled"  # true on a span that ended by cancellation
BOUNDARY_ID: Final = "surefoot.boundary.id"
MODE: Final = "surefoot.mode"
SAMPLE_WEIGHT: Final = "surefoot.sample_weight"
# Kind of a fault that was made on purpose, on the span of the tool that it befell; absent on real ones.
FAULT_INJECTED: Final = "surefoot.fault.injected"

# Resource
SERVICE_NAME: Final = "service.name"
SERVICE_VERSION: Final = "service.version"
ENVIRONMENT: Final = "deployment.environment.name"
ENVIRONMENT_OLD: Final = "deployment.environment"

CAPTURE_CONTENT_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
