"""Bounds of outcome indicators that hold although the grader errs, from groups as it graded them and from its audit.

A group that is all accepted and not all acceptable has at least one false accept, so that Pass^k behind the verdicts is
at least Pass^k of the verdicts less k times the share of runs that are falsely accepted; the yield is the case k = 1,
and false rejects bound both from above. A consistently wrong group that was graded as anything else is graded as mixed,
or all of its runs are false accepts. Half of the chance of error goes to the groups, half to the audit.

Rule: no independence of the grader's errors is assumed, because a task that fools a judge once fools it each time. The
corrected value beside the bound does assume it (``correction``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from surefoot.processors.evidence.estimate import Estimate, Interval, Sides
from surefoot.processors.evidence.grading.audit import rates, wrong_share
from surefoot.processors.evidence.grading.correction import as_share, corrected_strict
from surefoot.processors.evidence.intervals import DEFAULT_MEAN, mean_interval
from surefoot.processors.evidence.measure import Counted, bounds, estimate, indicators
from surefoot.processors.evidence.profile import (
    INDICATORS,
    ClassAudit,
    GraderError,
    IndicatorPart,
    Indicators,
    IntervalPart,
)
from surefoot.processors.evidence.types import yield_types

OF_THE_OUTCOME: Final = frozenset(
    {
        *("outcome_yield", "strict_repeated_success_at_k", "normalised_consistency_at_k", "mixed_outcome_rate"),
        *("equivalent_outcome_agreement", "consistent_wrong_rate", "non_equivalent_repeated_failure_rate"),
        *("recovery_success", "intervention_success"),
    }
)
_REPEATED_FAILURES: Final = ("consistent_wrong_rate", "non_equivalent_repeated_failure_rate")


def carries_error(grader: GraderError, name: str) -> bool:
    """Whether the bounds of an indicator carry the grader's error, so that they also depend on the audit's size."""
    return bool(grader.audits) and name in OF_THE_OUTCOME


def indicators_behind(counted: Counted, grader: GraderError, confidence: float) -> Indicators:
    """``measure.indicators``, where the grader was audited with its error carried to value and interval."""
    graded = indicators(counted, grader, confidence)
    if not grader.audits:
        return graded
    intervals = dict(graded.confidence_intervals)
    for name in OF_THE_OUTCOME & intervals.keys():
        found = propagated(counted, grader.audits, name, "two", confidence)
        if found is not None:
            intervals[name] = [IntervalPart.of(found)]
    values = {
        name: IndicatorPart.of(one)
        for name in INDICATORS
        if isinstance(one := estimate_behind(counted, name, grader), Estimate)
    }
    return graded.model_copy(update={**values, "confidence_intervals": intervals})


def estimate_behind(counted: Counted, name: str, grader: GraderError) -> Estimate | IndicatorPart:
    """``measure.estimate``; yield and Pass^k corrected where the grader was audited and the error rates are known."""
    graded = estimate(counted, name, grader)
    k = {"outcome_yield": 1, "strict_repeated_success_at_k": counted.k}.get(name)
    if k is None or not grader.audits or not isinstance(graded, Estimate) or graded.value is None:
        return graded
    found = corrected(counted, grader.audits, k)
    if found.value is None:
        return replace(graded, reason="; ".join(filter(None, (graded.reason, found.reason))))
    reasons = (graded.reason, found.reason, f"as graded {graded.value:.6f}")
    return replace(found, name=name, reason="; ".join(filter(None, reasons)))


def bounds_behind(
    counted: Counted, name: str, sides: Sides, confidence: float, grader: GraderError, method: str | None = None
) -> Interval | None:
    """``measure.bounds``, with the grader's error carried where it was audited."""
    if not grader.audits:
        return bounds(counted, name, sides, confidence, method)
    return propagated(counted, grader.audits, name, sides, confidence, method)


def propagated(
    counted: Counted,
    audits: Sequence[ClassAudit],
    name: str,
    sides: Sides,
    confidence: float,
    method: str | None = None,
) -> Interval | None:
    """Bounds of the indicator behind the verdicts; None where nothing was recorded.

    Without a bound, and for no gate, where there is no way to carry the grader's error to the indicator.
    """
    if name not in OF_THE_OUTCOME:
        return bounds(counted, name, sides, confidence, method)
    if name == "normalised_consistency_at_k":
        return _quotient(counted, audits, sides, confidence)
    graded = bounds(counted, name, sides, (1 + confidence) / 2, method)
    if graded is None:
        return None
    times = _runs_that_matter(counted, name)
    if times is None:
        note = f"the grader's error is not carried to {name}"
        return replace(graded, confidence=confidence, low=None, high=None, gate=False, note=note)
    false_accepts, false_rejects = _wrong_runs(counted, audits, sides, confidence)
    low, high = graded.low, graded.high
    if name in _REPEATED_FAILURES:
        low = None if low is None else 0.0  # each of them may be a group of false rejects
        if high is not None:
            high = _repeated_failures(counted, name, false_accepts, (1 + confidence) / 2, method)
    else:
        low = None if low is None else low - times * false_accepts
        high = None if high is None else high + times * false_rejects
    note = f"carries the grader's error: at most {false_accepts:.4f} of the runs falsely accepted"
    return replace(
        graded,
        method=f"{graded.method}_and_audit",
        confidence=confidence,
        low=None if low is None else max(0.0, low),
        high=None if high is None else min(1.0, high),
        note="; ".join(filter(None, (graded.note, note))),
    )


