"""Success under repetition: Mean@k, Pass@k, Pass^k, and what lies between them.

Rule: a group with fewer than k judged runs says nothing about k runs. It is left out and counted (variant
``unbiased``), or leaves the whole estimate undefined (``unbiased_complete``); it never counts as 0. The task group is
the unit: each counts once, however often it was run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Literal

import numpy as np

from surefoot.processors.evidence.estimate import Estimate
from surefoot.processors.evidence.groups import FloatArray, GroupsError, GroupTable, IntArray
from surefoot.processors.evidence.run_columns import numbered, tallied

YieldVariant = Literal["task_mean", "pooled_runs"]
PassVariant = Literal["unbiased", "unbiased_complete"]

IBM = "arXiv:2609.08832 (IBM consistency gap)"
TAU = "arXiv:2406.12045 (tau-bench pass^k)"
CODEX = "arXiv:2107.03374 (Codex pass@k)"
PAPER = "Agent Reliability Needs Repeated Evidence"


def pass_hat_each(n: IntArray, c: IntArray, k: int) -> FloatArray:
    """Return per group the share of its subsets of k runs in which all are acceptable; NaN where n < k."""
    return _each(n, c, k, _all_of)


def pass_at_each(n: IntArray, c: IntArray, k: int) -> FloatArray:
    """Return per group the share of its subsets of k runs with at least one acceptable run; NaN where n < k."""
    return _each(n, c, k, _any_of)


def outcome_yield(groups: GroupTable, *, variant: YieldVariant = "task_mean") -> Estimate:
    """Return Mean@k: of the mean task (``task_mean``), or of all runs as one pool (``pooled_runs``).

    The two differ only where groups were run unequally often; a pool lets an often-run task count more.
    """
    judged = groups.n > 0
    n, c = groups.n[judged], groups.c[judged]
    left_out = _left_out(int((~judged).sum()), "no judged run")
    if variant == "task_mean":
        value = float(np.mean(c / n)) if len(n) else None
        definition = "mean over groups of c/n"
    else:
        value = float(c.sum() / n.sum()) if len(n) else None
        definition = "sum of c / sum of n"
    return Estimate(
        name="outcome_yield",
        variant=variant,
        value=value,
        k=common_n(n),
        groups=len(n),
        runs=int(n.sum()),
        definition=definition,
        source=f"{IBM}; {PAPER}, section 1",
        reason=left_out if len(n) else "no group has a judged run",
    )


def pass_hat_k(groups: GroupTable, k: int, *, variant: PassVariant = "unbiased") -> Estimate:
    """Return Pass^k: the chance that k runs of a task are all acceptable."""
    return _passes(groups, k, variant, "pass_hat_k", _all_of, "mean over groups of C(c,k)/C(n,k)", TAU)


def pass_at_k(groups: GroupTable, k: int, *, variant: PassVariant = "unbiased") -> Estimate:
    """Return Pass@k: the chance that at least one of k runs of a task is acceptable."""
    return _passes(groups, k, variant, "pass_at_k", _any_of, "mean over groups of 1 - C(n-c,k)/C(n,k)", CODEX)


def consistency_gap(groups: GroupTable, k: int, *, variant: PassVariant = "unbiased") -> Estimate:
    """Return Mean@k - Pass^k over the same groups."""
    return _between(groups, k, variant, "consistency_gap", "Mean@k - Pass^k", gap)


def normalised_consistency(groups: GroupTable, k: int, *, variant: PassVariant = "unbiased") -> Estimate:
    """Return Pass^k / Mean@k over the same groups; undefined where nothing was acceptable."""
    return _between(groups, k, variant, "normalised_consistency", "Pass^k / Mean@k", normalised)


def gap(mean: float, strict: float) -> float:
    """Return the consistency gap of published figures: Mean@k - Pass^k."""
    return mean - strict


def normalised(mean: float, strict: float) -> float | None:
    """Return the normalised consistency of published figures: Pass^k / Mean@k, None where the mean is 0."""
    return strict / mean if mean > 0 else None


def homogeneous_pass_hat_k(groups: GroupTable, k: int, *, variant: PassVariant = "unbiased") -> Estimate:
    """Return p^k: Pass^k if every task had the yield p and runs were independent. ``says`` compares it to Pass^k."""
    strict = pass_hat_k(groups, k, variant=variant)
    mean = _mean_where(groups, k)
    value = None if strict.value is None or mean is None else mean**k
    return Estimate(
        name="homogeneous_pass_hat_k",
        variant=variant,
        value=value,
        k=k,
        groups=strict.groups,
        runs=strict.runs,
        definition="(Mean@k)^k: a reference under equal tasks and independent runs, not a measurement",
        source=f"{PAPER}, section 2.1",
        reason=strict.reason,
        says="" if value is None or strict.value is None or mean is None else heterogeneity(mean, strict.value, k),
    )


def heterogeneity(mean: float, strict: float, k: int) -> str:
    """Say what the difference between an observed Pass^k and p^k means."""
    reference = mean**k
    beside = f"Pass^{k} {strict:.4f} beside {mean:.4f}^{k} = {reference:.4f}"
    if k == 1 or mean in {0.0, 1.0}:
        return f"{beside}: equal by construction, so this says nothing about differences between tasks."
    if strict > reference:
        return (
            f"{beside}: {strict - reference:.4f} more than equal tasks with independent runs would give. Tasks differ "
            "(some nearly always pass, some nearly never) or runs of a task depend on each other; look at the tasks, "
            "the average describes few of them."
        )
    return (
        f"{beside}: no more than equal tasks with independent runs would give. These groups show no sign that tasks "
        "differ; failures fall on tasks as if by chance."
    )


@dataclass(frozen=True, slots=True)
class StepChain:
    """p^n for a chain of n steps. A sensitivity test: nobody measured it, and no gate may use it."""

    value: float
    per_step: float
    steps: int
    label: str = "sensitivity test, not a measurement"
    definition: str = "p^n"
    source: str = f"{PAPER}, section 5"
    assumptions: tuple[str, str, str] = (
        "every step has the same chance of success",
        "steps succeed or fail independently of each other",
        "every wrong step makes the final outcome unacceptable: nothing recovers",
    )


def step_chain(per_step: float, steps: int) -> StepChain:
    """Return the chance that a chain of ``steps`` steps never fails, under the three assumptions that it names."""
    if not 0 <= per_step <= 1 or steps < 0:
        raise GroupsError(f"step chain: p is {per_step} and n is {steps}; p must be in 0..1 and n at least 0")
    return StepChain(value=per_step**steps, per_step=per_step, steps=steps)


def common_n(n: IntArray) -> int | None:
    """Return the number of judged runs that every group has, None where it differs."""
    return int(n[0]) if len(n) and bool(np.all(n == n[0])) else None


def _each(n: IntArray, c: IntArray, k: int, share: Callable[[int, int, int], float]) -> FloatArray:
    out = np.full(len(n), np.nan)
    enough = n >= k
    width = int(n.max(initial=0)) + 1
    where, pairs = numbered(n[enough] * width + c[enough], width**2)
    out[enough] = _shares(pairs // width, pairs % width, k, share)[where]
    return out


def _shares(n: IntArray, c: IntArray, k: int, share: Callable[[int, int, int], float]) -> FloatArray:
    # Integers of any size, divided once: exact to the last bit, and cheap because few pairs (n, c) differ.
    if k < 1:
        raise GroupsError(f"repeated success at k = {k}: k counts runs; use 1 or more")
    return np.array(
        [share(total, good, k) for total, good in zip(n.tolist(), c.tolist(), strict=True)], dtype=np.float64
    )


def _kinds(groups: GroupTable, k: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return the different (n, c) of groups with n >= k, and how many groups have each: few, however many groups."""
    width = int(groups.n.max(initial=0)) + 1
    pairs, times = tallied(groups.n * width + groups.c, width**2)
    enough = pairs // width >= k
    return pairs[enough] // width, pairs[enough] % width, times[enough]


