"""Verdicts on runs: the conventions' ``gen_ai.evaluation.result`` log event, from any grader, at any time.

A verdict may come long after its run: it is tied to the evaluated span by that span's ids, or to a model call by its
response id. Outcome ("was the final state acceptable") and process ("were the rules kept") verdicts are separate.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar, cast

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from surefoot.instrumentation import emit, semconv
from surefoot.instrumentation.operation import error_type, is_cancellation

P = ParamSpec("P")
R = TypeVar("R")
Kind: TypeAlias = Literal["outcome", "process", "other"]
Finality: TypeAlias = Literal["provisional", "final"]
GraderKind: TypeAlias = Literal["human", "executable", "model"]


def record_evaluation(
    name: str,
    *,
    label: str | None = None,
    score: float | None = None,
    explanation: str | None = None,
    kind: Kind | None = None,
    finality: Finality | None = None,
    severity: str | None = None,
    grader_name: str | None = None,
    grader_version: str | None = None,
    grader_kind: GraderKind | None = None,
    supersedes: str | None = None,
    span_context: SpanContext | None = None,
    trace_id: str | None = None,
    span_id: str | None = None,
    response_id: str | None = None,
    error: BaseException | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> None:
    """Record one verdict.

    On what: the span of ``span_context``, or of ``trace_id`` (32 hex digits) and ``span_id`` (16), or the model call of
    ``response_id``; without any of these the current span. ``label`` is the verdict's word (pass, fail, ...), ``score``
    a number; ``error`` is what kept the grader from giving one. ``supersedes`` is the id of the verdict that this one
    replaces.

    Raises ValueError if there is neither a label nor a score nor an error, or if an id is not hexadecimal.
    """
    if label is None and score is None and error is None:
        raise ValueError(f"The evaluation {name!r} needs a label, a score, or the error that prevented one.")
    told = {
        **(attributes or {}),
        semconv.EVALUATION_NAME: name,
        semconv.EVALUATION_LABEL: label,
        semconv.EVALUATION_SCORE: None if score is None else float(score),
        semconv.EVALUATION_EXPLANATION: explanation,
        semconv.EVALUATION_KIND: kind,
        semconv.EVALUATION_FINALITY: finality,
        semconv.EVALUATION_SEVERITY: severity,
        semconv.EVALUATION_SUPERSEDES: supersedes,
        semconv.EVALUATOR_NAME: grader_name,
        semconv.EVALUATOR_VERSION: grader_version,
        semconv.EVALUATOR_KIND: grader_kind,
        semconv.RESPONSE_ID: response_id,
        semconv.ERROR_TYPE: None if error is None else error_type(error),
    }
    emit.log_event(
        semconv.EVALUATION_EVENT,
        {key: value for key, value in told.items() if value is not None},
        _evaluated(span_context, trace_id, span_id, response_id),
    )


def _evaluated(
    span_context: SpanContext | None, trace_id: str | None, span_id: str | None, response_id: str | None
) -> Context | None:
    """The context that the event belongs to; None means the current one."""
    if span_context is None and trace_id is not None:
        span_context = SpanContext(
            int(trace_id, 16), int(span_id or "0", 16), is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED)
        )
    if span_context is not None:
        return trace.set_span_in_context(NonRecordingSpan(span_context), Context())
    if response_id is not None:
        # The current span is the grader's, not that of the response.
        return trace.set_span_in_context(trace.INVALID_SPAN, Context())
    return None


@dataclass(slots=True)
class Evaluation:
    """A grader at work; set what it found, the verdict is recorded when the block ends."""

    label: str | None = None
    score: float | None = None
    explanation: str | None = None


class evaluation:  # noqa: N801 - reads as a function where it is used
    """Grade inside a ``with`` block, or decorate a grader.

    A grader returns (or, as a generator, yields, once per verdict) a bool, a score, a label, or one of them with an
    explanation as a pair. Takes the keyword arguments of :func:`record_evaluation` except label, score, explanation and
    error. A grader that raises is recorded as an evaluation that failed, and the exception goes on; one that is
    cancelled has no verdict.
    """

    def __init__(self, name: str, **details: Any) -> None:
        self._name = name
        self._details = details
        self._entered: list[Any] = []

    def __enter__(self) -> Evaluation:
        self._entered.append(self._grading())
        return cast("Evaluation", self._entered[-1].__enter__())

    def __exit__(self, *how: Any) -> None:
        self._entered.pop().__exit__(*how)

    async def __aenter__(self) -> Evaluation:
        return self.__enter__()

    async def __aexit__(self, *how: Any) -> None:
        self.__exit__(*how)

    def __call__(self, grader: Callable[P, R]) -> Callable[P, R]:
        """Decorate a grader: a function, a coroutine function, or a generator function of either kind."""
        wrapper: Callable[..., Any]
        if inspect.isasyncgenfunction(grader):
            wrapper = self._async_generator(grader)
        elif inspect.iscoroutinefunction(grader):
            wrapper = self._coroutine(grader)
        elif inspect.isgeneratorfunction(grader):
            wrapper = self._generator(grader)
        else:
            wrapper = self._function(grader)
        return cast("Callable[P, R]", functools.wraps(grader)(wrapper))

    @contextmanager
    def _grading(self) -> Iterator[Evaluation]:
        found = Evaluation()
        try:
            yield found
        except BaseException as error:
            self._failed(error)
            raise
        self._record(found)

    def _function(self, grader: Callable[..., Any]) -> Callable[..., Any]:
        def grade(*args: Any, **kwargs: Any) -> Any:
            with self._grading() as found:
                result = grader(*args, **kwargs)
                _fill(found, result)
            return result

        return grade

    def _coroutine(self, grader: Callable[..., Any]) -> Callable[..., Any]:
        async def grade(*args: Any, **kwargs: Any) -> Any:
            with self._grading() as found:
                result = await grader(*args, **kwargs)
                _fill(found, result)
            return result

        return grade

    def _generator(self, grader: Callable[..., Any]) -> Callable[..., Any]:
        def grade(*args: Any, **kwargs: Any) -> Iterator[Any]:
            verdicts = grader(*args, **kwargs)
            try:
                for result in verdicts:
                    self._record(_fill(Evaluation(), result))
                    yield result
            except BaseException as error:
                self._failed(error)
                raise
            finally:
                verdicts.close()

        return grade

    def _async_generator(self, grader: Callable[..., Any]) -> Callable[..., Any]:
        async def grade(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            verdicts = grader(*args, **kwargs)
            try:
                async for result in verdicts:
                    self._record(_fill(Evaluation(), result))
                    yield result
            except BaseException as error:
                self._failed(error)
                raise
            finally:
                await verdicts.aclose()

        return grade

    def _record(self, found: Evaluation) -> None:
        record_evaluation(
            self._name, label=found.label, score=found.score, explanation=found.explanation, **self._details
        )

    def _failed(self, error: BaseException) -> None:
        if not is_cancellation(error):
            record_evaluation(self._name, error=error, **self._details)


def _fill(found: Evaluation, result: Any) -> Evaluation:
    if isinstance(result, tuple) and len(result) == 2:
        result, found.explanation = result[0], str(result[1])
    if isinstance(result, bool):
        found.label, found.score = ("pass", 1.0) if result else ("fail", 0.0)
    elif isinstance(result, (int, float)):
        found.score = float(result)
    elif isinstance(result, str):
        found.label = result
    else:
        raise TypeError(f"A grader gives a bool, a number, a label, or one of them with a reason; got {result!r}.")
    return found
