"""Records what an agent does, as OpenTelemetry GenAI spans and events.

    from surefoot.instrumentation import agent_run, init, tool

    init(service_name="support-desk")
    with agent_run("support-desk", task_class="refund") as run:
        with tool("issue_refund", effect="irreversible"):
            ...
        run.set_confidence(80)

Importing this costs no more than OpenTelemetry's API; exporters are loaded by ``init`` or ``surefoot run``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surefoot.instrumentation.evaluations import evaluation, record_evaluation
from surefoot.instrumentation.operation import AgentRun, ModelCall, ToolCall, Workflow
from surefoot.instrumentation.sdk import agent_run, model_call, tool, workflow
from surefoot.instrumentation.threads import RunThreadPool, propagate

if TYPE_CHECKING:
    from surefoot.instrumentation.redaction import Redact

__all__ = [
    "AgentRun",
    "ModelCall",
    "RunThreadPool",
    "ToolCall",
    "Workflow",
    "agent_run",
    "evaluation",
    "flush",
    "init",
    "model_call",
    "propagate",
    "record_evaluation",
    "tool",
    "workflow",
]


def init(
    *,
    service_name: str | None = None,
    environment: str | None = None,
    endpoint: str | None = None,
    capture_content: bool | None = None,
    redact: Redact | None = None,
    redact_patterns: bool = True,
) -> None:
    """Set the pipeline up, for a program that is not started with ``surefoot run``. The first call counts.

    ``endpoint`` is an OTLP base address such as http://127.0.0.1:4318; the standard OTEL_* variables hold where nothing
    is given. ``capture_content=True`` keeps messages on spans (default: the standard variable, off). ``redact`` gets an
    attribute's name and text and returns what may leave the process; it runs after the built-in patterns, which
    ``redact_patterns=False`` turns off.
    """
    import os

    from surefoot.instrumentation import exit as at_exit
    from surefoot.instrumentation import native, pipeline, redaction, semconv

    if capture_content is not None:
        os.environ[semconv.CAPTURE_CONTENT_VARIABLE] = "SPAN_AND_EVENT" if capture_content else "NO_CONTENT"
    chosen = redaction.combined(redact, patterns=redact_patterns)
    first = pipeline.current() is None
    at_exit.install(
        pipeline.build(service_name=service_name, environment=environment, endpoint=endpoint, redact=chosen)
    )
    if first:
        from surefoot.instrumentation.distro import note

        native.watch_imports(note)


def flush(timeout_seconds: float = 5.0) -> bool:
    """Deliver what was recorded so far; False if that took longer. True if nothing is set up."""
    import sys

    # The pipeline's module is loaded by whoever built one; asking must not load the SDK.
    pipeline = sys.modules.get("surefoot.instrumentation.pipeline")
    current = None if pipeline is None else pipeline.current()
    return True if current is None else bool(current.flush(timeout_seconds))
