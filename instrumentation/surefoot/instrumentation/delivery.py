"""Exporters and processors that count: what was made, what arrived, and why the rest did not.

``Ledger`` counts spans and log records when they end and when an export succeeds. The difference at exit is what was
lost, and it is said in one line.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Sequence
from typing import Final

from opentelemetry._logs import LogRecord
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, Context, attach, detach, set_value
from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor, ReadableLogRecord, ReadWriteLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from surefoot.instrumentation import clock, semconv
from surefoot.instrumentation.operation import SCOPE
from surefoot.instrumentation.redaction import Cleaner

_QUEUE: Final = 8192
_BATCH: Final = 512


class Ledger:
    """How many items were made and how many arrived, by kind. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made = {"spans": 0, "log records": 0}
        self._delivered = {"spans": 0, "log records": 0}
        self.reason: str | None = None

    def made(self, kind: str) -> None:
        """One more item ended."""
        with self._lock:
            self._made[kind] += 1

    def delivered(self, kind: str, number: int) -> None:
        """``number`` items were acknowledged."""
        with self._lock:
            self._delivered[kind] += number

    def failed(self, reason: str) -> None:
        """Remember why an export failed; the last reason is the one shown."""
        self.reason = reason

    def missing(self) -> dict[str, int]:
        """Items that ended and did not arrive, by kind, without the kinds of which none is missing."""
        with self._lock:
            gaps = {kind: self._made[kind] - self._delivered[kind] for kind in self._made}
        return {kind: gap for kind, gap in gaps.items() if gap > 0}

    def forget(self) -> None:
        """Start again from zero: after a fork the parent delivers what it made."""
        self.__init__()  # type: ignore[misc] - the same fields, fresh


class CountingSpanProcessor(SpanProcessor):
    """Counts sampled spans as they end. Stands before the batch processor."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def on_end(self, span: ReadableSpan) -> None:
        """Count a span that will be exported."""
        if span.context is not None and span.context.trace_flags.sampled:
            self._ledger.made("spans")


class CleaningSpanExporter(SpanExporter):
    """Cleans spans and counts those that arrive."""

    def __init__(self, inner: SpanExporter, cleaner: Cleaner, ledger: Ledger) -> None:
        self._inner = inner
        self._cleaner = cleaner
        self._ledger = ledger

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export cleaned copies."""
        result = self._inner.export([self._cleaner.span(span) for span in spans])
        if result is SpanExportResult.SUCCESS:
            self._ledger.delivered("spans", len(spans))
        return result

    def shutdown(self) -> None:
        """Shut the inner exporter down."""
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the inner exporter."""
        return self._inner.force_flush(timeout_millis)


class PromptLogProcessor(LogRecordProcessor):
    """Exports log records from a thread of its own as soon as they come, together if several wait.

    A run's start must not wait for a batch to fill: a killed agent never sends anything later.
    """

    def __init__(self, exporter: LogRecordExporter, cleaner: Cleaner, ledger: Ledger) -> None:
        self._exporter = exporter
        self._cleaner = cleaner
        self._ledger = ledger
        self._shut = False
        self._start()
        os.register_at_fork(after_in_child=self._start)

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        """Queue a record; a full queue drops it, and the ledger shows it at exit."""
        if self._shut:
            return
        self._ledger.made("log records")
        readable = ReadableLogRecord(
            log_record=log_record.log_record,
            resource=log_record.resource,  # type: ignore[arg-type] - a logger always sets it
            instrumentation_scope=log_record.instrumentation_scope,
            limits=log_record.limits,
        )
        try:
            self._queue.put_nowait(readable)
        except queue.Full:
            self._ledger.failed("the queue of log records was full")

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Wait until everything queued before this call was exported or refused."""
        done = threading.Event()
        self._queue.put(done)
        return done.wait(timeout_millis / 1000)

    def shutdown(self) -> None:
        """Export what waits and end."""
        self._shut = True
        self._queue.put(None)
        self._thread.join(5)
        self._exporter.shutdown()

    def _start(self) -> None:
        self._queue: queue.Queue[ReadableLogRecord | threading.Event | None] = queue.Queue(_QUEUE)
        self._thread = threading.Thread(target=self._work, name="surefoot-logs", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        running = True
        while running:
            batch, flushed, running = self._take()
            if batch:
                self._export(batch)
            if flushed is not None:
                flushed.set()

    def _take(self) -> tuple[list[ReadableLogRecord], threading.Event | None, bool]:
        """What is waiting: records, then perhaps somebody who waits for them; False once nothing more will come."""
        batch: list[ReadableLogRecord] = []
        while len(batch) < _BATCH:
            try:
                item = self._queue.get(block=not batch)
            except queue.Empty:
                break
            if item is None:
                return batch, None, False
            if isinstance(item, threading.Event):
                return batch, item, True
            batch.append(item)
        return batch, None, True

    def _export(self, batch: list[ReadableLogRecord]) -> None:
        token = attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        try:
            if self._exporter.export([self._cleaner.log(record) for record in batch]) is LogRecordExportResult.SUCCESS:
                self._ledger.delivered("log records", len(batch))
        except Exception as error:  # noqa: BLE001 - the thread must go on; the failure is reported at exit
            self._ledger.failed(f"{type(error).__name__}: {error}")
        finally:
            detach(token)


class RunStartedProcessor(SpanProcessor):
    """Sends ``surefoot.run.started`` when a span begins that is an agent run, whoever made it.

    A root span is exported only when it ends, and a killed agent ends none. This event is what says that it began.
    """

    _SENT = frozenset({semconv.AGENT_NAME, semconv.AGENT_VERSION, semconv.CONVERSATION_ID, semconv.OPERATION_NAME})

    def __init__(self, provider: LoggerProvider) -> None:
        self._logger = provider.get_logger(SCOPE)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Send the event for a run span."""
        del parent_context
        attributes = span.attributes or {}
        if attributes.get(semconv.OPERATION_NAME) != semconv.INVOKE_AGENT or span.context is None:
            return
        now = clock.unix_nano()
        self._logger.emit(
            LogRecord(
                timestamp=now,
                observed_timestamp=now,
                trace_id=span.context.trace_id,
                span_id=span.context.span_id,
                trace_flags=span.context.trace_flags,
                event_name=semconv.RUN_STARTED_EVENT,
                attributes={
                    key: value for key, value in attributes.items() if key in self._SENT or key.startswith("surefoot.")
                },
            )
        )


class ReasonHandler(logging.Handler):
    """Listens to the exporters' own log to learn why an export failed; exporters tell only success or failure."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(logging.WARNING)
        self._ledger = ledger

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the first line of a warning or error."""
        self._ledger.failed(record.getMessage().splitlines()[0][:200])
