"""The grader's error from an audit of its verdicts: some of the accepted and some of the rejected runs, adjudicated.

What an audit measures is how often an accepted run is acceptable and a rejected one is not. The error rates follow by
weighting with how often the grader accepts (Begg and Greenes 1983); the rates of the sample would be wrong.

Rule: bounds are conservative. Runs of a group are fooled alike, so audited runs count as so many independent ones as
if those of a group were copies; a run about which adjudication could not tell counts as an error of the grader.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil
from typing import Final

import numpy as np

from surefoot.processors.evidence.estimate import Estimate, Interval
from surefoot.processors.evidence.grading.agreement import SOURCE, kappa
from surefoot.processors.evidence.grading.correction import predictive
from surefoot.processors.evidence.intervals import share_interval
from surefoot.processors.evidence.profile import AuditedVerdicts, ClassAudit

WEIGHTED: Final = "audited verdicts weighted by how often the grader gives them"


@dataclass(frozen=True, slots=True)
class GraderRates:
    """A task class's estimates; each two-sided interval holds by itself."""

    task_class: str | None
    audited: int
    unresolved: int
    accepted_right: Estimate
    rejected_right: Estimate
    agreement: Estimate
    kappa: Estimate
    false_accept: Estimate
    false_reject: Estimate
    youden: Estimate
    corrected_yield: Estimate  # of runs


def side_of(group_of_run: Sequence[object], audited: Sequence[bool], right: Sequence[bool | None]) -> AuditedVerdicts:
    """Counts of the runs with one verdict: each one's group, whether it was audited, and what that said (None: no)."""
    told = [g for g, asked, said in zip(group_of_run, audited, right, strict=True) if asked and said is not None]
    sizes = np.unique([str(one) for one in told], return_counts=True)[1] if told else np.zeros(0)
    return AuditedVerdicts(
        runs=len(group_of_run),
        groups=len({str(one) for one in group_of_run}),
        audited=len(told),
        right=sum(said is True for asked, said in zip(audited, right, strict=True) if asked),
        unresolved=sum(said is None for asked, said in zip(audited, right, strict=True) if asked),
        effective=int(len(told) ** 2 / (sizes**2).sum() + 1e-9) if told else 0,
    )


def wrong_share(side: AuditedVerdicts, confidence: float) -> tuple[float, float]:
    """Two-sided bounds for the share of a verdict's runs on which it is wrong: 0 to 1 where nothing was audited."""
    if not side.runs:
        return 0.0, 0.0
    asked = side.audited + side.unresolved
    if not side.audited or not side.effective:
        return 0.0, 1.0
    worth = min(1.0, side.effective / side.audited)
    runs = max(1, int(asked * worth + 1e-9))
    wrong = side.audited - side.right
    low = share_interval(int(wrong * worth), runs, sides="two", confidence=confidence, unit="run").low
    most = min(runs, ceil((wrong + side.unresolved) * worth - 1e-9))
    high = share_interval(most, runs, sides="two", confidence=confidence, unit="run").high
    return low or 0.0, 1.0 if high is None else high


def rates(audit: ClassAudit, confidence: float = 0.95) -> GraderRates:
    """All estimates of a class."""
    accepted, rejected = audit.accepted, audit.rejected
    graded = accepted.runs + rejected.runs
    runs = accepted.audited + rejected.audited
    reason = _unmeasured(accepted, rejected)
    q = accepted.runs / graded if graded else 0.0
    each = (1 + confidence) / 2  # the two audited shares hold together
    corners = list(product(wrong_share(accepted, each), wrong_share(rejected, each)))
    wrong = tuple(1 - side.right / side.audited if side.audited else 0.0 for side in (accepted, rejected))

    def of(name: str, position: int, definition: str) -> Estimate:
        value = None if reason else _derived(q, *wrong)[position]
        why = reason or (None if value is not None else "the audited runs leave its denominator empty")
        if value is None:
            return _estimate(name, None, runs, definition, why, ())
        found = [one for corner in corners if (one := _derived(q, *corner)[position]) is not None]
        interval = _interval(confidence, min(found), max(found))
        return _estimate(name, value, runs, definition, why, (interval,))

    table = np.array([[q * (1 - wrong[0]), q * wrong[0]], [(1 - q) * wrong[1], (1 - q) * (1 - wrong[1])]])
    return GraderRates(
        task_class=audit.task_class,
        audited=runs,
        unresolved=accepted.unresolved + rejected.unresolved,
        accepted_right=_right("positive_predictive_value", accepted, confidence, "acceptable runs / accepted runs"),
        rejected_right=_right("negative_predictive_value", rejected, confidence, "unacceptable runs / rejected runs"),
        agreement=of("grader_agreement", 3, "runs that the grader judges as adjudication does / graded runs"),
        kappa=kappa(table * runs, runs, confidence, reason),
        false_accept=of("grader_false_accept_rate", 0, "share of the unacceptable runs that the grader accepts"),
        false_reject=of("grader_false_reject_rate", 1, "share of the acceptable runs that the grader rejects"),
        youden=of("youden", 2, "1 - false-accept rate - false-reject rate"),
        corrected_yield=predictive(
            accepted.runs,
            graded,
            (accepted.right, accepted.audited),
            (rejected.right, rejected.audited),
            confidence=confidence,
            effect=max(1.0, graded / audit.groups) if audit.groups else 1.0,
        ),
    )


def _unmeasured(accepted: AuditedVerdicts, rejected: AuditedVerdicts) -> str | None:
    if not accepted.runs + rejected.runs:
        return "no run was graded"
    for side, name in ((accepted, "accepted"), (rejected, "rejected")):
        if not side.runs:
            return f"the grader {name} no run, so that nothing shows whether it can tell"
        if not side.audited:
            return f"no {name} run was audited"
    return None


def _derived(q: float, accepted_wrong: float, rejected_wrong: float) -> tuple[float | None, ...]:
    """False accepts, false rejects, Youden index, agreement."""
    false_accepts, true_accepts = q * accepted_wrong, q * (1 - accepted_wrong)
    false_rejects, true_rejects = (1 - q) * rejected_wrong, (1 - q) * (1 - rejected_wrong)
    bad, good = false_accepts + true_rejects, true_accepts + false_rejects
    fa = false_accepts / bad if bad > 0 else None
    fr = false_rejects / good if good > 0 else None
    youden = None if fa is None or fr is None else 1 - fa - fr
    return fa, fr, youden, true_accepts + true_rejects


def _right(name: str, side: AuditedVerdicts, confidence: float, definition: str) -> Estimate:
    if not side.audited:
        return _estimate(name, None, 0, definition, "no such run was audited", ())
    low, high = wrong_share(side, confidence)
    return _estimate(
        name, side.right / side.audited, side.audited, definition, None, (_interval(confidence, 1 - high, 1 - low),)
    )


def _interval(confidence: float, low: float, high: float) -> Interval:
    return Interval("clopper_pearson_audit", confidence, "two", low, high, "group", gate=True)


def _estimate(
    name: str, value: float | None, runs: int, definition: str, reason: str | None, intervals: tuple[Interval, ...]
) -> Estimate:
    return Estimate(
        name=name,
        variant="audited_verdicts",
        value=value,
        k=None,
        groups=0,
        runs=runs,
        definition=f"{definition}; {WEIGHTED}",
        source=SOURCE,
        reason=reason,
        intervals=intervals,
    )