def corrected(counted: Counted, audits: Sequence[ClassAudit], k: int) -> Estimate:
    """Pass^k (k = 1: yield) behind the verdicts, each group with the error rates of its task class."""
    by_class = {audit.task_class: rates(audit) for audit in audits}
    kinds, times = np.unique(
        np.column_stack([counted.codes, counted.groups.n, counted.groups.c]), axis=0, return_counts=True
    )
    groups = []
    for stratum, n, c in kinds.tolist():
        found = by_class.get(counted.strata[stratum].task_class)
        if found is None or found.false_accept.value is None or found.false_reject.value is None:
            why = "the class was not audited" if found is None else found.youden.reason
            return replace(corrected_strict([], k), reason=f"not corrected: {why}")
        groups.append((n, c, found.false_accept.value, found.false_reject.value))
    return as_share(corrected_strict(groups, k, times.tolist()), groups, k, times.tolist())


def _repeated_failures(
    counted: Counted, name: str, false_accepts: float, confidence: float, method: str | None
) -> float | None:
    """Upper bound of the groups that fail throughout in one way, whatever the grader made of them.

    Those that were graded as anything else have a false accept: n groups for each falsely accepted run. And: of a group
    that fails throughout, what the grader accepts are false accepts, so that its share of rejected runs and that of
    false accepts make 1. The groups are at most the mean share of rejected runs, over groups graded as such or as
    mixed, and the share of false accepts. The first is tighter where many groups are mixed. Each has half of the
    groups' chance of error, so that the lower one holds.
    """
    each = (1 + confidence) / 2
    alone, groups = bounds(counted, name, "upper", each, method), counted.groups
    repeated = groups.n >= 2
    if alone is None or alone.high is None or not repeated.any():
        return None
    n, c = groups.n[repeated], groups.c[repeated]
    other = 0 if name == "consistent_wrong_rate" else 1  # of groups that fail throughout: known to be of the other kind
    rejected = np.where((c == 0) & (groups.equivalent[repeated] == other), 0, n - c)
    mean = mean_interval(yield_types(n, rejected), sides="upper", confidence=each, method=DEFAULT_MEAN).high
    # The false accepts are a mean over all groups, and those that were repeated may be fewer.
    accepts = false_accepts * len(groups) / len(n)
    return min(alone.high + int(n.max()) * accepts, 1.0 if mean is None else mean + accepts)


def _runs_that_matter(counted: Counted, name: str) -> int | None:
    """In how many runs of a group one error is enough to change what the indicator says of the group."""
    if name == "outcome_yield":
        return 1
    if name == "strict_repeated_success_at_k":
        return counted.k
    if name in _REPEATED_FAILURES:
        return int(counted.groups.n.max()) if len(counted.groups) else 1
    return None


def _wrong_runs(counted: Counted, audits: Sequence[ClassAudit], sides: Sides, confidence: float) -> tuple[float, float]:
    """Upper bounds for the shares of falsely accepted and of falsely rejected runs, over the groups' mean."""
    weights: dict[str | None, int] = {}
    for code, groups in zip(*np.unique(counted.codes, return_counts=True), strict=True):
        name = counted.strata[int(code)].task_class
        weights[name] = weights.get(name, 0) + int(groups)
    known = {audit.task_class: audit for audit in audits}
    tail = (1 - confidence) / 2 / (2 if sides == "two" else 1)
    each = 1 - 2 * tail / len(weights)  # two-sided, of which the upper end is used
    accepts = rejects = 0.0
    for name, groups in weights.items():
        audit = known.get(name)
        share = groups / len(counted.groups)
        # A run was drawn for the audit from each group that has one with the verdict; groups, not runs, are averaged.
        accepts += share * (1.0 if audit is None else _most_wrong(audit, each)[0])
        rejects += share * (1.0 if audit is None else _most_wrong(audit, each)[1])
    return min(1.0, accepts), min(1.0, rejects)


def _most_wrong(audit: ClassAudit, confidence: float) -> tuple[float, float]:
    accepted, rejected = (
        wrong_share(side, confidence)[1] * min(1.0, side.groups / audit.groups) if audit.groups else 1.0
        for side in (audit.accepted, audit.rejected)
    )
    return accepted, rejected


def _quotient(counted: Counted, audits: Sequence[ClassAudit], sides: Sides, confidence: float) -> Interval | None:
    counted, each = counted.reaching_k(), (1 + confidence) / 2
    opposite: dict[Sides, Sides] = {"two": "two", "lower": "upper", "upper": "lower"}
    strict = propagated(counted, audits, "strict_repeated_success_at_k", sides, each)
    mean = propagated(counted, audits, "outcome_yield", opposite[sides], each)
    if strict is None or mean is None:
        return None
    low = strict.low / mean.high if strict.low is not None and mean.high else None
    high = min(1.0, strict.high / mean.low) if strict.high is not None and mean.low else None
    return replace(
        strict,
        method=f"quotient of {strict.method} and {mean.method}",
        confidence=confidence,
        low=low,
        high=1.0 if high is None and sides != "lower" else high,
        gate=strict.gate and mean.gate,
    )
