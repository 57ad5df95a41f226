"""The template's indicators with their intervals, from sufficient counts.

Counts in, numbers out, the same for a profile that is built, verified or held against a boundary: whoever has the
counts has the profile. Rule: an indicator that has no method has no interval, and one that was not recorded is null
with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast, get_args

import numpy as np

from surefoot.processors.evidence import classes, repeated
from surefoot.processors.evidence.estimate import Estimate, Interval, Sides
from surefoot.processors.evidence.groups import GroupTable, IntArray
from surefoot.processors.evidence.intervals import (
    DEFAULT_MEAN,
    DEFAULT_SHARE,
    MeanMethod,
    ShareMethod,
    mean_interval,
    share_interval,
)
from surefoot.processors.evidence.production import block_bounds
from surefoot.processors.evidence.profile import (
    INDICATORS,
    Evidence,
    GraderError,
    IndicatorPart,
    Indicators,
    IntervalPart,
    StratumCounts,
)
from surefoot.processors.evidence.repeated import PAPER
from surefoot.processors.evidence.template import BlockUnit
from surefoot.processors.evidence.types import EvidenceInputError, GroupTypes, pass_hat_types, yield_types

METHODS: Final[tuple[str, ...]] = (*get_args(MeanMethod), *get_args(ShareMethod))

# Averages over runs of something else than the outcome: what it is the share of.
RATIOS: Final = {
    "policy_compliance_rate": "mean over groups of runs that kept the rules / runs with a process verdict",
    "recovery_success": "mean over groups of runs that recovered / runs in which a tool failed",
    "autonomous_coverage": "mean over groups of runs that nobody had to help / runs",
    "intervention_success": "mean over groups of acceptable runs / judged runs in which somebody intervened",
}
_SHARES: Final[dict[str, Callable[[GroupTable], Estimate]]] = {
    "mixed_outcome_rate": classes.mixed_outcome_rate,
    "equivalent_outcome_agreement": classes.equivalent_outcome_agreement,
    "consistent_wrong_rate": classes.consistent_wrong_rate,
    "non_equivalent_repeated_failure_rate": classes.non_equivalent_failure_rate,
}
_CLASSES_OF: Final = {
    "mixed_outcome_rate": ("mixed",),
    "equivalent_outcome_agreement": ("all_acceptable", "consistent_wrong"),
    "consistent_wrong_rate": ("consistent_wrong",),
    "non_equivalent_repeated_failure_rate": ("non_equivalent_repeated_failure",),
}
NOT_MEASURED: Final = "grader error not measured"


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts of some strata, spread out to one row a group again, as the estimators take them."""

    strata: tuple[StratumCounts, ...]
    k: int
    groups: GroupTable
    codes: IntArray  # stratum of each group
    descriptive: str  # why no interval of these runs may open a gate; "" if nothing is against it
    block_unit: BlockUnit | None = None  # by which production was divided
    first_run: str | None = None

    @classmethod
    def of(cls, evidence: Evidence, k: int, only: Sequence[StratumCounts] | None = None) -> Counted:
        """The evidence's strata, or ``only`` these of them."""
        strata = evidence.counts if only is None else only
        rows = [(place, row) for place, stratum in enumerate(strata) for row in stratum.outcomes]
        times = np.array([row.groups for _, row in rows], dtype=np.int64)
        kinds = GroupTable.from_counts(
            np.array([row.n for _, row in rows], dtype=np.int64),
            np.array([row.c for _, row in rows], dtype=np.int64),
            missing=[row.missing for _, row in rows],
            equivalent=[-1 if row.equivalent is None else int(row.equivalent) for _, row in rows],
            equivalence_rule=evidence.equivalence_rule,
        )
        table = kinds.repeated(times)
        codes = np.repeat(np.array([place for place, _ in rows], dtype=np.int64), times)
        reason = _descriptive(evidence.tally.production)
        return cls(tuple(strata), k, table, codes, reason, evidence.block_unit, evidence.first_run)

    def carefully(self, name: str, sides: Sides) -> Counted:
        """The same for a gate on an indicator: repeated runs without a verdict count as what makes its bound worse.

        That is unacceptable where a share of good has a floor. Who leaves them out trusts that they are like the
        others; runs that are hard to judge are not. Production stays: what nobody chose to grade is not missing.
        """
        groups = self.groups
        lacking = groups.missing > 0
        if self.descriptive or not lacking.any():
            return self
        n, c = groups.n + groups.missing, groups.c
        if name == "mixed_outcome_rate":
            c = np.where(lacking, np.clip(c, 1, n - 1), c)
        elif sides == "upper" and name not in _CLASSES_OF:
            c = c + groups.missing
        same = np.where(lacking & (groups.equivalent == 1), -1, groups.equivalent).astype(np.int8)
        judged = replace(groups, n=n, c=c, missing=np.zeros_like(n), equivalent=same)
        return replace(self, groups=judged)

    def reaching_k(self) -> Counted:
        """Only the groups with k judged runs: Pass^k over Mean@k is about the same groups above and below the line."""
        enough = self.groups.n >= self.k
        return self if enough.all() else replace(self, groups=self.groups.select(enough), codes=self.codes[enough])


