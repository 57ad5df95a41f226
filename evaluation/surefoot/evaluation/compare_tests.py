"""Exact tests of a change, and Holm's correction for making several.

Rule: every p-value is two-sided and doubles the smaller tail, so that the direction of a change that is claimed at
level alpha is wrong in at most alpha / 2 of cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from scipy import stats


def mcnemar_exact(fell: int, rose: int) -> float:
    """Return the exact McNemar p-value of pairs that differ: ``fell`` lost what they had, ``rose`` gained it."""
    # With p = 1/2 the two tails are equal, so that the binomial test's p-value is twice the smaller one.
    return float(stats.binomtest(fell, fell + rose, 0.5).pvalue) if fell + rose else 1.0


@lru_cache(maxsize=4096)
def fisher_doubled(good: int, runs: int, good_after: int, runs_after: int) -> float:
    """Return twice the smaller tail of Fisher's exact test that two shares are equal, at most 1."""
    table = [[good, runs - good], [good_after, runs_after - good_after]]
    tails = (float(stats.fisher_exact(table, alternative=side)[1]) for side in ("less", "greater"))
    return min(1.0, 2 * min(tails))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm: those at most alpha are rejected with a family-wise error of alpha."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = highest
    return adjusted
