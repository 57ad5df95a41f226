"""What every estimator of this room returns: a number with its definition, its sample size and its intervals.

Rule: undefined is ``value=None`` with a reason, never 0 and never NaN; an interval says by which method, and whether a
gate may use it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Sides = Literal["two", "lower", "upper"]


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds of an estimate. ``low`` is None of an upper bound, ``high`` of a lower one; both where undefined."""

    method: str  # "clopper_pearson", "wilson", "betting", "cluster_bootstrap_percentile_exact", ...
    confidence: float  # of the whole statement: a one-sided bound at .95 is wrong 5 % of the time
    sides: Sides
    low: float | None
    high: float | None
    unit: str  # what was treated as independent: "group", "run", "block"
    gate: bool  # whether the method reaches its nominal level here (docs/evidence-coverage.md)
    note: str = ""  # why it is not for gates ("descriptive: ..."), or why there is none


@dataclass(frozen=True, slots=True)
class Estimate:
    """One estimator's answer."""

    name: str  # "pass_hat_k", "outcome_yield", "consistent_wrong_rate", ...
    variant: str  # which of its definitions: "unbiased", "plug_in", "legacy_ddof1"
    value: float | None
    k: int | None
    groups: int  # run groups (tasks) that it is about
    runs: int
    definition: str  # formula in one line
    source: str  # paper and section
    reason: str | None = None  # why there is no value, or what it leaves out
    intervals: tuple[Interval, ...] = ()
    says: str = ""  # what the number means, in a sentence, where a reader would not know
