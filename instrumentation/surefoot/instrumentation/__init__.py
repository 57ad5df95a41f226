"""Records what an agent does, as OpenTelemetry GenAI spans and events.

    from surefoot.instrumentation import agent_run, init, tool

    init(service_name="support-desk")
    with agent_run("support-desk", task_class="refund") as run:
        with tool("issue_refund", effect="irreversible"):
            ...
        run.set_confidence(80)

Importing this costs no more than OpenTelemetry's API; exporters are loaded by ``init`` or ``surefoot run``. Without
either nothing is recorded and nothing is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surefoot.instrumentation.evaluations import Evaluation, evaluation, record_evaluation
from surefoot.instrumentation.operations import AgentRun, ModelCall, ToolCall, Workflow
from surefoot.instrumentation.sdk import agent_run, model_call, tool, workflow

if TYPE_CHECKING:
    from surefoot.instrumentation.redaction import PATTERNS, Pattern, Redact, Redaction
    from surefoot.instrumentation.threads import RunThreadPool, propagate

__all__ = [
    "PATTERNS",
    "AgentRun",
    "Evaluation",
    "ModelCall",
    "Pattern",
    "Redact",
    "Redaction",
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

# Half of the import time, for what most programs do not use: compiled patterns and thread pools.
_LAZY = {
    **dict.fromkeys(("PATTERNS", "Pattern", "Redact", "Redaction"), "surefoot.instrumentation.redaction"),
    **dict.fromkeys(("RunThreadPool", "propagate"), "surefoot.instrumentation.threads"),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)


def init(
    *,
    service_name: str | None = None,
    environment: str | None = None,
    endpoint: str | None = None,
    capture_content: bool | None = None,
    redact: Redaction | Redact | bool = True,
) -> None:
    """Set the pipeline up, for a program that is not started with ``surefoot run``. The first call counts.

    ``endpoint`` is an OTLP base address such as http://127.0.0.1:4318; the standard OTEL_* variables hold where nothing
    is given. ``capture_content=True`` keeps messages (default: the standard variable, off). ``redact`` is a callable
    that gets an attribute's name and text and returns what may leave the process, after the built-in patterns; or a
    ``Redaction`` with patterns of your own; or False for none.

    Raises PipelineError if an exporter that OTEL_* variables name is not installed, or if the program's own tracer
    provider takes no processors.
    """
    from surefoot.instrumentation import setup

    setup.init(
        service_name=service_name,
        environment=environment,
        endpoint=endpoint,
        capture_content=capture_content,
        redact=redact,
    )


def flush(seconds: float = 5.0) -> bool:
    """Deliver what was recorded so far; False if that took longer or something did not arrive.

    True if nothing is set up, for then nothing is recorded.
    """
    import sys

    # The pipeline's module is loaded by whoever set one up; asking must not load the SDK.
    pipeline = sys.modules.get("surefoot.instrumentation.pipeline")
    current = None if pipeline is None else pipeline.current()
    return True if current is None else bool(current.flush(seconds))
