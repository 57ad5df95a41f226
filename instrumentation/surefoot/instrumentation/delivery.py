"""From the SDK's spans and log records to an exporter: cleaned, in batches, counted.

``SpanDelivery`` and ``LogDelivery`` each own one exporter. Rule: what the program recorded either arrives or is missing
from the count; an exporter that fails or raises never disturbs the program.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from opentelemetry.context import Context
from opentelemetry.instrumentation.utils import suppress_instrumentation
from opentelemetry.sdk import environment_variables as names
from opentelemetry.sdk._logs import LogRecordProcessor, ReadableLogRecord, ReadWriteLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import set_span_in_context

from surefoot.instrumentation import emit, semconv
from surefoot.instrumentation.cancellations import Cancellations
from surefoot.instrumentation.cleaning import Cleaner
from surefoot.instrumentation.sender import Limits, Sender

SPANS: Final = "spans"
LOG_RECORDS: Final = "log records"

log = logging.getLogger("surefoot.instrumentation")
T = TypeVar("T")


class Delivery(Protocol):
    """What the end of the program asks of a processor here."""

    kind: str
    destination: str
    sender: Sender[Any]

    @property
    def trouble(self) -> str | None:
        """Why something did not arrive, as far as it is known."""


class Export(Generic[T]):
    """Calls an exporter the way a Sender wants it: None for success, else the reason.

    An exporter's result says only that it failed, so the reason is taken from its own log. ``trouble`` is the last one
    of the batch in progress: what a retry is waiting for.
    """

    def __init__(self, exporter: object, export: Callable[[Sequence[T]], object], success: object) -> None:
        self._export = export
        self._success = success
        self.trouble: str | None = None
        for kind in type(exporter).__mro__:
            if kind.__module__.startswith("opentelemetry.exporter."):
                logging.getLogger(kind.__module__).addFilter(self._listen)

    def __call__(self, batch: Sequence[T]) -> str | None:
        """Export a batch; never raises."""
        self.trouble = None
        try:
            # The exporter's own HTTP calls must not become spans.
            with suppress_instrumentation():
                result = self._export(batch)
        except Exception as error:  # noqa: BLE001 - a foreign exporter; the loss is counted, and named at exit
            log.warning("An export failed: %s: %s", type(error).__name__, error)
            return f"{type(error).__name__}: {error}"
        return None if result is self._success else self.trouble or "the exporter reported a failure"

    def _listen(self, record: logging.LogRecord) -> bool:
        """A logging filter that lets everything pass. The first trouble of a batch is the one that says most."""
        if record.levelno >= logging.WARNING and self.trouble is None:
            causes = [_root(argument) for argument in record.args or () if isinstance(argument, BaseException)]
            self.trouble = str(causes[0]) if causes else record.getMessage().partition("\n")[0]
        return True


def _root(error: BaseException) -> BaseException:
    """What was at the bottom of it: an HTTP library wraps "connection refused" four times."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error