def _descriptive(production: int | None) -> str:
    if not production:
        return ""
    return f"descriptive: {production} runs are production's, and what makes those depend on each other is not modelled"


def indicators(counted: Counted, grader: GraderError, confidence: float) -> Indicators:
    """All of the template's, each with a two-sided interval at ``confidence`` by its default method."""
    found = {name: estimate(counted, name, grader) for name in INDICATORS}
    intervals = {}
    for name in INDICATORS:
        interval = bounds(counted, name, "two", confidence)
        if interval is not None:
            intervals[name] = [IntervalPart.of(interval)]
    if grader.false_accept_intervals:
        intervals["grader_false_accept_rate"] = list(grader.false_accept_intervals)
    if grader.false_reject_intervals:
        intervals["grader_false_reject_rate"] = list(grader.false_reject_intervals)
    parts = {name: IndicatorPart.of(one) if isinstance(one, Estimate) else one for name, one in found.items()}
    return Indicators(**parts, confidence_intervals=intervals)


def estimate(counted: Counted, name: str, grader: GraderError) -> Estimate | IndicatorPart:
    """The point estimate of one indicator."""
    groups, k = counted.groups, counted.k
    if name == "outcome_yield":
        return repeated.outcome_yield(groups)
    if name == "strict_repeated_success_at_k":
        return replace(repeated.pass_hat_k(groups, k), name=name)
    if name == "normalised_consistency_at_k":
        return replace(repeated.normalised_consistency(groups, k), name=name)
    if name in _SHARES:
        return _SHARES[name](groups)
    if name in RATIOS:
        return _ratio(counted, name)
    measured = grader.false_accept if name == "grader_false_accept_rate" else grader.false_reject
    return measured or IndicatorPart(
        value=None,
        variant="none",
        k=None,
        groups=0,
        runs=0,
        definition="share of the unacceptable runs that the grader accepts"
        if name == "grader_false_accept_rate"
        else "share of the acceptable runs that the grader rejects",
        source=f"{PAPER}, section 6.3",
        reason=NOT_MEASURED,
    )


def bounds(
    counted: Counted,
    name: str,
    sides: Sides,
    confidence: float,
    method: str | None = None,
) -> Interval | None:
    """Bounds of an indicator, None where nothing was recorded. Raises EvidenceInputError if ``method`` is not for it.

    A share that depends on equivalence counts groups of unknown equivalence on the side that makes it worse. Averages
    over runs of production are bounded over its declared blocks; without these, and of all else, they are descriptive.
    """
    if counted.descriptive and counted.block_unit is not None and method is None:
        unit, first = counted.block_unit, counted.first_run
        by_block = block_bounds(counted.strata, unit, first, name, sides, confidence)
        if by_block is not None:
            return by_block
    found = _bounds(counted, name, sides, confidence, method)
    if found is None or not counted.descriptive:
        return found
    return replace(found, gate=False, note="; ".join(filter(None, (counted.descriptive, found.note))))


def _bounds(counted: Counted, name: str, sides: Sides, confidence: float, method: str | None) -> Interval | None:
    if name in _CLASSES_OF:
        hits = share_hits(counted, name)
        return None if hits is None else _share_bounds(hits, name, sides, confidence, method)
    if name == "normalised_consistency_at_k":
        return _quotient_bounds(counted, sides, confidence, method)
    if (hits := share_hits(counted, name)) is not None:
        return _share(hits.sure, hits.groups, name, sides, confidence, method)
    types = group_types(counted, name)
    return None if types is None else _mean(types, name, sides, confidence, method)


@dataclass(frozen=True, slots=True)
class Hits:
    """Groups that an indicator counts; ``most`` counts those of unknown equivalence, too."""

    sure: int
    most: int
    groups: int


def share_hits(counted: Counted, name: str) -> Hits | None:
    """What a share of groups is the share of; None of other indicators, and where nothing was repeated.

    Pass^k is such a share where every group has exactly k judged runs.
    """
    if name == "strict_repeated_success_at_k" and _all_exactly_k(counted):
        good = int((counted.groups.c == counted.k).sum())
        return Hits(good, good, len(counted.groups))
    found = classes.class_counts(counted.groups)
    total = len(counted.groups) - found["too_few_runs"]
    if name not in _CLASSES_OF or not total:
        return None
    sure = sum(found[one] for one in _CLASSES_OF[name])
    unknown = 0 if name == "mixed_outcome_rate" else found["unknown_equivalence"]
    return Hits(sure, sure + unknown, total)


