"""Intervals for shares of groups and for means over groups: one function each, every method by name.

Shares (consistent-wrong rate, mixed rate, Pass^k where n = k) are binomial over groups: ``share_interval``. Means of
values in [0, 1] (outcome yield, Pass^k where n > k) are not: ``mean_interval``. ``confidence`` is that of the whole
statement: a one-sided bound at .95 is wrong 5 % of the time, a two-sided interval at .95 leaves out 2.5 % on each side.

Rule: run groups are the unit, and ``gate`` is true only where the method was seen to reach its level
(``eligibility.py``, docs/evidence-coverage.md). A method that fails there still answers, for show, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from scipy import special, stats

from surefoot.processors.evidence import betting, bootstrap
from surefoot.processors.evidence.eligibility import gate_note
from surefoot.processors.evidence.estimate import Interval, Sides
from surefoot.processors.evidence.types import EvidenceInputError, GroupTypes

ShareMethod = Literal["clopper_pearson", "wilson", "jeffreys"]
MeanMethod = Literal[
    "betting",
    "empirical_bernstein",
    "clopper_pearson_floor",
    "cluster_bootstrap_percentile",
    "cluster_bootstrap_percentile_exact",
]
DEFAULT_SHARE: ShareMethod = "clopper_pearson"
DEFAULT_MEAN: MeanMethod = "betting"


def share_interval(
    hits: int,
    groups: int,
    *,
    sides: Sides,
    confidence: float = 0.95,
    method: ShareMethod = DEFAULT_SHARE,
    unit: str = "group",
) -> Interval:
    """Bounds for the share of groups that ``hits`` of ``groups`` estimates."""
    _check(confidence)
    if not 0 <= hits <= groups:
        raise EvidenceInputError(f"a share needs 0 <= hits <= groups, got {hits} of {groups}")
    if not groups:
        return Interval(method, confidence, sides, None, None, unit, gate=False, note="no groups")
    low, high = _share_bounds(hits, groups, tail(confidence, sides), method)
    return _interval(method, sides, confidence, groups, low, high, unit)


def mean_interval(
    types: GroupTypes,
    *,
    sides: Sides,
    confidence: float = 0.95,
    method: MeanMethod = DEFAULT_MEAN,
    seed: int = bootstrap.SEED,
    resamples: int = bootstrap.RESAMPLES,
) -> Interval:
    """Bounds for the mean over groups of values in [0, 1]; seed and resamples are those of the resampling method."""
    _check(confidence)
    alpha = tail(confidence, sides)
    if method == "cluster_bootstrap_percentile":
        low, high = bootstrap.resampled_bounds(types, alpha, seed, resamples)
    elif method in _LOWER:
        lower = _LOWER[method]
        low = lower(types, alpha) if sides != "upper" else 0.0
        high = 1 - lower(types.mirrored(), alpha) if sides != "lower" else 1.0
    else:
        raise EvidenceInputError(f"no method {method!r} for a mean over groups; there are {get_args(MeanMethod)}")
    return _interval(method, sides, confidence, types.groups, low, high, "group")


def tail(confidence: float, sides: Sides) -> float:
    """The chance of error that is left for each side that is betting."""
    return (1 - confidence) / (2 if sides == "two" else 1)


def _interval(
    method: str,
    sides: Sides,
    confidence: float,
    groups: int,
    low: float,
    high: float,
    unit: str,
) -> Interval:
    note = gate_note(method, groups, confidence) or ""
    return Interval(
        method,
        confidence,
        sides,
        low if sides != "upper" else None,
        high if sides != "lower" else None,
        unit,
        gate=not note,
        note=note,
    )


def _check(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise EvidenceInputError(f"confidence is between 0 and 1 (.95, not 95), got {confidence}")


def _full_marks_floor(types: GroupTypes, alpha: float) -> float:
    """Clopper-Pearson on the share of groups with value 1, which no mean of values in [0, 1] falls below."""
    full = int(types.counts[-1]) if types.fractions[-1] == 1 else 0
    return _share_bounds(full, types.groups, alpha, "clopper_pearson")[0]


def _share_bounds(hits: int, groups: int, alpha: float, method: str) -> tuple[float, float]:
    if method == "jeffreys":
        posterior = stats.beta(hits + 0.5, groups - hits + 0.5)
        # Brown, Cai and DasGupta 2001: no bound away from a share that was never or always seen.
        low = float(posterior.ppf(alpha)) if hits else 0.0
        high = float(posterior.isf(alpha)) if hits < groups else 1.0
        return low, high
    if method == "clopper_pearson":
        # binomtest searches for the same two quantiles with brentq: to 2e-12 only, and 20 times as long.
        low = float(special.betaincinv(hits, groups - hits + 1, alpha)) if hits else 0.0
        high = float(special.betainccinv(hits + 1, groups - hits, alpha)) if hits < groups else 1.0
        return low, high
    if method != "wilson":
        raise EvidenceInputError(f"no method {method!r} for a share of groups; there are {get_args(ShareMethod)}")
    # scipy: "greater" gives the lower bound, "less" the upper one (statsmodels names them the other way round).
    low = stats.binomtest(hits, groups, alternative="greater").proportion_ci(1 - alpha, method).low
    high = stats.binomtest(hits, groups, alternative="less").proportion_ci(1 - alpha, method).high
    return float(low), float(high)


_LOWER: dict[str, Callable[[GroupTypes, float], float]] = {
    "betting": lambda types, alpha: betting.betting_lower(types.values, types.counts, alpha),
    "empirical_bernstein": lambda types, alpha: betting.empirical_bernstein_lower(types.values, types.counts, alpha),
    "clopper_pearson_floor": _full_marks_floor,
    "cluster_bootstrap_percentile_exact": bootstrap.exact_quantile,
}
