"""Verdicts on runs: the conventions' ``gen_ai.evaluation.result`` log event, from any grader, at any time.

A verdict may come long after its run: it is tied to the evaluated span by that span's ids, or to a model call by its
response id. Outcome ("was the final state acceptable") and process ("were the rules kept") verdicts are separate.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, ParamSpec, TypeVar, cast

from opentelemetry import trace
from opentelemetry._logs import LogRecord, get_logger
from opentelemetry.trace import NonRecordingSpan, SpanContext

from surefoot.instrumentation import clock, semconv
from surefoot.instrumentation.operation import SCOPE, error_type

P = ParamSpec("P")
R = TypeVar("R")
Kind = Literal["outcome", "process", "other"]
Finality = Literal["provisional", "final"]
GraderKind = Literal["human", "executable", "model"]


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
    response_id: str | None = None,
    span_context: SpanContext | None = None,
    error: BaseException | None = None,
) -> None:
    """Record one verdict on the span of ``span_context``, by default the current one.

    ``label`` is the verdict's word (pass, fail, ...), ``score`` a number; at least one is wanted unless the grader
    itself failed with ``error``. ``response_id`` ties it to a model call whose span is not known. Raises ValueError if
    neither a label nor a score nor an error is given.
    """
    if label is None and score is None and error is None:
        raise ValueError(f"The evaluation {name!r} needs a label, a score, or the error that prevented one.")
    attributes = {
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
    context = None if span_context is None else trace.set_span_in_context(NonRecordingSpan(span_context))
    get_logger(SCOPE).emit(
        LogRecord(
            timestamp=clock.unix_nano(),
            observed_timestamp=clock.unix_nano(),
            context=context,
            event_name=semconv.EVALUATION_EVENT,
            attributes={key: value for key, value in attributes.items() if value is not None},
        )
    )


@dataclass(slots=True)
class Evaluation:
    """A grader at work; set what it found, the verdict is recorded when the block ends."""

    label: str | None = None
    score: float | None = None
    explanation: str | None = None


class evaluation:  # noqa: N801 - reads as a function where it is used
    """Grade inside a ``with`` block, or decorate a grader.

    A grader returns a bool, a score, a label, or one of them with a reason as a pair.
    Takes the keyword arguments of :func:`record_evaluation` except label, score, explanation and error. A grader that
    raises is recorded as an evaluation that failed, and the exception goes on.
    """

    def __init__(self, name: str, **details: Any) -> None:
        self._name = name
        self._details = details
        self._entered: list[Evaluation] = []

    def __enter__(self) -> Evaluation:
        self._entered.append(Evaluation())
        return self._entered[-1]

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        found = self._entered.pop()
        self._record(found, error)

    def __call__(self, grader: Callable[P, R]) -> Callable[P, R]:
        """Decorate a grader, synchronous or not."""
        if inspect.iscoroutinefunction(grader):

            async def grade_async(*args: Any, **kwargs: Any) -> Any:
                with self as found:
                    result = await grader(*args, **kwargs)
                    _fill(found, result)
                return result

            return cast("Callable[P, R]", functools.wraps(grader)(grade_async))

        def grade(*args: Any, **kwargs: Any) -> Any:
            with self as found:
                result = grader(*args, **kwargs)
                _fill(found, result)
            return result

        return cast("Callable[P, R]", functools.wraps(grader)(grade))

    def _record(self, found: Evaluation, error: BaseException | None) -> None:
        record_evaluation(
            self._name,
            label=found.label,
            score=found.score,
            explanation=found.explanation,
            error=error,
            **self._details,
        )


def _fill(found: Evaluation, result: Any) -> None:
    if isinstance(result, tuple) and len(result) == 2:
        result, found.explanation = result[0], str(result[1])
    if isinstance(result, bool):
        found.label, found.score = ("pass", 1.0) if result else ("fail", 0.0)
    elif isinstance(result, (int, float)):
        found.score = float(result)
    elif isinstance(result, str):
        found.label = result
    else:
        raise TypeError(f"A grader returns a bool, a number, a label, or one of them with a reason; got {result!r}.")