class SpanDelivery(SpanProcessor):
    """Delivers sampled spans to one exporter."""

    kind = SPANS

    def __init__(self, exporter: SpanExporter, cleaner: Cleaner) -> None:
        self.destination = destination(exporter, "TRACES")
        self._exporter = exporter

        def export(batch: Sequence[ReadableSpan]) -> SpanExportResult:
            return exporter.export([cleaner.span(span) for span in batch])

        limits = _limits(
            names.OTEL_BSP_SCHEDULE_DELAY,
            5000,
            names.OTEL_BSP_MAX_EXPORT_BATCH_SIZE,
            512,
            names.OTEL_BSP_MAX_QUEUE_SIZE,
            2048,
        )
        self._export = Export(exporter, export, SpanExportResult.SUCCESS)
        self.sender: Sender[ReadableSpan] = Sender(SPANS, self._export, limits)
        self._cancellations = Cancellations()

    @property
    def trouble(self) -> str | None:
        """Why something did not arrive, as far as it is known."""
        return self._export.trouble or self.sender.reason

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002 - the interface's
        """Remember what was being handled when the span began."""
        self._cancellations.begin(span)

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a span that was sampled."""
        told = self._cancellations.told(span)  # of every span that began, or what is remembered of it would stay
        if span.context is not None and span.context.trace_flags.sampled:
            self.sender.put(told)

    def force_flush(self, timeout_millis: int | None = None) -> bool:
        """Deliver what has ended so far; False if that took longer than the limit or something did not arrive."""
        return self.sender.flush(30.0 if timeout_millis is None else timeout_millis / 1000)

    def shutdown(self) -> None:
        """End; what is still waiting is lost. The end of the program flushes first (``exit.py``)."""
        self.sender.close()
        self._exporter.shutdown()


class LogDelivery(LogRecordProcessor):
    """Delivers log records to one exporter; a run's start and verdicts at once, the rest in batches."""

    kind = LOG_RECORDS
    URGENT: Final = frozenset({semconv.RUN_STARTED_EVENT, semconv.EVALUATION_EVENT})

    def __init__(self, exporter: LogRecordExporter, cleaner: Cleaner) -> None:
        self.destination = destination(exporter, "LOGS")
        self._exporter = exporter

        def export(batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
            return exporter.export([cleaner.log(record) for record in batch])

        limits = _limits(
            names.OTEL_BLRP_SCHEDULE_DELAY,
            1000,
            names.OTEL_BLRP_MAX_EXPORT_BATCH_SIZE,
            512,
            names.OTEL_BLRP_MAX_QUEUE_SIZE,
            2048,
        )
        self._export = Export(exporter, export, LogRecordExportResult.SUCCESS)
        self.sender: Sender[ReadableLogRecord] = Sender(LOG_RECORDS, self._export, limits)

    @property
    def trouble(self) -> str | None:
        """Why something did not arrive, as far as it is known."""
        return self._export.trouble or self.sender.reason

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        """Queue a log record."""
        record = ReadableLogRecord(
            log_record=log_record.log_record,
            resource=log_record.resource or Resource.get_empty(),
            instrumentation_scope=log_record.instrumentation_scope,
            limits=log_record.limits,
        )
        self.sender.put(record, urgent=log_record.log_record.event_name in self.URGENT)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Deliver what was emitted so far; False if that took longer than the limit or something did not arrive."""
        return self.sender.flush(timeout_millis / 1000)

    def shutdown(self) -> None:
        """End; what is still waiting is lost. The end of the program flushes first (``exit.py``)."""
        self.sender.close()
        self._exporter.shutdown()


class RunStartedProcessor(SpanProcessor):
    """Sends the start event for agent runs that other instrumentations record. The SDK sends its own."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Recognise a run by its operation and say that it began.

        Google ADK sets attributes only after the start, so a span that has no operation yet is told by its name.
        """
        attributes = dict(span.attributes or {})
        operation, _, agent = span.name.partition(" ")
        if agent and attributes.setdefault(semconv.OPERATION_NAME, operation) == semconv.INVOKE_AGENT:
            attributes.setdefault(semconv.AGENT_NAME, agent)
        if attributes.get(semconv.OPERATION_NAME) != semconv.INVOKE_AGENT:
            return
        if span.instrumentation_scope is None or span.instrumentation_scope.name != emit.SCOPE:
            emit.run_started(attributes, set_span_in_context(span, parent_context))


_Exporter: TypeAlias = SpanExporter | LogRecordExporter


def destination(exporter: _Exporter, signal: str) -> str:
    """Where an exporter sends to, as the standard variables say it; for others than OTLP the exporter's name."""
    if not type(exporter).__module__.startswith("opentelemetry.exporter.otlp."):
        return type(exporter).__name__
    for variable in (f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT", names.OTEL_EXPORTER_OTLP_ENDPOINT):
        if os.environ.get(variable):
            return os.environ[variable]
    return "the default OTLP endpoint"


def _limits(delay: str, millis: int, batch: str, size: int, queue: str, capacity: int) -> Limits:
    """The limits of the SDK's batch processors, from the same variables."""
    items = _number(batch, size)
    return Limits(_number(delay, millis) / 1000, items, max(items, _number(queue, capacity)))


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable, "").strip()
    if not text:
        return default
    if not text.isdecimal() or int(text) == 0:
        log.warning("%s is %r, which is no number above 0; %d is used.", variable, text, default)
        return default
    return int(text)
