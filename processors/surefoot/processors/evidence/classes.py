"""Shares of the four outcome classes, and the tasks that somebody should look at.

Rule: the classes are about repetition, so a group needs two judged runs. Where failures of unknown equivalence are
among the groups, the shares that depend on it are undefined and say between which bounds they lie: leaving those
groups out would understate the wrong that repeats. ``unknown_as_equivalent`` is the pessimistic figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import binom

from surefoot.processors.evidence.estimate import Estimate
from surefoot.processors.evidence.groups import (
    ALL_ACCEPTABLE,
    CONSISTENT_WRONG,
    MIXED,
    NON_EQUIVALENT,
    UNCLASSED,
    GroupTable,
)
from surefoot.processors.evidence.repeated import PAPER, common_n, pass_at_k, pass_hat_k
from surefoot.processors.evidence.run_columns import numbered

UnknownVariant = Literal["equivalence_known", "unknown_as_equivalent"]
UNUSUAL = 0.01  # a task is listed when so few passes or fewer had at most this chance at the yield of its stratum


def class_counts(groups: GroupTable) -> dict[str, int]:
    """Return the number of groups by class; ``unknown_equivalence`` and ``too_few_runs`` hold the rest."""
    classes = groups.classes()
    few = groups.n < 2
    return {
        "all_acceptable": int((classes == ALL_ACCEPTABLE).sum()),
        "mixed": int((classes == MIXED).sum()),
        "consistent_wrong": int((classes == CONSISTENT_WRONG).sum()),
        "non_equivalent_repeated_failure": int((classes == NON_EQUIVALENT).sum()),
        "unknown_equivalence": int(((classes == UNCLASSED) & ~few).sum()),
        "too_few_runs": int(few.sum()),
    }


def all_acceptable_rate(groups: GroupTable) -> Estimate:
    """Return the share of groups in which every judged run was acceptable."""
    return _share(groups, "all_acceptable_rate", ("all_acceptable",), "groups with c = n / groups with n >= 2")


def mixed_outcome_rate(groups: GroupTable) -> Estimate:
    """Return the share of groups with an acceptable and an unacceptable run."""
    return _share(groups, "mixed_outcome_rate", ("mixed",), "groups with 0 < c < n / groups with n >= 2")


def mixed_outcome_rate_at(groups: GroupTable, k: int) -> Estimate:
    """Return the chance that k runs of a task are mixed, Pass@k - Pass^k, comparable between unequal n."""
    some, every = pass_at_k(groups, k), pass_hat_k(groups, k)
    defined = k >= 2 and some.value is not None and every.value is not None
    return Estimate(
        name="mixed_outcome_rate",
        variant="unbiased_at_k",
        value=some.value - every.value if defined and some.value is not None and every.value is not None else None,
        k=k,
        groups=every.groups,
        runs=every.runs,
        definition="Pass@k - Pass^k over groups with n >= k",
        source=f"{PAPER}, section 6.1",
        reason="one run is never mixed" if k < 2 else every.reason,
    )


def consistent_wrong_rate(groups: GroupTable, *, variant: UnknownVariant = "equivalence_known") -> Estimate:
    """Return the share of groups whose runs were all unacceptable in the same way."""
    definition = "groups with c = 0 and equivalent runs / groups with n >= 2"
    return _share(groups, "consistent_wrong_rate", ("consistent_wrong",), definition, variant, asks_equivalence=True)


def non_equivalent_failure_rate(groups: GroupTable, *, variant: UnknownVariant = "equivalence_known") -> Estimate:
    """Return the share of groups whose runs were all unacceptable, but not in the same way."""
    names = ("non_equivalent_repeated_failure",)
    definition = "groups with c = 0 and runs that are not equivalent / groups with n >= 2"
    return _share(groups, "non_equivalent_repeated_failure_rate", names, definition, variant, asks_equivalence=True)


def equivalent_outcome_agreement(groups: GroupTable, *, variant: UnknownVariant = "equivalence_known") -> Estimate:
    """Return the share of groups whose runs agree: all acceptable, or all unacceptable and equivalent.

    Acceptable runs are equivalent by the outcome contract, whatever path they took. Agreement is not correctness.
    """
    names = ("all_acceptable", "consistent_wrong")
    definition = "(groups with c = n, or with c = 0 and equivalent runs) / groups with n >= 2"
    return _share(groups, "equivalent_outcome_agreement", names, definition, variant, asks_equivalence=True)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A task for audit: it may be too hard, broken, or wrongly graded."""

    task_id: str
    group_id: str
    n: int
    c: int
    why: Literal["none_passed", "unusually_few"]
    chance: float  # of so few passes or fewer, were the task like its stratum


