"""Logs of Inspect AI, ``.eval`` or ``.json``, through Inspect's own reader.

Rule: an attempt is acceptable if every scorer that is asked gave at least ``accept_from``, 1 by default: half right (P)
is not right. A sample that Inspect did not score has no verdict; its error may be the agent's or the sandbox's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from surefoot.evaluation.importers.reading import Dropped, Format, Options, ResultsError, accepted
from surefoot.evaluation.records import Attempt, Failure, Verdict

if TYPE_CHECKING:
    from types import ModuleType

    from inspect_ai.log import EvalSample
    from inspect_ai.scorer import Score

_WORDS: Final = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}  # Inspect's own values of correct, incorrect, partial, none


def _reader() -> ModuleType:
    try:
        from inspect_ai import log
    except ImportError as error:
        raise ResultsError(
            "Reading Inspect AI's logs needs its own reader, which is not installed: pip install 'surefoot[inspect]'."
        ) from error
    return log


def _header(path: Path, options: Options) -> dict[str, Any]:
    reader = _reader()
    try:
        log = reader.read_eval_log(str(path), header_only=True)
    except Exception as error:
        raise ResultsError(
            f"Reading {path.name}: Inspect AI's reader says {type(error).__name__}: {error}. Give a log of an eval."
        ) from error
    about = log.eval
    scorers = {score.name for score in (log.results.scores if log.results else ())}
    if options.scorer is not None and options.scorer not in scorers:
        raise ResultsError(f"Reading {path.name}: no scorer {options.scorer!r}; it has {', '.join(sorted(scorers))}.")
    figures = {
        f"{score.name}/{score.reducer}": {name: metric.value for name, metric in score.metrics.items()}
        for score in (log.results.scores if log.results else ())
    }
    said = {
        "suite": about.task,
        "variant": about.model,
        "status": log.status,
        "created": str(about.created),
        "task_version": about.task_version,
        "run_id": about.run_id,
        "commit": about.revision.commit if about.revision else None,
        "packages": about.packages,
        "epochs": about.config.epochs,
        "figures": figures,
    }
    return {name: value for name, value in said.items() if value is not None}


def _read(path: Path, options: Options, _header: Mapping[str, Any]) -> Iterator[Attempt | Dropped]:
    for sample in _reader().read_eval_log_samples(str(path), all_samples_required=False):
        scores = sample.scores or {}
        asked = {name: one for name, one in scores.items() if options.scorer in {None, name}}
        yield _attempt(sample, asked, options)


def _attempt(sample: EvalSample, scores: Mapping[str, Score], options: Options) -> Attempt:
    verdicts = tuple(_verdict(name, score, options) for name, score in scores.items())
    known = [verdict.verdict for verdict in verdicts]
    acceptable = False if "fail" in known else True if known and set(known) == {"pass"} else None
    if acceptable is None and options.no_verdict == "fail":
        acceptable = False
    usage = list(sample.model_usage.values())
    costs = [one.total_cost for one in usage if one.total_cost is not None]
    answers = {name: score.answer for name, score in scores.items() if score.answer is not None}
    actions = tuple(
        call.function for message in sample.messages for call in (getattr(message, "tool_calls", None) or ())
    )
    error = sample.error
    return Attempt(
        attempt_id="",
        suite="",
        variant="",
        task_id=str(sample.id),
        repetition=sample.epoch,
        outcome="ok" if error is None else "error",
        error=None if error is None else Failure("error", error.message, error.traceback),
        started_at=_seconds(sample.started_at),
        ended_at=_seconds(sample.completed_at),
        output=sample.output.completion,
        acceptable=acceptable,
        verdicts=verdicts,
        signature=repr(sorted(answers.items())) if answers and len(answers) == len(scores) else None,
        equivalence="inspect-answer/1" if answers else None,
        input_tokens=sum(one.input_tokens for one in usage) if usage else None,
        output_tokens=sum(one.output_tokens for one in usage) if usage else None,
        cost_usd=sum(costs) if costs and len(costs) == len(usage) else None,
        actions=actions,
        tool_calls=len(actions),
        extra={
            **({"uuid": sample.uuid} if sample.uuid else {}),
            **({"limit": sample.limit.type} if sample.limit else {}),
        },
    )


def _verdict(name: str, score: Score, options: Options) -> Verdict:
    value = _number(score.value)
    found = "unresolved" if value is None else "pass" if accepted(value, options) else "fail"
    return Verdict(
        name=name,
        kind="outcome",
        verdict=found,  # type: ignore[arg-type]  # one of three words
        explanation=score.explanation,
        grader_name=name,
        score=value,
    )


def _number(value: Any) -> float | None:
    """A score as a number; None where it is a list, a mapping or a word that nobody fixed the worth of."""
    if isinstance(value, str):
        return _WORDS.get(value)
    if isinstance(value, bool | int | float):
        return None if math.isnan(value) else float(value)
    return None


def _seconds(value: datetime | str | None) -> float | None:
    if value is None:
        return None
    return (value if isinstance(value, datetime) else datetime.fromisoformat(value)).timestamp()


FORMAT: Final = Format(
    name="inspect-ai",
    about="logs of Inspect AI, .eval or .json",
    read=_read,
    header=_header,
    cannot_tell={
        "grader": "whether a scorer is a program or a model is not in the log",
        "whose error": "a sample that ended in an error has no score; the sandbox and the agent are not told apart",
    },
)
