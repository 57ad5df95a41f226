"""Which graded runs a person should adjudicate: seeded, by task class and verdict, and of as many groups as possible.

Rule: within a task class and a verdict every group has the same chance, whatever anybody thinks of the run. That is
what the grader's error is computed from; runs that somebody picked because they looked wrong would make any grader
look bad, and those that looked right, good.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from surefoot.processors.evidence.grading.reading import GradedRun, Said
from surefoot.processors.evidence.intervals import share_interval
from surefoot.processors.evidence.types import EvidenceInputError

SEED: Final = 20260916
_MOST: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Drawn:
    """What was drawn of one task class and verdict."""

    task_class: str | None
    verdict: str
    graded: int
    audited: int  # before
    runs: tuple[GradedRun, ...]


def judged_by(run: GradedRun, grader: str | None) -> Said | None:
    """The verdict to audit: of the grader with this name, or the one that counts; None if there is no clear one."""
    said = run.effective if grader is None else next((one for one in run.verdicts if one.grader == grader), None)
    return said if said is not None and said.verdict != "unresolved" else None


def draw(runs: Iterable[GradedRun], each: int, *, seed: int = SEED, grader: str | None = None) -> list[Drawn]:
    """Up to ``each`` runs of every task class and verdict that nobody audited; equal seeds and runs, equal samples."""
    strata: defaultdict[tuple[str, str], list[GradedRun]] = defaultdict(list)
    for run in sorted(runs, key=lambda one: one.run_id):
        said = judged_by(run, grader)
        if said is not None:
            strata[run.task_class or "", said.verdict].append(run)
    random = np.random.default_rng(seed)
    return [
        Drawn(
            task_class=name or None,
            verdict=verdict,
            graded=len(found),
            audited=sum(run.audit is not None for run in found),
            runs=tuple(_of_many_groups(found, each, random)),
        )
        for (name, verdict), found in sorted(strata.items())
    ]


def shuffled(drawn: Sequence[Drawn], seed: int = SEED) -> list[GradedRun]:
    """All of them in an order that says nothing about the grader's verdict."""
    runs = [run for one in drawn for run in one.runs]
    return [runs[place] for place in np.random.default_rng([seed, 1]).permutation(len(runs))]


def needed(precision: float, wrong: float = 0.0, confidence: float = 0.95) -> int:
    """Audited groups of a verdict until its share of wrong verdicts, if it is ``wrong``, is known to ``precision``.

    Known so: the upper bound of the two-sided Clopper-Pearson interval is no more than ``precision`` above it.
    """
    if not 0 < precision < 1 or not 0 <= wrong < 1:
        raise EvidenceInputError(f"precision is in (0, 1) and the share of wrong verdicts in [0, 1), got {precision}")

    def is_enough(runs: int) -> bool:
        high = share_interval(round(wrong * runs), runs, sides="two", confidence=confidence, unit="run").high
        return high is not None and high <= wrong + precision

    low, high = 0, 1
    while not is_enough(high):
        low, high = high, 2 * high
        if high > _MOST:
            raise EvidenceInputError(f"more than {_MOST:,} audited runs would be needed; ask for less precision")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _of_many_groups(runs: Sequence[GradedRun], each: int, random: np.random.Generator) -> list[GradedRun]:
    """A run of each group in random order, then second runs, and so on; groups that were audited come last."""
    rounds: defaultdict[int, list[GradedRun]] = defaultdict(list)
    seen: defaultdict[str, int] = defaultdict(int)
    for run in runs:
        if run.audit is not None:
            seen[run.group] += 1
    for place in random.permutation(len(runs)):
        run = runs[place]
        if run.audit is None:
            rounds[seen[run.group]].append(run)
            seen[run.group] += 1
    return [run for turn in sorted(rounds) for run in rounds[turn]][:each]