def suspect_tasks(groups: GroupTable, *, unusual: float = UNUSUAL) -> tuple[Suspect, ...]:
    """Return tasks that none, or unusually few, of their runs passed, the most surprising first.

    A list for people to look at, not a test: with many tasks some are listed by chance, and nothing is left out of the
    estimates because it stands here.
    """
    stratum = _stratum_numbers(groups)
    n, c = groups.n, groups.c
    strata = int(stratum.max(initial=-1)) + 1
    total = np.bincount(stratum, weights=n, minlength=strata)
    good = np.bincount(stratum, weights=c, minlength=strata)
    average = np.divide(good, total, out=np.zeros(strata), where=total > 0)
    width = int(n.max(initial=0)) + 1
    kind, kinds = numbered((stratum * width + n) * width + c, strata * width**2)
    chance = binom.cdf(kinds % width, kinds // width % width, average[kinds // width**2])[kind]
    listed = np.flatnonzero((n > 0) & ((c == 0) | (chance <= unusual)))
    order = listed[np.argsort(chance[listed], kind="stable")]  # of equal chance by group id, as they stand
    columns = (column[order].tolist() for column in (groups.task_id, groups.group_id, n, c, chance))
    return tuple(
        Suspect(
            task_id=str(task),
            group_id=str(group),
            n=runs,
            c=good,
            why="none_passed" if good == 0 else "unusually_few",
            chance=chance,
        )
        for task, group, runs, good, chance in zip(*columns, strict=True)
    )


def _stratum_numbers(groups: GroupTable) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    key, span = np.zeros(len(groups), dtype=np.int64), 1
    for codes in groups.strata.values():
        key, span = key * (len(codes.names) + 1) + codes.codes + 1, span * (len(codes.names) + 1)
    return numbered(key, span)[0]


def _share(
    groups: GroupTable,
    name: str,
    classes: tuple[str, ...],
    definition: str,
    variant: UnknownVariant = "equivalence_known",
    *,
    asks_equivalence: bool = False,
) -> Estimate:
    counts = class_counts(groups)
    few, unknown = counts["too_few_runs"], counts["unknown_equivalence"]
    total = len(groups) - few
    hits = sum(counts[one] for one in classes)
    reasons = [f"{few} groups left out: fewer than 2 judged runs, so nothing was repeated"] if few else []
    value = hits / total if total else None
    if not total:
        reasons = ["no group has 2 judged runs: nothing was repeated"]
    elif asks_equivalence and unknown:
        value, told = _with_unknown(hits, unknown, total, variant, counts_it="consistent_wrong" in classes)
        reasons.append(told)
    n = groups.n[groups.n >= 2]
    if len(n) and common_n(n) is None:
        reasons.append(f"groups have {n.min()} to {n.max()} judged runs: more runs find more disagreement")
    return Estimate(
        name=name,
        variant=f"{variant};{groups.equivalence_rule}" if asks_equivalence else "own_n",
        value=value,
        k=common_n(n),
        groups=total,
        runs=int(n.sum()),
        definition=definition,
        source=f"{PAPER}, section 6.1",
        reason="; ".join(reasons) or None,
    )


def _with_unknown(
    hits: int, unknown: int, total: int, variant: UnknownVariant, *, counts_it: bool
) -> tuple[float | None, str]:
    failing = f"{unknown} of {total} groups failed throughout with unknown equivalence"
    if variant == "unknown_as_equivalent":
        return (hits + unknown if counts_it else hits) / total, f"{failing}: taken as equivalent, the worse case"
    return None, f"{failing}: the share lies between {hits / total:.6g} and {(hits + unknown) / total:.6g}"
