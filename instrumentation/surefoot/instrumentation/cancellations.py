"""Spans of other instrumentations that a cancellation ends, told as such.

OpenTelemetry records exceptions and a cancellation is none, so a cancelled run of pydantic-ai, Google ADK or
openai-agents looks as if all had gone well. A span ends while the cancellation passes through the code around it, so
that is when it can be seen. Rule: only what passes through counts, and not what was being handled before the span
began, or work that cleans up after a cancellation would be cancelled too. The closing of a generator counts for
nothing: frameworks close theirs when all went well.
"""

from __future__ import annotations

import sys
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan, Span
from opentelemetry.trace import StatusCode

from surefoot.instrumentation import emit, semconv
from surefoot.instrumentation.cleaning import CleanSpan

# By name, so that asyncio is not imported for it.
_NAMES: Final = frozenset({"CancelledError", "KeyboardInterrupt"})


class Cancellations:
    """Sees which spans end by a cancellation."""

    def __init__(self) -> None:
        self._before: dict[int, int] = {}  # span id -> what was being handled when the span began

    def begin(self, span: Span) -> None:
        """Call when a span begins, where it begins."""
        handled = sys.exception()
        if handled is not None and span.context is not None:
            self._before[span.context.span_id] = id(handled)

    def told(self, span: ReadableSpan) -> ReadableSpan:
        """The span, or a copy that says that it was cancelled. Call when it ends, where it ends."""
        before = self._before.pop(span.context.span_id, None) if span.context is not None else None
        passing = sys.exception()
        if passing is None or type(passing).__name__ not in _NAMES or id(passing) == before:
            return span
        attributes = dict(span.attributes or {})
        scope = span.instrumentation_scope
        known = semconv.ERROR_TYPE in attributes or span.status.status_code is StatusCode.ERROR
        if known or semconv.OPERATION_NAME not in attributes or (scope is not None and scope.name == emit.SCOPE):
            return span
        attributes |= {semconv.CANCELLED: True, semconv.ERROR_TYPE: type(passing).__name__}
        return CleanSpan(span, attributes=attributes, events=span.events, links=span.links, status=span.status)
