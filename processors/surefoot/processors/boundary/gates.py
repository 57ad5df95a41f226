"""One gate against a profile's counts: the bound, whether it clears, and the evidence that is still missing.

Rule: the bound is computed from the counts at the gate's own confidence; the intervals that the profile prints are for
people. A method that was not seen to hold opens nothing: it is refused, or, where the boundary names it, it only
reproduces a publication.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

import numpy as np

from surefoot.processors.boundary.definition import Boundary, Gate, confidence_of
from surefoot.processors.evidence.estimate import Estimate, Interval, Sides
from surefoot.processors.evidence.grading.propagation import bounds_behind, carries_error, estimate_behind
from surefoot.processors.evidence.intervals import ShareMethod
from surefoot.processors.evidence.measure import Counted, group_types, share_hits
from surefoot.processors.evidence.planner import Plan, Price, groups_for_mean, groups_for_share
from surefoot.processors.evidence.profile import IndicatorPart, IntervalPart, Profile
from surefoot.processors.evidence.template import Mode
from surefoot.processors.evidence.types import EvidenceInputError

Status = Literal["cleared", "failed", "undefined"]
_REPEATED_FAILURES = ("consistent_wrong_rate", "non_equivalent_repeated_failure_rate")
GRADER_RATES = ("grader_false_accept_rate", "grader_false_reject_rate")


@dataclass(frozen=True, slots=True)
class Missing:
    """What would clear the gate if the rate stays as observed; ``groups`` None where no number is enough."""

    groups: int | None  # more than there are
    total_groups: int | None
    runs: int | None
    cost_usd: float | None
    seconds: float | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class GateResult:
    """A gate's answer."""

    name: str
    indicator: str
    comparison: str
    required: float
    observed: float | None
    bound: float | None  # one-sided, the one that is compared
    confidence: float
    method: str
    groups: int
    runs: int
    status: Status
    reproduction_only: bool  # the boundary names a method that does not hold: for show, it clears nothing
    if_failed: Mode
    why: str
    missing: Missing | None


def check_gate(gate: Gate, boundary: Boundary, profile: Profile) -> GateResult:
    """Raises EvidenceInputError if the gate's method is not for its indicator."""
    strata = [
        stratum
        for stratum in profile.evidence.counts
        if all(getattr(stratum, name) == value for name, value in gate.stratum.items())
    ]
    confidence = confidence_of(gate, boundary)
    if not strata:
        wanted = ", ".join(f"{name} {value}" for name, value in gate.stratum.items())
        return _undefined(gate, boundary, confidence, f"the profile has no stratum with {wanted}", None)
    as_judged = Counted.of(profile.evidence, profile.repeat_protocol.k.value, strata)
    found = estimate_behind(as_judged, gate.indicator, profile.grader)
    if gate.indicator in _REPEATED_FAILURES and gate.comparison == "<=" and (as_judged.groups.n > as_judged.k).any():
        why = f"some groups have more than k = {as_judged.k} judged runs, and failing all of more is rarer"
        return _undefined(
            gate, boundary, confidence, f"{why}: select k runs a group, or declare their number as k", found
        )
    sides: Sides = "lower" if gate.comparison == ">=" else "upper"
    counted = _with_absent(as_judged, profile).carefully(gate.indicator, sides)
    if gate.indicator in GRADER_RATES:
        interval = _grader_interval(gate, profile, sides, confidence)
    else:
        interval = bounds_behind(counted, gate.indicator, sides, confidence, profile.grader, gate.method)
    if interval is None:
        return _undefined(gate, boundary, confidence, found.reason or "there is no interval for it", found)
    # More groups alone clear neither a grader's error nor too few blocks of production.
    unplanned = carries_error(profile.grader, gate.indicator) or interval.unit == "block"
    price = None if unplanned else _price(profile)
    return _result(gate, boundary, confidence, found, interval, counted, price)


def absent_attempts(profile: Profile) -> int:
    """Attempts that groups lack of the protocol's k, less those that are known to have ended without being judged.

    A task that failed once and was not tried again has no Pass^k and no class: left out, it would only help.
    """
    k, tally = profile.repeat_protocol.k.value, profile.evidence.tally
    rows = [row for stratum in profile.evidence.counts for row in stratum.outcomes]
    lacking = sum(max(0, k - row.n - row.missing) * row.groups for row in rows)
    return max(0, lacking - tally.infrastructure - tally.excluded)


