"""The telemetry of a process in which attempts run.

Rule: spans are there whether or not anybody receives them, because usage and tools are read off them; and their ids do
not come from the generator that an agent may seed, or k repetitions would be one trace.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider, id_generator

from surefoot.evaluation.usage import UsageProcessor
from surefoot.instrumentation import init

ENVIRONMENT: Final = "evaluation"
_NOWHERE: Final = {"OTEL_TRACES_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}

_usage: UsageProcessor | None = None


def service_name(called: str) -> str:
    """Return the service name of an agent's attempts: not that of production, whose SLOs they are not."""
    return f"{called}-evaluation"


def variables(called: str, endpoint: str | None) -> dict[str, str]:
    """Return what a child process needs; it sends nothing where there is no endpoint."""
    found = {
        "OTEL_SERVICE_NAME": service_name(called),
        "OTEL_RESOURCE_ATTRIBUTES": f"deployment.environment.name={ENVIRONMENT}",
    }
    if endpoint is None:
        return found | _NOWHERE
    return found | {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}


def set_up(called: str, endpoint: str | None) -> UsageProcessor:
    """Set this process up, once; later calls return the first one's processor."""
    global _usage  # noqa: PLW0603 - a process has one tracer provider
    _independent_ids()
    if endpoint is not None:
        init(service_name=service_name(called), environment=ENVIRONMENT, endpoint=endpoint)
    elif isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        trace.set_tracer_provider(TracerProvider())
    if _usage is None:
        _usage = UsageProcessor()
        provider: Any = trace.get_tracer_provider()
        if hasattr(provider, "add_span_processor"):
            provider.add_span_processor(_usage)
    return _usage


def _independent_ids() -> None:
    vars(id_generator)["random"] = random.SystemRandom()


def receiver(environ: Mapping[str, str] = os.environ, asked: str | None = None) -> str | None:
    """Return where spans go: what is asked for, or the standard variable says; None where neither does."""
    return asked or environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or None
