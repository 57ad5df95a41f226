"""Whether a profile's outcome grader is good enough to decide anything with, in words.

Rule: a grader decides nothing unless some of its verdicts were audited in every task class, its Youden index is above
zero there (the whole interval), and its error is well below the budget that it governs. Error and budget are in the
same unit: a budget is a share of runs, so the error is the share of runs on which grader and adjudication disagree, at
its upper bound. A false-accept rate is a share of the unacceptable runs only and cannot be compared with a budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose
from typing import Final

from surefoot.processors.evidence.estimate import Estimate
from surefoot.processors.evidence.grading.audit import GraderRates, rates
from surefoot.processors.evidence.measure import NOT_MEASURED
from surefoot.processors.evidence.profile import ClassAudit, GraderError, IndicatorPart, IntervalPart, Profile

# At this share the grader's own mistakes can spend half of the budget before the agent makes one. More, and a missed
# objective says as much about the grader as about the agent.
ERROR_SHARE: Final = 0.5
NEVER_AUDITED: Final = f"{NOT_MEASURED}: none of its verdicts was audited (surefoot grade sample)"


def measured(audits: Sequence[ClassAudit], confidence: float = 0.95) -> GraderError:
    """What is known of the grader from the audits of its task classes."""
    found = [rates(audit, confidence) for audit in audits]
    reasons = [reason for one in found if (reason := _weakness(one))]
    if not sum(one.audited + one.unresolved for one in found):
        return GraderError(decision_grade=False, reasons=[NEVER_AUDITED])
    errors = [_error(one) for one in found]
    error = max(1.0 if one is None else one for one in errors)
    budget = error / ERROR_SHARE
    if not reasons:
        reasons = [_strength(found, budget)]
        grade = budget < 1
        if not grade:
            reasons = [f"the grader may be wrong on {error:.4g} of the runs: no budget is that large"]
    else:
        grade = False
    accept, reject = _worst([one.false_accept for one in found]), _worst([one.false_reject for one in found])
    return GraderError(
        decision_grade=grade,
        reasons=reasons,
        false_accept=_part(accept, found),
        false_reject=_part(reject, found),
        false_accept_intervals=[IntervalPart.of(one) for one in accept.intervals],
        false_reject_intervals=[IntervalPart.of(one) for one in reject.intervals],
        agreement=_told(found),
        smallest_budget=min(1.0, budget),
        audits=list(audits),
    )


def too_coarse(grader: GraderError, budget: float, share: float = ERROR_SHARE) -> str | None:
    """Why the grader is too coarse for a budget (a share of runs), or None; an exact oracle never is."""
    if grader.smallest_budget is None:
        return None
    error = grader.smallest_budget * ERROR_SHARE
    if error <= share * budget:
        return None
    return (
        f"the grader may be wrong on {error:.4g} of the runs, more than {share:g} of the budget of {budget:.4g}; "
        "audit more of its verdicts, or use a better one"
    )


def contradiction(profile: Profile) -> str | None:
    """Where what the profile says of its grader does not follow from the audits and the graders that it recorded."""
    said = profile.grader
    if said.audits:
        again = measured(said.audits, profile.repeat_protocol.confidence_level)
        same = isclose(said.smallest_budget or 0.0, again.smallest_budget or 0.0)
        if again.decision_grade == said.decision_grade and same:
            return None
        return f"the profile's word on its grader is not what its audits give: {'; '.join(again.reasons)}"
    inexact = [one for one in profile.evidence.graders or [] if one.judges == "outcome" and one.kind != "executable"]
    if said.decision_grade and inexact:
        return f"{inexact[0].name} judged {inexact[0].verdicts} runs, is no executable check and was not audited"
    return None


def class_name(one: ClassAudit | GraderRates) -> str:
    """For messages."""
    return one.task_class or "without a task class"


def _weakness(one: GraderRates) -> str | None:
    where = f"task class {one.task_class}" if one.task_class else "runs without a task class"
    youden = one.youden
    if youden.value is None:
        return f"{where}: {youden.reason}"
    low = youden.intervals[0].low
    if low is None or low <= 0:
        high = youden.intervals[0].high
        return (
            f"{where}: the grader's Youden index is {youden.value:.3f} ({low:.3f} to {high:.3f}), not above 0: its "
            f"verdicts may say nothing about the outcome (n = {youden.runs} audited runs)"
        )
    return None


def _strength(found: Sequence[GraderRates], budget: float) -> str:
    number = sum(one.audited for one in found)
    words = ", ".join(f"{class_name(one)} {one.youden.value:.3f}" for one in found)
    return f"{number} audited runs; Youden index {words}; it can govern budgets from {budget:.4g} of the runs on"


def _error(one: GraderRates) -> float | None:
    for interval in one.agreement.intervals:
        return None if interval.low is None else 1 - interval.low
    return None


def _worst(estimates: Sequence[Estimate]) -> Estimate:
    """The estimate with the greatest upper bound; an undefined one is worse than any."""
    undefined = [one for one in estimates if one.value is None]
    return undefined[0] if undefined else max(estimates, key=lambda one: one.intervals[0].high or 1.0)


def _part(worst: Estimate, found: Sequence[GraderRates]) -> IndicatorPart:
    part = IndicatorPart.of(worst)
    if len(found) < 2:
        return part
    return part.model_copy(update={"definition": f"{part.definition}; the worst of {len(found)} task classes"})


def _told(found: Sequence[GraderRates]) -> dict[str, float | int | None]:
    told: dict[str, float | int | None] = {
        "adjudicated": sum(one.audited for one in found),
        "unresolved": sum(one.unresolved for one in found),
    }
    for one in found:
        suffix = f" ({class_name(one)})" if len(found) > 1 else ""
        told[f"agreement{suffix}"] = one.agreement.value
        told[f"kappa{suffix}"] = one.kappa.value
        told[f"youden{suffix}"] = one.youden.value
    return told