def _all_of(n: int, c: int, k: int) -> float:
    return comb(c, k) / comb(n, k)


def _any_of(n: int, c: int, k: int) -> float:
    return (comb(n, k) - comb(n - c, k)) / comb(n, k)


def _left_out(count: int, why: str) -> str | None:
    return f"{count} group{'s' if count > 1 else ''} left out: {why}" if count else None


def _short(groups: int, reach: int, k: int, variant: PassVariant) -> tuple[str | None, bool]:
    """Return what is to be said where ``reach`` of ``groups`` reach k, and whether the estimate is defined."""
    short = groups - reach
    if not reach:
        return f"no group has {k} judged runs", False
    if short and variant == "unbiased_complete":
        return f"{short} of {groups} groups have fewer than {k} judged runs: not defined for them", False
    return _left_out(short, f"fewer than {k} judged runs"), True


def _passes(
    groups: GroupTable,
    k: int,
    variant: PassVariant,
    name: str,
    share: Callable[[int, int, int], float],
    definition: str,
    source: str,
) -> Estimate:
    n, c, times = _kinds(groups, k)
    shares = _shares(n, c, k, share)
    reach = int(times.sum())
    reason, defined = _short(len(groups), reach, k, variant)
    return Estimate(
        name=name,
        variant=variant,
        value=float(times @ shares / reach) if defined else None,
        k=k,
        groups=reach,
        runs=int(times @ n),
        definition=definition,
        source=source,
        reason=reason,
    )


def _mean_where(groups: GroupTable, k: int) -> float | None:
    n, c, times = _kinds(groups, k)
    return float(times @ (c / n) / times.sum()) if len(n) else None


def _between(
    groups: GroupTable,
    k: int,
    variant: PassVariant,
    name: str,
    definition: str,
    combine: Callable[[float, float], float | None],
) -> Estimate:
    strict, mean = pass_hat_k(groups, k, variant=variant), _mean_where(groups, k)
    value = None if strict.value is None or mean is None else combine(mean, strict.value)
    nothing = strict.value is not None and value is None
    return Estimate(
        name=name,
        variant=variant,
        value=value,
        k=k,
        groups=strict.groups,
        runs=strict.runs,
        definition=f"{definition}, both over groups with n >= k",
        source=IBM,
        reason="no run was acceptable: 0/0" if nothing else strict.reason,
    )