def _all_exactly_k(counted: Counted) -> bool:
    return len(counted.groups) > 0 and bool(np.all(counted.groups.n == counted.k))


def group_types(counted: Counted, name: str) -> GroupTypes | None:
    """What a mean over groups is the mean of; None of other indicators, and where nothing was recorded."""
    n, c = counted.groups.n, counted.groups.c
    if name in RATIOS:
        runs, hits, codes = _ratio_columns(counted, name)
        return yield_types(runs, hits, codes) if len(runs) else None
    if name not in {"outcome_yield", "strict_repeated_success_at_k"}:
        return None
    keep = n >= (1 if name == "outcome_yield" else counted.k)
    if not keep.any():
        return None
    if name == "outcome_yield":
        return yield_types(n[keep], c[keep], counted.codes[keep])
    return pass_hat_types(n[keep], c[keep], counted.k, counted.codes[keep])


def _ratio_columns(counted: Counted, name: str) -> tuple[IntArray, IntArray, IntArray]:
    rows = [
        (row.runs, row.hits, place, row.groups)
        for place, stratum in enumerate(counted.strata)
        for row in stratum.ratios.get(name, [])
        if row.runs
    ]
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    runs, hits, codes = (np.repeat(table[:, column], table[:, 3]) for column in range(3))
    return runs, hits, codes


def _ratio(counted: Counted, name: str) -> Estimate:
    runs, hits, _ = _ratio_columns(counted, name)
    return Estimate(
        name=name,
        variant="task_mean",
        value=float(np.mean(hits / runs)) if len(runs) else None,
        k=None,
        groups=len(runs),
        runs=int(runs.sum()),
        definition=RATIOS[name],
        source=f"{PAPER}, section 6.1",
        reason=None if len(runs) else "no such run was recorded and judged",
    )


def _share_bounds(hits: Hits, name: str, sides: Sides, confidence: float, method: str | None) -> Interval:
    low = _share(hits.sure, hits.groups, name, sides, confidence, method)
    if hits.most == hits.sure or sides == "lower":
        return low
    high = _share(hits.most, hits.groups, name, sides, confidence, method)
    note = f"the upper bound takes {hits.most - hits.sure} groups of unknown equivalence as hits"
    return replace(high, low=low.low, note="; ".join(filter(None, (high.note, note))))


def _share(hits: int, total: int, name: str, sides: Sides, confidence: float, method: str | None) -> Interval:
    if method is not None and method not in get_args(ShareMethod):
        raise EvidenceInputError(_unfit(method, name, get_args(ShareMethod)))
    chosen = DEFAULT_SHARE if method is None else cast(ShareMethod, method)
    return share_interval(hits, total, sides=sides, confidence=confidence, method=chosen)


def _mean(types: GroupTypes, name: str, sides: Sides, confidence: float, method: str | None) -> Interval:
    if method is not None and method not in get_args(MeanMethod):
        raise EvidenceInputError(_unfit(method, name, get_args(MeanMethod)))
    chosen = DEFAULT_MEAN if method is None else cast(MeanMethod, method)
    return mean_interval(types, sides=sides, confidence=confidence, method=chosen)


def _quotient_bounds(counted: Counted, sides: Sides, confidence: float, method: str | None) -> Interval | None:
    """Pass^k over Mean@k: each of the two gets half of the error, so that the quotient of the bounds holds."""
    if method is not None:
        raise EvidenceInputError(_unfit(method, "normalised_consistency_at_k", ("the default",)))
    each = (1 + confidence) / 2
    counted = counted.reaching_k()
    strict = _bounds(counted, "strict_repeated_success_at_k", sides, each, None)
    opposite: dict[Sides, Sides] = {"two": "two", "lower": "upper", "upper": "lower"}
    mean = _bounds(counted, "outcome_yield", opposite[sides], each, None)
    if strict is None or mean is None:
        return None
    low = strict.low / mean.high if strict.low is not None and mean.high else None
    high = min(1.0, strict.high / mean.low) if strict.high is not None and mean.low else None
    if sides != "lower" and high is None:
        high = 1.0
    return Interval(
        method=f"quotient of {strict.method} and {mean.method}",
        confidence=confidence,
        sides=sides,
        low=low,
        high=high,
        unit="group",
        gate=strict.gate and mean.gate,
        note="; ".join(filter(None, (strict.note, mean.note))),
    )


def _unfit(method: str, name: str, fit: Sequence[str]) -> str:
    return f"{method} is no method for {name}; there are {', '.join(fit)}"
