"""What people call: runs, tools, model calls, workflows; names and attributes of the conventions.

Each function gives something to enter or to decorate with. Without a configured OpenTelemetry provider nothing is
recorded and next to nothing is spent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from opentelemetry.trace import SpanKind

from surefoot.instrumentation import semconv
from surefoot.instrumentation.operation import Plan, Value
from surefoot.instrumentation.operations import AgentRun, ModelCall, ToolCall, Workflow
from surefoot.instrumentation.traced import Traced

Effect = Literal["read", "write", "irreversible"]
# What the conventions want on a tool's span from around it.
_OF_ITS_AGENT: Final = frozenset({semconv.AGENT_NAME, semconv.CONVERSATION_ID})


def agent_run(
    name: str,
    *,
    task_class: str | None = None,
    task_id: str | None = None,
    consequence_class: str | None = None,
    intent_id: str | None = None,
    run_group: str | None = None,
    repetition: int | None = None,
    variant: str | None = None,
    versions: Mapping[str, str] | None = None,
    strata: Mapping[str, str] | None = None,
    conversation_id: str | None = None,
    principal: str | None = None,
    authority_domain: str | None = None,
    agent_version: str | None = None,
    attributes: Mapping[str, Value] | None = None,
) -> Traced[AgentRun]:
    """One run of the agent ``name``: what a user asked for once.

    ``task_id`` is equal for equal inputs; runs of one intent that span several traces share ``intent_id``; k runs of
    one task on one version set share ``run_group`` and differ in ``repetition``. ``versions`` names what produced the
    run (prompt, policy, tools); ``strata`` adds dimensions that SLOs may be split by.
    """
    passes_on: dict[str, Value] = {semconv.AGENT_NAME: name, semconv.CONVERSATION_ID: conversation_id}
    given: dict[str, Value] = {
        semconv.OPERATION_NAME: semconv.INVOKE_AGENT,
        semconv.AGENT_NAME: name,
        semconv.AGENT_VERSION: agent_version,
        semconv.CONVERSATION_ID: conversation_id,
        semconv.TASK_CLASS: task_class,
        semconv.TASK_ID: task_id,
        semconv.CONSEQUENCE_CLASS: consequence_class,
        semconv.INTENT_ID: intent_id,
        semconv.RUN_GROUP: run_group,
        semconv.REPETITION: repetition,
        semconv.VARIANT: variant,
        semconv.PRINCIPAL: principal,
        semconv.AUTHORITY_DOMAIN: authority_domain,
        **{f"{semconv.VERSIONS_PREFIX}{key}": value for key, value in (versions or {}).items()},
        **{f"{semconv.STRATUM_PREFIX}{key}": value for key, value in (strata or {}).items()},
        **(attributes or {}),
    }
    return Traced(AgentRun, Plan(f"{semconv.INVOKE_AGENT} {name}", SpanKind.INTERNAL, given, passes_on))


def tool(
    name: str,
    *,
    effect: Effect | None = None,
    dependency: str | None = None,
    call_id: str | None = None,
    kind: str | None = None,
    authority_domain: str | None = None,
    attributes: Mapping[str, Value] | None = None,
) -> Traced[ToolCall]:
    """One call of a tool. ``effect`` says what it does to the world, ``dependency`` what it needs to be up."""
    given: dict[str, Value] = {
        semconv.OPERATION_NAME: semconv.EXECUTE_TOOL,
        semconv.TOOL_NAME: name,
        semconv.TOOL_CALL_ID: call_id,
        semconv.TOOL_TYPE: kind,
        semconv.TOOL_EFFECT: effect,
        semconv.TOOL_DEPENDENCY: dependency,
        semconv.AUTHORITY_DOMAIN: authority_domain,
        **(attributes or {}),
    }
    plan = Plan(f"{semconv.EXECUTE_TOOL} {name}", SpanKind.INTERNAL, given, inherits=_OF_ITS_AGENT)
    return Traced(ToolCall, plan)


def model_call(
    model: str,
    *,
    provider: str,
    operation: str = semconv.CHAT,
    attributes: Mapping[str, Value] | None = None,
) -> Traced[ModelCall]:
    """One call of a language model."""
    given: dict[str, Value] = {
        semconv.OPERATION_NAME: operation,
        semconv.PROVIDER_NAME: provider,
        semconv.REQUEST_MODEL: model,
        **(attributes or {}),
    }
    return Traced(ModelCall, Plan(f"{operation} {model}", SpanKind.CLIENT, given))


def workflow(
    name: str, *, conversation_id: str | None = None, attributes: Mapping[str, Value] | None = None
) -> Traced[Workflow]:
    """Several agents' runs under one name. Not for a single agent."""
    given: dict[str, Value] = {
        semconv.OPERATION_NAME: semconv.INVOKE_WORKFLOW,
        semconv.WORKFLOW_NAME: name,
        semconv.CONVERSATION_ID: conversation_id,
        **(attributes or {}),
    }
    passes_on: dict[str, Value] = {semconv.CONVERSATION_ID: conversation_id}
    return Traced(Workflow, Plan(f"{semconv.INVOKE_WORKFLOW} {name}", SpanKind.INTERNAL, given, passes_on))
