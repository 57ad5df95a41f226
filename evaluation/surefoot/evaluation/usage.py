"""What an attempt used, read off its own spans: tokens, cost, calls, tools in order, effects.

Works for whatever emits GenAI spans in the attempt's process, the SDK and other instrumentations alike. Rule: a call
whose price nobody knows makes the attempt's cost unknown, never smaller. A call whose effect the suite rules out is
ended as its span begins, before the tool does anything: to have seen it afterwards would be too late.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import StatusCode

from surefoot.evaluation.errors import EffectsError
from surefoot.instrumentation import semconv

# What a tool may not do where the suite says that its tools have no effects.
EFFECTS: Final = frozenset({"write", "irreversible"})


@dataclass(slots=True)
class Used:
    """The sums of one trace; None where no span told."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    unpriced: int = 0
    model_calls: int = 0
    tool_errors: int = 0
    actions: list[str] = field(default_factory=list)
    effects: set[str] = field(default_factory=set)
    refused: frozenset[str] = frozenset()  # effects that no call may have


class UsageProcessor(SpanProcessor):
    """Keeps the sums of the traces that somebody watches."""

    def __init__(self) -> None:
        self._watched: dict[int, Used] = {}
        self._lock = threading.Lock()

    def watch(self, trace_id: int, refused: frozenset[str] = frozenset()) -> Used:
        """Begin to count a trace. Tools that say one of the ``refused`` effects are not called."""
        with self._lock:
            return self._watched.setdefault(trace_id, Used(refused=refused))

    def forget(self, trace_id: int) -> None:
        """Stop counting it."""
        with self._lock:
            self._watched.pop(trace_id, None)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Note a tool's call in the order in which calls begin. Raises EffectsError in place of one that is refused."""
        del parent_context
        used = self._watched.get(span.get_span_context().trace_id)
        attributes = span.attributes or {}
        if used is None or attributes.get(semconv.OPERATION_NAME) != semconv.EXECUTE_TOOL:
            return
        name, effect = str(attributes.get(semconv.TOOL_NAME, span.name)), str(attributes.get(semconv.TOOL_EFFECT, ""))
        with self._lock:
            used.actions.append(name)
            if effect:
                used.effects.add(effect)
        if effect in used.refused:
            raise EffectsError(f"The suite says that its tools have no effects, so {name} ({effect}) was not called.")

    def on_end(self, span: ReadableSpan) -> None:
        """Add a model call's tokens, or a tool's error."""
        context = span.get_span_context()
        used = None if context is None else self._watched.get(context.trace_id)
        if used is None:
            return
        attributes = span.attributes or {}
        operation = attributes.get(semconv.OPERATION_NAME)
        with self._lock:
            if operation == semconv.EXECUTE_TOOL and span.status.status_code is StatusCode.ERROR:
                used.tool_errors += 1
            elif operation in semconv.MODEL_OPERATIONS:
                _add_call(used, attributes)

    def shutdown(self) -> None:
        """Nothing to end."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Nothing to flush."""
        del timeout_millis
        return True


def _add_call(used: Used, attributes: Mapping[str, Any]) -> None:
    used.model_calls += 1
    into, out = attributes.get(semconv.INPUT_TOKENS), attributes.get(semconv.OUTPUT_TOKENS)
    if into is None and out is None:
        used.unpriced += 1
        return
    used.input_tokens = (used.input_tokens or 0) + int(into or 0)
    used.output_tokens = (used.output_tokens or 0) + int(out or 0)
    model = attributes.get(semconv.RESPONSE_MODEL) or attributes.get(semconv.REQUEST_MODEL)
    price = _price(str(model), attributes.get(semconv.PROVIDER_NAME), int(into or 0), int(out or 0))
    if price is None:
        used.unpriced += 1
    else:
        used.cost_usd = (used.cost_usd or 0.0) + price


def _price(model: str, provider: Any, into: int, out: int) -> float | None:
    # Its import takes half as long as that of everything else of a worker.
    from genai_prices import Usage, calc_price

    for known_as in (provider, None):
        try:
            usage = Usage(input_tokens=into, output_tokens=out)
            return float(calc_price(usage, model, provider_id=known_as).total_price)
        except LookupError:
            continue
    return None
