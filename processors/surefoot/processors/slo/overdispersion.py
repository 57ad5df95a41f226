"""Do failures come together? The correlation between two events of the same hour.

The exact test takes failures to be independent. When a model provider has a bad hour they are not, and chance alone
makes more bad windows than the test expects.

Source: the analysis-of-variance estimator of the intraclass correlation of binary data (Ridout, Demetrio and Firth,
Biometrics 55, 1999, section 2.1), which in their comparison is among the best and needs no iteration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True)
class Overdispersion:
    """``correlation`` 0 is independence; by chance it may come out below. None: it cannot be told."""

    correlation: float | None
    hours: int  # with at least two labelled events: the sample


def overdispersion(good: ArrayLike, bad: ArrayLike) -> Overdispersion:
    """From the labelled events of each hour; hours with fewer than two events say nothing and are left out."""
    failures = np.asarray(bad, dtype=float)
    sizes = np.asarray(good, dtype=float) + failures
    used = sizes >= 2
    failures, sizes = failures[used], sizes[used]
    groups, total = len(sizes), sizes.sum()
    if groups < 2:
        return Overdispersion(None, groups)
    within = (failures - failures**2 / sizes).sum() / (total - groups)
    between = ((failures**2 / sizes).sum() - failures.sum() ** 2 / total) / (groups - 1)
    typical = (total - (sizes**2).sum() / total) / (groups - 1)
    spread = between + (typical - 1) * within
    return Overdispersion(float((between - within) / spread) if spread > 0 else None, groups)
