"""How many run groups a gate needs, and what they cost, if the next sample looks like what was observed.

Shares are planned at exactly the observed rate (hits need not be whole), so that Wilson's answer is the textbook's
``z² b (1 - b) / (b - p)²``. Means are planned with the observed types in the observed proportions.

Rule: a plan is the least number at which the bound clears if the rate stays as it is: then about every second such
sample clears. At a rate that does not clear, no number of groups is enough, and the plan says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Literal

import numpy as np
from scipy import stats

from surefoot.processors.evidence import betting
from surefoot.processors.evidence.groups import GroupTable
from surefoot.processors.evidence.intervals import ShareMethod
from surefoot.processors.evidence.types import EvidenceInputError, GroupTypes

MOST = 10**9  # beyond it the answer is that the gate cannot be cleared by sampling


@dataclass(frozen=True, slots=True)
class Plan:
    """What a gate asks for. ``groups`` is None where no number is enough; ``reason`` says why."""

    method: str
    confidence: float  # one-sided
    observed: float
    bound: float
    groups: int | None
    runs: int | None = None
    cost: float | None = None
    seconds: float | None = None  # of runs one after the other
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """What one group takes; None where nobody knows."""

    runs_per_group: int
    cost_per_run: float | None = None
    seconds_per_run: float | None = None


def observed_price(groups: GroupTable) -> Price:
    """What the groups at hand took: attempts of the average group, rounded up, and the mean over runs that say."""
    attempts = int(np.sum(groups.n + groups.missing + groups.infrastructure + groups.excluded))
    per_group = ceil(attempts / len(groups)) if len(groups) else 0
    if groups.runs is None:
        return Price(per_group)
    cost, duration = (groups.runs.numbers[name] for name in ("cost_usd", "duration_ns"))
    return Price(
        per_group,
        float(np.nanmean(cost)) if np.isfinite(cost).any() else None,
        float(np.nanmean(duration)) / 1e9 if np.isfinite(duration).any() else None,
    )


def groups_for_share(
    rate: float,
    bound: float,
    *,
    side: Literal["ceiling", "floor"],
    confidence: float = 0.95,
    method: ShareMethod = "clopper_pearson",
    price: Price | None = None,
) -> Plan:
    """Groups until the one-sided bound of a share of groups clears ``bound`` at an observed ``rate``."""
    if not (0 <= rate <= 1 and 0 < bound < 1 and 0 < confidence < 1):
        raise EvidenceInputError(f"a plan needs a rate in [0, 1], a bound and a confidence in (0, 1): {rate}, {bound}")
    p, ceiling = (rate, bound) if side == "ceiling" else (1 - rate, 1 - bound)
    if p >= ceiling:
        return _hopeless(method, confidence, rate, bound, side)
    if method == "wilson":
        z = float(stats.norm.ppf(confidence))
        return _plan(method, confidence, rate, bound, ceil(z**2 * ceiling * (1 - ceiling) / (ceiling - p) ** 2), price)

    def clears(groups: int) -> bool:
        hits = p * groups
        extra = (1.0, 0.0) if method == "clopper_pearson" else (0.5, 0.5)
        return float(stats.beta.isf(1 - confidence, hits + extra[0], groups - hits + extra[1])) <= ceiling

    return _plan(method, confidence, rate, bound, _least(clears), price)


def groups_for_mean(
    types: GroupTypes,
    bound: float,
    *,
    side: Literal["ceiling", "floor"] = "floor",
    confidence: float = 0.95,
    method: Literal["betting", "normal"] = "betting",
    price: Price | None = None,
) -> Plan:
    """Groups until the bound for a mean clears ``bound``; ``normal`` is what a bootstrap needs with many groups."""
    observed = types.mean
    seen, floor = (types, bound) if side == "floor" else (types.mirrored(), 1 - bound)
    if seen.mean <= floor:
        return _hopeless(method, confidence, observed, bound, side)
    shares = seen.counts / seen.groups
    if method == "normal":
        z = float(stats.norm.ppf(confidence))
        variance = float(shares @ (seen.values - seen.mean) ** 2)
        return _plan(
            method, confidence, observed, bound, max(1, ceil(variance * (z / (seen.mean - floor)) ** 2)), price
        )

    def clears(groups: int) -> bool:
        return betting.betting_lower(seen.values, shares * groups, 1 - confidence) >= floor

    return _plan(method, confidence, observed, bound, _least(clears), price)


def _least(clears: Callable[[int], bool]) -> int | None:
    high = 1
    while not clears(high):
        high *= 2
        if high > MOST:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if clears(middle) else (middle, high)
    return high


def _plan(
    method: str, confidence: float, observed: float, bound: float, groups: int | None, price: Price | None
) -> Plan:
    if groups is None:
        reason = f"more than {MOST:,} groups: enforce it deterministically instead of sampling"
        return Plan(method, confidence, observed, bound, None, reason=reason)
    if price is None:
        return Plan(method, confidence, observed, bound, groups)
    runs = groups * price.runs_per_group
    cost = None if price.cost_per_run is None else runs * price.cost_per_run
    seconds = None if price.seconds_per_run is None else runs * price.seconds_per_run
    return Plan(method, confidence, observed, bound, groups, runs, cost, seconds)


def _hopeless(method: str, confidence: float, observed: float, bound: float, side: str) -> Plan:
    where = "not below the ceiling" if side == "ceiling" else "not above the floor"
    reason = f"the observed {observed:g} is {where} {bound:g}: no number of groups clears it"
    return Plan(method, confidence, observed, bound, None, reason=reason)