def _with_absent(counted: Counted, profile: Profile) -> Counted:
    """What nobody ran is like what nobody judged: it counts as what makes the bound worse. Not in production."""
    if counted.descriptive or not absent_attempts(profile):
        return counted
    groups = counted.groups
    missing = np.maximum(groups.missing, counted.k - groups.n)
    return replace(counted, groups=replace(groups, missing=missing))


def _grader_interval(gate: Gate, profile: Profile, sides: Sides, confidence: float) -> Interval | None:
    """The grader's report has the intervals that it has; a two-sided one serves a one-sided gate."""
    if gate.method is not None:
        raise EvidenceInputError(f"{gate.title}: the grader's report chose the method; remove `method`")
    for part in profile.indicators.confidence_intervals.get(gate.indicator, []):
        level = (1 + part.confidence) / 2 if part.sides == "two" else part.confidence
        if part.sides in {"two", sides} and level >= confidence:
            return _one_sided(part, sides, level)
    return None


def _one_sided(part: IntervalPart, sides: Sides, level: float) -> Interval:
    low, high = (part.low, None) if sides == "lower" else (None, part.high)
    return Interval(part.method, level, sides, low, high, part.unit, part.gate, part.note)


def _undefined(
    gate: Gate, boundary: Boundary, confidence: float, why: str, found: Estimate | IndicatorPart | None
) -> GateResult:
    return GateResult(
        name=gate.title,
        indicator=gate.indicator,
        comparison=gate.comparison,
        required=gate.bound,
        observed=None if found is None else found.value,
        bound=None,
        confidence=confidence,
        method=gate.method or "none",
        groups=0 if found is None else found.groups,
        runs=0 if found is None else found.runs,
        status="undefined",
        reproduction_only=False,
        if_failed=gate.if_failed or boundary.if_failed,
        why=why,
        missing=None,
    )


def _result(
    gate: Gate,
    boundary: Boundary,
    confidence: float,
    found: Estimate | IndicatorPart,
    interval: Interval,
    counted: Counted,
    price: Price | None,  # None: no number of groups alone would clear it, and there is no plan
) -> GateResult:
    bound = interval.low if gate.comparison == ">=" else interval.high
    clears = bound is not None and (bound >= gate.bound if gate.comparison == ">=" else bound <= gate.bound)
    refused = not interval.gate and gate.method is None
    status: Status = "undefined" if bound is None or refused else "cleared" if clears else "failed"
    return GateResult(
        name=gate.title,
        indicator=gate.indicator,
        comparison=gate.comparison,
        required=gate.bound,
        observed=found.value,
        bound=bound,
        confidence=confidence,
        method=interval.method,
        groups=found.groups,
        runs=found.runs,
        status=status,
        reproduction_only=not interval.gate and gate.method is not None,
        if_failed=gate.if_failed or boundary.if_failed,
        why=interval.note if not interval.gate or interval.note else found.reason or "",
        missing=None if clears or price is None else _missing(gate, counted, confidence, found, price),
    )


def _price(profile: Profile) -> Price:
    evidence = profile.evidence
    return Price(profile.repeat_protocol.k.value, evidence.cost_per_run, evidence.seconds_per_run)


def _missing(
    gate: Gate, counted: Counted, confidence: float, found: Estimate | IndicatorPart, price: Price
) -> Missing | None:
    plan = _plan(gate, counted, confidence, price)
    if plan is None:
        return None
    more = None if plan.groups is None else max(0, plan.groups - found.groups)
    return Missing(more, plan.groups, plan.runs, plan.cost, plan.seconds, plan.reason)


def _plan(gate: Gate, counted: Counted, confidence: float, price: Price) -> Plan | None:
    if not 0 < gate.bound < 1:
        return None  # a bound of 0 or 1 is cleared by a proof, not by a sample
    side: Literal["floor", "ceiling"] = "floor" if gate.comparison == ">=" else "ceiling"
    hits = share_hits(counted, gate.indicator)
    if hits is not None:
        rate = (hits.sure if side == "floor" else hits.most) / hits.groups
        method = gate.method if gate.method in get_args(ShareMethod) else "clopper_pearson"
        return groups_for_share(
            rate, gate.bound, side=side, confidence=confidence, method=cast(ShareMethod, method), price=price
        )
    types = group_types(counted, gate.indicator)
    if types is None:
        return None
    bootstrap = gate.method is not None and gate.method.startswith("cluster_bootstrap")
    return groups_for_mean(
        types, gate.bound, side=side, confidence=confidence, method="normal" if bootstrap else "betting", price=price
    )
