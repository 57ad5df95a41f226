"""For tests of programs that use the SDK: capture what it records, in memory, and choose the time.

    with capture() as captured, use_clock(VirtualClock(1_700_000_000)):
        my_agent()
    assert captured.span("invoke_agent my-agent").attributes["surefoot.task.class"] == "refund"

Real SDK objects do the work. OpenTelemetry lets a process set its providers once, so all captures of a process share
them and one capture is open at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from opentelemetry import trace
from opentelemetry._logs import LogRecord, get_logger_provider, set_logger_provider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from surefoot.instrumentation.clock import VirtualClock, use_clock

__all__ = ["Capture", "VirtualClock", "capture", "use_clock"]


class Capture:
    """What was recorded, in the order in which spans ended and events were sent."""

    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        self._logs = InMemoryLogRecordExporter()
        tracers, loggers = trace.get_tracer_provider(), get_logger_provider()
        if not isinstance(tracers, TracerProvider):
            tracers = TracerProvider()
            trace.set_tracer_provider(tracers)
        if not isinstance(loggers, LoggerProvider):
            loggers = LoggerProvider()
            set_logger_provider(loggers)
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        loggers.add_log_record_processor(SimpleLogRecordProcessor(self._logs))

    def clear(self) -> None:
        """Forget everything."""
        self._spans.clear()
        self._logs.clear()

    def spans(self) -> list[ReadableSpan]:
        """All spans that ended."""
        return list(self._spans.get_finished_spans())

    def span(self, name: str) -> ReadableSpan:
        """The one span of this name. Raises LookupError, with the names there are, if there is none or several."""
        found = [span for span in self.spans() if span.name == name]
        if len(found) != 1:
            raise LookupError(f"{len(found)} spans are named {name!r}; recorded: {[s.name for s in self.spans()]}")
        return found[0]

    def events(self, name: str) -> list[LogRecord]:
        """The log events of this name."""
        records = (readable.log_record for readable in self._logs.get_finished_logs())
        return [record for record in records if record.event_name == name]


_capture: Capture | None = None


@contextlib.contextmanager
def capture() -> Iterator[Capture]:
    """Capture what is recorded inside; what was captured before is forgotten."""
    global _capture  # noqa: PLW0603 - providers are set once per process
    if _capture is None:
        _capture = Capture()
    _capture.clear()
    yield _capture
