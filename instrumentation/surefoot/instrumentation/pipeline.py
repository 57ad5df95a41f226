"""Builds the telemetry pipeline: providers, processors, exporters, and what is owed at exit.

One pipeline per process. The standard ``OTEL_*`` variables are honoured; without them telemetry goes to a local
collector over OTLP/HTTP. If the program set its own TracerProvider, Surefoot's processors are added to that one and it
is left in charge of everything else.
"""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass
from typing import Any

from opentelemetry import trace
from opentelemetry._logs import get_logger_provider, set_logger_provider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import LogRecordExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from surefoot.errors import SurefootError
from surefoot.instrumentation import semconv
from surefoot.instrumentation.delivery import (
    CleaningSpanExporter,
    CountingSpanProcessor,
    Ledger,
    PromptLogProcessor,
    ReasonHandler,
    RunStartedProcessor,
)
from surefoot.instrumentation.redaction import Cleaner, Redact, by_patterns

DEFAULT_ENDPOINT = "http://127.0.0.1:4318"
_EXPORTER_LOGGERS = ("opentelemetry.exporter", "opentelemetry.sdk")


class PipelineError(SurefootError):
    """The pipeline cannot be built as asked."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What was built; kept for flushing and for the report at exit."""

    tracer_provider: TracerProvider
    logger_provider: LoggerProvider
    ledger: Ledger
    cleaner: Cleaner
    endpoint: str

    def flush(self, timeout_seconds: float) -> bool:
        """Deliver what was recorded so far; False if that took too long."""
        milliseconds = int(timeout_seconds * 1000)
        spans = self.tracer_provider.force_flush(milliseconds)
        return self.logger_provider.force_flush(milliseconds) and spans


_lock = threading.Lock()
_pipeline: Pipeline | None = None


def current() -> Pipeline | None:
    """The pipeline of this process, or None before one was built."""
    return _pipeline


def build(
    *,
    service_name: str | None = None,
    environment: str | None = None,
    endpoint: str | None = None,
    redact: Redact | None = by_patterns,
) -> Pipeline:
    """Build the pipeline; later calls return the first one. Raises PipelineError for a protocol that is unknown."""
    global _pipeline  # noqa: PLW0603 - one pipeline per process is the point
    with _lock:
        if _pipeline is None:
            _pipeline = _build(service_name, environment, endpoint, redact)
        return _pipeline


def _build(service_name: str | None, environment: str | None, endpoint: str | None, redact: Redact | None) -> Pipeline:
    given = {semconv.SERVICE_NAME: service_name, semconv.ENVIRONMENT: environment}
    resource = Resource.create({key: value for key, value in given.items() if value is not None})
    target = endpoint or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or DEFAULT_ENDPOINT
    ledger, cleaner = Ledger(), Cleaner(redact)
    os.register_at_fork(after_in_child=ledger.forget)
    for name in _EXPORTER_LOGGERS:
        logging.getLogger(name).addHandler(ReasonHandler(ledger))
    logs = _logger_provider(resource)
    logs.add_log_record_processor(PromptLogProcessor(_log_exporter(endpoint), cleaner, ledger))
    spans = _tracer_provider(resource)
    spans.add_span_processor(RunStartedProcessor(logs))
    spans.add_span_processor(CountingSpanProcessor(ledger))
    spans.add_span_processor(BatchSpanProcessor(CleaningSpanExporter(_span_exporter(endpoint), cleaner, ledger)))
    return Pipeline(spans, logs, ledger, cleaner, target)


def _tracer_provider(resource: Resource) -> TracerProvider:
    present = trace.get_tracer_provider()
    if isinstance(present, TracerProvider):
        return present
    # Our own exit handler flushes within a time limit and reports; the SDK's would wait without one.
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    trace.set_tracer_provider(provider)
    return provider


def _logger_provider(resource: Resource) -> LoggerProvider:
    present = get_logger_provider()
    if isinstance(present, LoggerProvider):
        return present
    provider = LoggerProvider(resource=resource, shutdown_on_exit=False)
    set_logger_provider(provider)
    return provider


def protocol(signal: str) -> str:
    """``http/protobuf`` or ``grpc``, by the standard variables."""
    return (
        os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL")
        or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
        or "http/protobuf"
    )


def _span_exporter(endpoint: str | None) -> SpanExporter:
    arguments = _arguments("TRACES", endpoint, "v1/traces")
    if protocol("TRACES") == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc

        return Grpc(**arguments)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(**arguments)


def _log_exporter(endpoint: str | None) -> LogRecordExporter:
    arguments = _arguments("LOGS", endpoint, "v1/logs")
    if protocol("LOGS") == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as Grpc

        return Grpc(**arguments)
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter

    return OTLPLogExporter(**arguments)


def _arguments(signal: str, endpoint: str | None, path: str) -> dict[str, Any]:
    """What an exporter must be told; what the standard variables say it reads by itself."""
    kind = protocol(signal)
    if kind not in ("http/protobuf", "grpc"):
        raise PipelineError(
            f"The OTLP protocol {kind!r} is not supported. Set OTEL_EXPORTER_OTLP_PROTOCOL to http/protobuf or grpc."
        )
    named = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    if endpoint is None and any(os.environ.get(name) for name in named):
        return {}
    if kind == "grpc":
        return {"endpoint": endpoint or "http://127.0.0.1:4317", "insecure": not (endpoint or "").startswith("https")}
    return {"endpoint": f"{(endpoint or DEFAULT_ENDPOINT).rstrip('/')}/{path}"}
