"""The kinds of operations, and what each can be told while it runs.

Message content is kept only where capture is on, and never with a model's reasoning (``content.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from surefoot.instrumentation import emit, semconv
from surefoot.instrumentation.operation import Operation, Plan


class AgentRun(Operation):
    """A run of an agent, as its user sees it."""

    def set_confidence(self, confidence: float) -> None:
        """How sure the agent says it is, from 0 to 100, asked after the fact. Raises ValueError outside of that."""
        if not 0 <= confidence <= 100:
            raise ValueError(f"A run's confidence is between 0 and 100, not {confidence}.")
        self.set_attribute(semconv.RUN_CONFIDENCE, float(confidence))

    def set_usage(self, *, input_tokens: int | None = None, output_tokens: int | None = None) -> None:
        """Tokens of the whole run; only needed where model calls are not recorded themselves."""
        self.set_attribute(semconv.INPUT_TOKENS, input_tokens)
        self.set_attribute(semconv.OUTPUT_TOKENS, output_tokens)

    def set_messages(self, *, input: Any = None, output: Any = None) -> None:  # noqa: A002 - the conventions' word
        """What the run was asked and what it answered, in the conventions' JSON form; kept only if capture is on."""
        _set_content(self, semconv.INPUT_MESSAGES, input)
        _set_content(self, semconv.OUTPUT_MESSAGES, output)

    def _started(self, attributes: Mapping[str, Any]) -> None:
        emit.run_started(attributes, self._context)


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

    def __init__(self, plan: Plan) -> None:
        # Content for the event, and what the event says beside it; only filled where events are to carry content.
        self._event_content: dict[str, Any] = {}
        self._event_attributes = dict(plan.attributes)
        super().__init__(plan)

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
        self,
        *,
        model: str | None = None,
        response_id: str | None = None,
        finish_reasons: Sequence[str] | None = None,
        time_to_first_chunk: float | None = None,
    ) -> None:
        """What the provider answered with. ``time_to_first_chunk`` in seconds, for streams."""
        self.set_attribute(semconv.RESPONSE_MODEL, model)
        self.set_attribute(semconv.RESPONSE_ID, response_id)
        self.set_attribute(semconv.FINISH_REASONS, finish_reasons)
        self.set_attribute(semconv.TIME_TO_FIRST_CHUNK, time_to_first_chunk)
        if response_id is not None:
            self._event_attributes[semconv.RESPONSE_ID] = response_id

    def set_messages(self, *, input: Any = None, output: Any = None) -> None:  # noqa: A002 - the conventions' word
        """Messages in and out, in the conventions' JSON form; kept only if capture is on, never with reasoning."""
        for key, messages in ((semconv.INPUT_MESSAGES, input), (semconv.OUTPUT_MESSAGES, output)):
            _set_content(self, key, messages)
            _set_event_content(self, self._event_content, key, messages)

    def _ending(self) -> None:
        if self._event_content:
            known = {key: value for key, value in self._event_attributes.items() if value is not None}
            emit.log_event(semconv.INFERENCE_EVENT, {**known, **self._event_content}, self._context)


def _set_content(operation: Operation, key: str, content: Any) -> None:
    if content is None or not operation.span.is_recording():
        return
    from surefoot.instrumentation.content import as_json, capture_mode

    if capture_mode().spans:
        operation.set_attribute(key, as_json(content))


def _set_event_content(operation: Operation, kept: dict[str, Any], key: str, content: Any) -> None:
    if content is None or not operation.span.is_recording():
        return
    from surefoot.instrumentation.content import capture_mode, without_reasoning

    if capture_mode().events:
        kept[key] = without_reasoning(content)
