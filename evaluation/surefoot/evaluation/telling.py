"""The verdicts on an attempt, as evaluation events: how they come into the lake.

Rule: a run has one outcome verdict, that of all its outcome checkers together; each by itself is told as "other", so
that none of them can stand for the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from surefoot.evaluation.records import SPARED, Attempt, Verdict
from surefoot.instrumentation import record_evaluation


def tell(attempt: Attempt) -> None:
    """Send the verdicts on an attempt that has a run."""
    if attempt.trace_id is not None and attempt.run_id is not None:
        for verdict in told(attempt):
            send(attempt, verdict)


def told(attempt: Attempt) -> Iterator[Verdict]:
    """Yield the verdicts on an attempt as the lake has them."""
    for verdict in attempt.verdicts:
        yield replace(verdict, kind="other" if verdict.kind == "outcome" else verdict.kind)
    if attempt.outcome not in SPARED and attempt.acceptable is not None:
        yield _overall(attempt, attempt.acceptable)


def _overall(attempt: Attempt, good: bool) -> Verdict:
    outcomes = [verdict for verdict in attempt.verdicts if verdict.kind == "outcome"]
    single = outcomes[0] if len(outcomes) == 1 else None
    # A judge among the checkers makes the whole a model's verdict.
    by_model = any(verdict.grader_kind == "model" for verdict in outcomes)
    return Verdict(
        name="acceptable",
        kind="outcome",
        verdict="pass" if good else "fail",
        explanation=_why(attempt, outcomes) or None,
        grader_name="surefoot.repeat" if single is None else single.grader_name,
        grader_version="1" if single is None else single.grader_version,
        grader_kind="model" if by_model else "executable",
    )


def _why(attempt: Attempt, outcomes: Sequence[Verdict]) -> str:
    if attempt.error is not None:
        return f"{attempt.error.type}: {attempt.error.message}"
    return "; ".join(f"{each.name}: {each.explanation or each.verdict}" for each in outcomes if each.verdict != "pass")


def send(attempt: Attempt, verdict: Verdict) -> None:
    """Send one verdict, and with the outcome the signature of the final state."""
    record_evaluation(
        verdict.name,
        label=verdict.verdict,
        explanation=verdict.explanation,
        kind=verdict.kind,
        finality="final",
        severity=verdict.severity,
        grader_name=verdict.grader_name,
        grader_version=verdict.grader_version,
        grader_kind=verdict.grader_kind,
        trace_id=attempt.trace_id,
        span_id=attempt.run_id,
    )
    if verdict.kind == "outcome" and attempt.signature is not None:
        record_evaluation(
            "outcome signature",
            label=attempt.signature,
            kind="other",
            finality="final",
            grader_name=attempt.equivalence,
            grader_version="1",
            grader_kind="executable",
            trace_id=attempt.trace_id,
            span_id=attempt.run_id,
        )
