"""Three standard errors of one yield, because each answers another question.

Published leaderboards often print the one for the same tasks again; it was 2 to 6 times smaller than the one for new
tasks on three published agents (docs/evidence-coverage.md names the data).

Rule: gates use ``new_tasks`` only; the others are for comparing with what others print.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from surefoot.processors.evidence.types import EvidenceInputError


@dataclass(frozen=True, slots=True)
class StandardErrors:
    """Of the mean over tasks of their shares of acceptable runs; None where it is undefined."""

    independent_runs: float  # as if no two runs shared a task
    same_tasks: float | None  # these tasks, run again; needs 2 runs or more of each
    new_tasks: float | None  # other tasks of the same population and strata; needs 2 tasks or more in each stratum
    design_effect: float | None  # variance of new_tasks over that of independent_runs


def standard_errors(n: ArrayLike, c: ArrayLike, strata: ArrayLike | None = None, ddof: int = 1) -> StandardErrors:
    """From runs with a verdict ``n`` and acceptable ones ``c`` by task; ``ddof`` 0 gives the bootstrap's own figure."""
    runs, good = np.asarray(n, dtype=np.int64), np.asarray(c, dtype=np.int64)
    if not len(runs) or runs.shape != good.shape or runs.min() < 1 or good.min() < 0 or (good > runs).any():
        raise EvidenceInputError("standard errors need 0 <= c <= n and n >= 1 for each of 1 task or more")
    share = good / runs
    tasks = len(runs)
    codes = np.zeros(tasks, dtype=np.int64) if strata is None else np.unique(strata, return_inverse=True)[1]
    mean = good.sum() / runs.sum()
    independent = float(np.sqrt(mean * (1 - mean) / runs.sum()))
    same = float(np.sqrt((share * (1 - share) / (runs - 1)).sum()) / tasks) if runs.min() > 1 else None
    sizes = np.bincount(codes)
    if sizes.min() <= ddof:
        return StandardErrors(independent, same, None, None)
    centred = share - (np.bincount(codes, share) / sizes)[codes]
    variances = np.bincount(codes, centred**2) / (sizes - ddof)
    new = float(np.sqrt(sizes @ variances) / tasks)
    return StandardErrors(independent, same, new, (new / independent) ** 2 if independent else None)
