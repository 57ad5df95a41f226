"""One running operation: its span, its place in the context, and how it ends.

Rules: an operation ends its span exactly once, whoever comes first. No token of a context is held while foreign code
runs that may leave the context (a generator's consumer, another task), so leaving never logs "created in a different
Context". An exception makes the span ERROR with ``error.type``; a cancellation is no error and says so
(``surefoot.cancelled``).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator, Mapping
from contextvars import Token
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext, SpanKind, Status, StatusCode

from surefoot.instrumentation import clock, semconv

Value: TypeAlias = "str | bool | int | float | list[str] | None"
CANCELLATIONS = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt)
SCOPE = "surefoot"
_INHERITED = "surefoot-inherited"


@dataclass(frozen=True, slots=True)
class Plan:
    """What an operation will be: everything that is known before it starts."""

    name: str
    kind: SpanKind
    attributes: Mapping[str, Value]
    # Attributes that operations inside this one get too (agent name, conversation).
    passes_on: Mapping[str, Value] = field(default_factory=dict)


class Operation:
    """A running operation. Made by the functions of ``surefoot.instrumentation``, not directly."""

    def __init__(self, plan: Plan) -> None:
        inherited = _inherited()
        attributes = {**inherited, **_given(plan.attributes)}
        self._span = trace.get_tracer(SCOPE).start_span(
            plan.name, kind=plan.kind, attributes=attributes, start_time=clock.virtual_unix_nano()
        )
        passed = {**inherited, **_given(plan.passes_on)}
        self._context = otel_context.set_value(_INHERITED, passed, trace.set_span_in_context(self._span))
        self._lock = threading.Lock()
        self._ended = False

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
        if error is not None and self._span.is_recording() and not _is_good_exit(error):
            self._record(error)
        self._span.end(end_time=clock.virtual_unix_nano())

    def __del__(self) -> None:
        """Collected without an end (an abandoned generator without an event loop): it was given up."""
        if not getattr(self, "_ended", True):
            self.end(GeneratorExit())

    def _record(self, error: BaseException) -> None:
        self._span.set_attribute(semconv.ERROR_TYPE, error_type(error))
        if isinstance(error, CANCELLATIONS):
            self._span.set_attribute(semconv.CANCELLED, True)
            return
        self._span.record_exception(error, timestamp=clock.virtual_unix_nano())
        self._span.set_status(Status(StatusCode.ERROR, str(error) or None))


def leave(token: Token[Context]) -> None:
    """Undo :meth:`Operation.attach`, also from another context, where there is nothing to undo and nothing to log."""
    with contextlib.suppress(ValueError):
        token.var.reset(token)


def _is_good_exit(error: BaseException) -> bool:
    """``sys.exit()`` and ``sys.exit(0)`` inside an operation end the program well, so they end the operation well."""
    return isinstance(error, SystemExit) and error.code in (None, 0)


def error_type(error: BaseException) -> str:
    """The class of an exception as ``error.type`` wants it: qualified, built-in ones without their module."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _given(values: Mapping[str, Value]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _inherited() -> Mapping[str, Value]:
    found = otel_context.get_value(_INHERITED)
    return found if isinstance(found, Mapping) else {}


class AgentRun(Operation):
    """A run of an agent, as its user sees it."""

    def set_confidence(self, confidence: float) -> None:
        """How sure the agent says it is, from 0 to 100, asked after the fact."""
        if not 0 <= confidence <= 100:
            raise ValueError(f"A run's confidence is between 0 and 100, not {confidence}.")
        self.set_attribute(semconv.RUN_CONFIDENCE, float(confidence))

    def set_usage(self, *, input_tokens: int | None = None, output_tokens: int | None = None) -> None:
        """Tokens of the whole run; only needed where model calls are not recorded themselves."""
        self.set_attribute(semconv.INPUT_TOKENS, input_tokens)
        self.set_attribute(semconv.OUTPUT_TOKENS, output_tokens)


class Workflow(Operation):
    """Several agents' runs under one name."""


class ToolCall(Operation):
    """One call of a tool."""

    def set_arguments(self, arguments: Any) -> None:
        """The call's arguments; kept only if content capture is on."""
        _set_content(self, semconv.TOOL_ARGUMENTS, arguments)

    def set_result(self, result: Any) -> None:
        """The call's result; kept only if content capture is on."""
        _set_content(self, semconv.TOOL_RESULT, result)


class ModelCall(Operation):
    """One call of a language model."""

    def set_usage(
        self,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cache_read_tokens: int | None = None,
        cache_write_tokens: int | None = None,
        reasoning_tokens: int | None = None,
    ) -> None:
        """Tokens of this call. ``input_tokens`` includes cached ones."""
        self.set_attribute(semconv.INPUT_TOKENS, input_tokens)
        self.set_attribute(semconv.OUTPUT_TOKENS, output_tokens)
        self.set_attribute(semconv.CACHE_READ_TOKENS, cache_read_tokens)
        self.set_attribute(semconv.CACHE_WRITE_TOKENS, cache_write_tokens)
        self.set_attribute(semconv.REASONING_TOKENS, reasoning_tokens)

    def set_response(
        self, *, model: str | None = None, response_id: str | None = None, finish_reasons: list[str] | None = None
    ) -> None:
        """What the provider answered with."""
        self.set_attribute(semconv.RESPONSE_MODEL, model)
        self.set_attribute(semconv.RESPONSE_ID, response_id)
        self.set_attribute(semconv.FINISH_REASONS, finish_reasons)

    def set_messages(self, *, input: Any = None, output: Any = None) -> None:  # noqa: A002 - the conventions' word
        """Messages in and out, in the conventions' JSON form; kept only if capture is on, never with reasoning."""
        _set_content(self, semconv.INPUT_MESSAGES, input)
        _set_content(self, semconv.OUTPUT_MESSAGES, output)


def _set_content(operation: Operation, key: str, content: Any) -> None:
    from surefoot.instrumentation.content import as_json, captures_on_spans

    if content is not None and operation.span.is_recording() and captures_on_spans():
        operation.set_attribute(key, as_json(content))
