"""How much of the variation is between tasks, and the two standard errors of a yield.

Rule: the standard error across repetitions answers "the same tasks again", the one across tasks answers "other tasks
of this kind". Published ± figures are the former; a gate is about tasks to come, so it needs the latter. Both stand
side by side, each with its question.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefoot.processors.evidence.estimate import Estimate
from surefoot.processors.evidence.groups import FloatArray, GroupTable, IntArray
from surefoot.processors.evidence.repeated import PAPER, common_n
from surefoot.processors.evidence.run_columns import numbered

ICC_SOURCE = "Shrout and Fleiss 1979, ICC(1); unequal n after Snedecor and Cochran"


def intraclass_correlation(groups: GroupTable) -> Estimate:
    """Return ICC(1) of run outcomes, by one-way analysis of variance with tasks as classes.

    By hand: statsmodels and scipy have no ICC(1), and none of either works on counts.
    """
    judged = groups.n > 0
    n, c = groups.n[judged], groups.c[judged]
    value, reason = _icc(n, c)
    return Estimate(
        name="icc",
        variant="icc1_anova",
        value=value,
        k=common_n(n),
        groups=len(n),
        runs=int(n.sum()),
        definition="(MSB - MSW) / (MSB + (n0 - 1) MSW), n0 = (N - sum n^2 / N) / (G - 1)",
        source=ICC_SOURCE,
        reason=reason,
        says="" if value is None else _icc_says(value),
    )


@dataclass(frozen=True, slots=True)
class StandardErrors:
    """Standard errors of one yield, side by side. Only ``task_level`` is for gates."""

    run_level: Estimate  # tasks fixed: "these tasks again"
    task_level: Estimate  # tasks sampled: "other tasks like these"
    naive: Estimate  # every run as if independent: wrong where ICC is above 0, shown because it is often published
    design_effect: Estimate  # (task level / naive)^2, both with ddof 0


def standard_errors(groups: GroupTable) -> StandardErrors:
    """Return the standard errors of the mean over tasks."""
    judged = groups.n > 0
    n, c = groups.n[judged], groups.c[judged]
    naive = _naive(n, c)
    spread = _spread(c / n, ddof=0)
    effect = (spread / naive.value) ** 2 if spread is not None and naive.value else None
    return StandardErrors(
        run_level=run_level_error(groups),
        task_level=task_level_error(groups),
        naive=naive,
        design_effect=_se(
            "design_effect",
            "ddof0",
            effect,
            n,
            "(task-level SE / naive SE)^2",
            None if effect is not None else "the yield does not vary: 0/0",
        ),
    )


def task_level_error(groups: GroupTable) -> Estimate:
    """Return the standard error of the yield when tasks are a sample: sd of task means by the root of their number."""
    judged = groups.n > 0
    n = groups.n[judged]
    value = _spread(groups.c[judged] / n, ddof=1)
    reason = "one task shows no variation between tasks" if len(n) == 1 else "no group has a judged run"
    return _se(
        "outcome_yield_se",
        "task_level_ddof1",
        value,
        n,
        "sd(c/n, ddof=1) / sqrt(groups): other tasks of this kind",
        reason if value is None else None,
    )


def run_level_error(groups: GroupTable) -> Estimate:
    """Return the standard error of the yield when the tasks are fixed and only runs are drawn anew.

    Across repetitions where each run says which one it was (as leaderboards do it), otherwise from the variation
    within tasks, which estimates the same.
    """
    judged = groups.n > 0
    n, c = groups.n[judged], groups.c[judged]
    across = _repetition_means(groups)
    if across is not None:
        value = _spread(across, ddof=1)
        definition = "sd of the yields of each repetition (ddof=1) / sqrt(repetitions): these tasks again"
        return _se("outcome_yield_se", "run_level_across_repetitions", value, n, definition, None)
    definition = "sqrt(sum of p(1-p)/(n-1)) / groups: these tasks again"
    if not len(n) or bool(np.any(n < 2)):
        reason = "a group with one judged run shows no variation within its task"
        return _se("outcome_yield_se", "run_level_within_tasks", None, n, definition, reason)
    p = c / n
    value = float(np.sqrt(np.sum(p * (1 - p) / (n - 1))) / len(n))
    return _se("outcome_yield_se", "run_level_within_tasks", value, n, definition, None)


def _repetition_means(groups: GroupTable) -> FloatArray | None:
    """Return the yield of each repetition, None unless every group was judged in each of two or more."""
    if groups.runs is None or not len(groups):
        return None
    number, verdict = groups.runs.numbers["repetition"], groups.runs.flags["acceptable"]
    kept = (verdict >= 0) & groups.runs.counted
    if not kept.any() or bool(np.isnan(number[kept]).any()):
        return None
    place, whole = groups.runs.group[kept], number[kept].astype(np.int64)
    repetition, different = numbered(whole - whole.min(), int(whole.max() - whole.min()) + 1)
    times = len(different)
    if times < 2 or len(place) != len(groups) * times:
        return None
    if bool(np.any(np.diff(place * times + repetition) == 0)):  # runs stand by group and repetition
        return None
    return np.bincount(repetition, weights=verdict[kept]) / len(groups)


def _icc(n: IntArray, c: IntArray) -> tuple[float | None, str | None]:
    groups, runs = len(n), int(n.sum())
    if groups < 2:
        return None, "needs two tasks: one shows no variation between tasks"
    if runs == groups:
        return None, "every task was run once: nothing shows the variation within a task"
    p, overall = c / n, c.sum() / runs
    between = float(np.sum(n * (p - overall) ** 2)) / (groups - 1)
    within = float(np.sum(n * p * (1 - p))) / (runs - groups)
    size = (runs - float(np.sum(n.astype(np.float64) ** 2)) / runs) / (groups - 1)
    if between == 0 and within == 0:
        return None, "every run ended alike: no variation to divide"
    return (between - within) / (between + (size - 1) * within), None


def _icc_says(value: float) -> str:
    if value <= 0:
        return "Runs of one task are no more alike than runs of different tasks: here each run counts as new evidence."
    share = f"{value:.0%} of the variation of outcomes is between tasks"
    if value < 0.5:
        return f"{share}: whether a run succeeds depends more on the run than on the task."
    return f"{share}: the task largely decides, so running it again adds little; more tasks narrow the interval."


def _spread(values: FloatArray, *, ddof: int) -> float | None:
    return float(np.std(values, ddof=ddof) / np.sqrt(len(values))) if len(values) > ddof else None


def _naive(n: IntArray, c: IntArray) -> Estimate:
    runs = int(n.sum())
    p = float(c.sum() / runs) if runs else None
    value = None if p is None else float(np.sqrt(p * (1 - p) / runs))
    reason = "no group has a judged run" if p is None else None
    return _se("outcome_yield_se", "naive_runs_independent", value, n, "sqrt(p(1-p)/runs)", reason)


def _se(name: str, variant: str, value: float | None, n: IntArray, definition: str, reason: str | None) -> Estimate:
    return Estimate(
        name=name,
        variant=variant,
        value=value,
        k=common_n(n),
        groups=len(n),
        runs=int(n.sum()),
        definition=definition,
        source=f"{PAPER}, section 6.2",
        reason=reason,
    )
