"""Sets up the telemetry pipeline: OpenTelemetry's own reading of ``OTEL_*``, with Surefoot's delivery at its end.

One pipeline per process. Without ``OTEL_*`` variables telemetry goes to a collector on this machine over OTLP/HTTP, and
metrics are off. If the program set its own TracerProvider, Surefoot's processors are added to that one and it is left
in charge of everything else.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

from opentelemetry import trace
from opentelemetry._logs import get_logger_provider, set_logger_provider
from opentelemetry.sdk import _configuration as configuration
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import LogRecordExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter

from surefoot.instrumentation.cleaning import Cleaner
from surefoot.instrumentation.delivery import Delivery, LogDelivery, RunStartedProcessor, SpanDelivery
from surefoot.instrumentation.errors import PipelineError
from surefoot.instrumentation.redaction import Redaction

ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
PROTOCOL: Final = "OTEL_EXPORTER_OTLP_PROTOCOL"
OPT_IN: Final = "OTEL_SEMCONV_STABILITY_OPT_IN"
_DEFAULT_ENDPOINTS: Final = {"http/protobuf": "http://127.0.0.1:4318", "grpc": "http://127.0.0.1:4317"}

log = logging.getLogger("surefoot.instrumentation")


@dataclass(slots=True, eq=False, weakref_slot=True)
class Pipeline:
    """What was set up: the cleaner and one delivery per exporter."""

    cleaner: Cleaner
    deliveries: list[Delivery] = field(default_factory=list)

    def spans(self, exporter: SpanExporter, *_: Any, **__: Any) -> SpanDelivery:
        """A processor that delivers to ``exporter``, in the form that OpenTelemetry's configuration asks for."""
        delivery = SpanDelivery(exporter, self.cleaner)
        self.deliveries.append(delivery)
        return delivery

    def logs(self, exporter: LogRecordExporter, *_: Any, **__: Any) -> LogDelivery:
        """As :meth:`spans`, for log records."""
        delivery = LogDelivery(exporter, self.cleaner)
        self.deliveries.append(delivery)
        return delivery

    def flush(self, seconds: float) -> bool:
        """Deliver what was recorded so far; False if that took longer than ``seconds`` or something did not arrive."""
        deadline = time.monotonic() + seconds
        for delivery in self.deliveries:
            delivery.sender.hurry()
        arrived = [delivery.sender.flush(deadline - time.monotonic()) for delivery in self.deliveries]
        return all(arrived)


_lock = threading.Lock()
_pipeline: Pipeline | None = None


def current() -> Pipeline | None:
    """The pipeline of this process, or None before one was set up."""
    return _pipeline


def set_defaults(environ: MutableMapping[str, str]) -> None:
    """Fill in what ``OTEL_*`` variables leave open. Like every distro's, these defaults reach child processes too."""
    environ.setdefault("OTEL_TRACES_EXPORTER", "otlp")
    environ.setdefault("OTEL_LOGS_EXPORTER", "otlp")
    protocol = environ.setdefault(PROTOCOL, "http/protobuf")
    own = {environ.get(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", protocol) for signal in ("TRACES", "LOGS")}
    if own == {protocol} and protocol in _DEFAULT_ENDPOINTS:
        environ.setdefault(ENDPOINT, _DEFAULT_ENDPOINTS[protocol])
    opted = [word.strip() for word in environ.get(OPT_IN, "").split(",") if word.strip()]
    if not any(word.startswith("gen_ai") for word in opted):
        environ[OPT_IN] = ",".join([*opted, "gen_ai_latest_experimental"])


def start(
    *,
    resource_attributes: dict[str, str] | None = None,
    redaction: Redaction | None,
    auto_instrumentation_version: str | None = None,
) -> Pipeline:
    """Set the pipeline up, once per process; later calls return the first one.

    Raises PipelineError if an exporter that ``OTEL_*`` names cannot be had, or if the program's TracerProvider is not
    the SDK's and so cannot take processors.
    """
    global _pipeline  # noqa: PLW0603 - one pipeline per process is the point
    with _lock:
        if _pipeline is not None:
            return _pipeline
        set_defaults(os.environ)
        pipeline = Pipeline(Cleaner(redaction))
        present = trace.get_tracer_provider()
        try:
            if isinstance(present, trace.ProxyTracerProvider):
                _Standard().configure(  # type: ignore[no-untyped-call]  # the base class is not annotated
                    auto_instrumentation_version=auto_instrumentation_version,
                    resource_attributes=resource_attributes,
                    span_processors=[RunStartedProcessor()],
                    export_span_processor=pipeline.spans,
                    export_log_record_processor=pipeline.logs,
                )
            else:
                _join(pipeline, present)
        except (RuntimeError, ImportError) as error:
            raise PipelineError(
                f"The exporters that OTEL_* variables ask for cannot be set up: {error}. For gRPC install "
                f"opentelemetry-exporter-otlp-proto-grpc, or set {PROTOCOL}=http/protobuf."
            ) from error
        _pipeline = pipeline
        return pipeline


class _Standard(configuration._OTelSDKConfigurator):  # noqa: SLF001 - "distros should subclass this Configurator"
    """OpenTelemetry's own set-up from ``OTEL_*``: resource, sampler, limits, exporters."""


def _join(pipeline: Pipeline, provider: object) -> None:
    """Add Surefoot's processors to a provider that the program set itself."""
    if not isinstance(provider, TracerProvider):
        raise PipelineError(
            f"The program's own tracer provider, a {type(provider).__module__}.{type(provider).__qualname__}, takes no "
            "processors. Call Surefoot's init() before it is set, or set OpenTelemetry's SDK TracerProvider."
        )
    log.warning("The program set its own TracerProvider: it keeps its resource and sampler, Surefoot only exports.")
    # The same names in OTEL_* must mean the same exporters as when the pipeline is all ours.
    wanted = [configuration._get_exporter_names(signal) for signal in ("traces", "logs")]  # noqa: SLF001
    spans, _, logs = configuration._import_exporters(wanted[0], [], wanted[1])  # noqa: SLF001
    provider.add_span_processor(RunStartedProcessor())
    for span_exporter in spans.values():
        provider.add_span_processor(pipeline.spans(span_exporter()))
    logger_provider = get_logger_provider()
    if not isinstance(logger_provider, LoggerProvider):
        logger_provider = LoggerProvider(resource=provider.resource)
        set_logger_provider(logger_provider)
    for log_exporter in logs.values():
        logger_provider.add_log_record_processor(pipeline.logs(log_exporter()))
