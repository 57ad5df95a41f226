"""One running operation: its span, its place in the context, and how it ends.

Rules: an operation ends its span exactly once, whoever comes first. No token of a context is held while foreign code
runs that may leave the context (a generator's consumer, another task), so leaving never logs "created in a different
Context". An exception makes the span ERROR with ``error.type``; a cancellation is no error and says so
(``surefoot.cancelled``).
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextvars import Token
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext, SpanKind, Status, StatusCode

from surefoot.instrumentation import clock, emit, semconv

Value: TypeAlias = "str | bool | int | float | Sequence[str] | None"
# Where the context keeps what operations inside inherit.
_INHERITED = "surefoot-inherited"


@dataclass(frozen=True, slots=True)
class Plan:
    """What an operation will be: everything that is known before it starts. Values that are None are not recorded."""

    name: str
    kind: SpanKind
    attributes: Mapping[str, Value]
    # Offered to operations inside this one; each takes what its conventions want.
    passes_on: Mapping[str, Value] = field(default_factory=dict)
    inherits: frozenset[str] = frozenset({semconv.CONVERSATION_ID})


class Operation:
    """A running operation. Made by the functions of ``surefoot.instrumentation``, not directly."""

    def __init__(self, plan: Plan) -> None:
        offered = _inherited()
        attributes = {key: value for key, value in offered.items() if key in plan.inherits}
        attributes.update(_given(plan.attributes))
        self._span = emit.tracer.start_span(
            plan.name, kind=plan.kind, attributes=attributes, start_time=clock.virtual_unix_nano()
        )
        self._context = trace.set_span_in_context(self._span)
        if plan.passes_on:
            passed = {**offered, **_given(plan.passes_on)}
            self._context = otel_context.set_value(_INHERITED, passed, self._context)
        self._lock = threading.Lock()
        self._ended = False
        if self._span.is_recording():
            self._started(attributes)

    @property
    def span(self) -> Span:
        """The OpenTelemetry span."""
        return self._span

    @property
    def span_context(self) -> SpanContext:
        """Ids of the span, to attach a verdict later."""
        return self._span.get_span_context()

    def set_attribute(self, key: str, value: Value) -> None:
        """Set any attribute; None is ignored."""
        if value is not None:
            self._span.set_attribute(key, value)

    def checkpoint(self, name: str) -> None:
        """Note that a state was reached from which the work could be resumed or checked."""
        self._span.set_attribute(semconv.CHECKPOINT, name)
        self._span.add_event(semconv.CHECKPOINT, {"name": name}, timestamp=clock.virtual_unix_nano())

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Make this operation the current one while inside."""
        token = otel_context.attach(self._context)
        try:
            yield
        finally:
            leave(token)

    def attach(self) -> Token[Context]:
        """Make this operation the current one; give the token to :func:`leave`."""
        return otel_context.attach(self._context)

    def end(self, error: BaseException | None = None) -> None:
        """End the span; only the first call counts."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
        if self._span.is_recording():
            if error is not None and not _is_good_exit(error):
                self._record(error)
            self._ending()
        self._span.end(end_time=clock.virtual_unix_nano())

    def __del__(self) -> None:
        """Collected without an end (a generator abandoned without an event loop): it was given up."""
        if not getattr(self, "_ended", True):
            self.end(GeneratorExit())

    def _started(self, attributes: Mapping[str, Any]) -> None:
        """For subclasses: the span records and has just begun."""

    def _ending(self) -> None:
        """For subclasses: the span records and is about to end."""

    def _record(self, error: BaseException) -> None:
        self._span.set_attribute(semconv.ERROR_TYPE, error_type(error))
        if is_cancellation(error):
            self._span.set_attribute(semconv.CANCELLED, True)
            return
        self._span.record_exception(error, timestamp=clock.virtual_unix_nano())
        self._span.set_status(Status(StatusCode.ERROR, str(error) or None))


def leave(token: Token[Context]) -> None:
    """Undo :meth:`Operation.attach`, also from another context, where there is nothing to undo and nothing to log."""
    with contextlib.suppress(ValueError):
        token.var.reset(token)


def is_cancellation(error: BaseException) -> bool:
    """Whether somebody stopped the work, rather than the work failing."""
    if isinstance(error, (GeneratorExit, KeyboardInterrupt)):
        return True
    # Importing asyncio costs more than the rest of this package; who raised its exception has imported it.
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


def error_type(error: BaseException) -> str:
    """The class of an exception as ``error.type`` wants it: qualified, built-in ones without their module."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _is_good_exit(error: BaseException) -> bool:
    """``sys.exit()`` and ``sys.exit(0)`` inside an operation end the program well, so they end the operation well."""
    return isinstance(error, SystemExit) and error.code in (None, 0)


def _given(values: Mapping[str, Value]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _inherited() -> Mapping[str, Any]:
    found = otel_context.get_value(_INHERITED)
    return found if isinstance(found, Mapping) else {}
