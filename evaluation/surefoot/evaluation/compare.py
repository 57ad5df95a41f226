"""Baseline against candidate: per task first, then paired over tasks, mean beside Pass^k.

The tasks that both sides judged are compared; all others are listed. Pass^k is taken at one k that every compared task
reaches on both sides, by the unbiased estimator C(c,k)/C(n,k), so that unequal numbers of runs do not shift it.

Rule: a change of one task is a claim only after Holm's correction over all tasks; before it, it is a description. The
task is the unit of every interval. Nothing that was not judged counts as a failure, and all of it is said.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any, Final

import numpy as np

from surefoot.evaluation.compare_sides import CompareError, Side, TaskRuns, in_order, judged, task_runs
from surefoot.evaluation.compare_tests import fisher_doubled, holm, mcnemar_exact
from surefoot.evaluation.records import Attempt
from surefoot.processors.evidence.estimate import Interval
from surefoot.processors.evidence.intervals import MeanMethod, mean_interval, share_interval
from surefoot.processors.evidence.types import GroupTypes, pass_hat_types, yield_types

# What differs between any two runs, or follows from something else that is told.
_NOT_VERSIONS: Final = frozenset(
    {
        *("id", "started_at", "ended_at", "created_at", "run", "environment_names", "suite_hash", "suite_name"),
        *("concurrency", "budget", "k", "why"),
    }
)
_METHODS: Final[tuple[MeanMethod, ...]] = ("cluster_bootstrap_percentile_exact", "betting")


@dataclass(frozen=True, slots=True)
class Figure:
    """The same figure of both sides, and what lies between them."""

    name: str
    baseline: float
    candidate: float
    change: float
    baseline_interval: Interval
    candidate_interval: Interval
    change_intervals: tuple[Interval, ...]  # of the paired differences: resampled over tasks, and one that is proved


@dataclass(frozen=True, slots=True)
class TaskChange:
    """One task on both sides."""

    task_id: str
    task_class: str | None
    baseline: TaskRuns
    candidate: TaskRuns
    change: float  # of the share of acceptable runs
    pass_change: float | None  # of Pass^k, None where a side has fewer than k judged runs
    p: float  # Fisher's exact test on the two shares
    p_holm: float  # adjusted over all compared tasks


@dataclass(frozen=True, slots=True)
class PairedTest:
    """An exact McNemar test."""

    name: str
    pairs: int
    fell: int
    rose: int
    p: float | None
    p_holm: float | None  # adjusted over the McNemar tests
    null: str
    reason: str = ""  # why there is none, or what it leaves out


@dataclass(frozen=True, slots=True)
class Difference:
    """Something of the provenance that is not the same."""

    what: str
    baseline: str
    candidate: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that is known about a change."""

    baseline: str
    candidate: str
    k: int
    alpha: float
    tasks: tuple[TaskChange, ...]  # worst regression first
    mean: Figure
    pass_hat_k: Figure
    tests: tuple[PairedTest, ...]
    only_baseline: tuple[str, ...]
    only_candidate: tuple[str, ...]
    unjudged: tuple[str, ...]  # tasks of both sides that one of them did not judge even once
    versions: tuple[Difference, ...]
    warnings: tuple[str, ...]

    @property
    def trade(self) -> bool:
        """Whether the mean rose while Pass^k fell."""
        return self.mean.change > 0 > self.pass_hat_k.change

    @property
    def fallen(self) -> tuple[TaskChange, ...]:
        """Tasks whose fall survives Holm's correction."""
        return tuple(task for task in self.tasks if task.change < 0 and task.p_holm <= self.alpha)


def compare(baseline: Side, candidate: Side, *, k: int | None = None, alpha: float = 0.05) -> Comparison:
    """Return what changed from baseline to candidate. Raises CompareError where they share no judged task."""
    before, after = _by_task(baseline), _by_task(candidate)
    both = sorted(before.keys() & after.keys())
    rows = {task: (task_runs(before[task]), task_runs(after[task])) for task in both}
    compared = [task for task in both if rows[task][0].n and rows[task][1].n]
    if not compared:
        raise CompareError(
            f"Comparing {baseline.name} with {candidate.name}: no task was judged on both sides "
            f"({len(before)} and {len(after)} tasks, {len(both)} in common). Run the same suite with both."
        )
    reach = min(min(one.n, two.n) for one, two in (rows[task] for task in compared))
    at = k or reach
    enough = [task for task in compared if min(rows[task][0].n, rows[task][1].n) >= at]
    if not enough:
        raise CompareError(f"Comparing at k = {at}: no task has {at} judged runs on both sides; use --k {reach}.")
    pairs = [rows[task] for task in compared]
    tests = _paired_tests(before, after, compared, enough, at)
    return Comparison(
        baseline=baseline.name,
        candidate=candidate.name,
        k=at,
        alpha=alpha,
        tasks=_task_changes(compared, rows, before, at),
        mean=_figure("mean", pairs, 1, alpha),
        pass_hat_k=_figure(f"Pass^{at}", [rows[task] for task in enough], at, alpha),
        tests=tests,
        only_baseline=tuple(sorted(before.keys() - after.keys())),
        only_candidate=tuple(sorted(after.keys() - before.keys())),
        unjudged=tuple(task for task in both if task not in compared),
        versions=tuple(_differences(baseline.provenance, candidate.provenance)),
        warnings=tuple(_warnings(baseline, candidate, pairs, at, len(compared) - len(enough), k is not None)),
    )


def _by_task(side: Side) -> dict[str, list[Attempt]]:
    found: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in side.attempts:
        found[attempt.task_id].append(attempt)
    return dict(found)


def _task_changes(
    compared: Sequence[str],
    rows: Mapping[str, tuple[TaskRuns, TaskRuns]],
    before: Mapping[str, Sequence[Attempt]],
    k: int,
) -> tuple[TaskChange, ...]:
    raw = [fisher_doubled(one.c, one.n, two.c, two.n) for one, two in (rows[task] for task in compared)]
    changes = []
    for task, p, adjusted in zip(compared, raw, holm(raw), strict=True):
        one, two = rows[task]
        passes = None if min(one.n, two.n) < k else float(_pass_hat(two, k) - _pass_hat(one, k))
        change = float(_pass_hat(two, 1) - _pass_hat(one, 1))
        changes.append(TaskChange(task, before[task][0].task_class, one, two, change, passes, p, adjusted))
    return tuple(sorted(changes, key=lambda each: (each.change, each.pass_change or 0.0, each.task_id)))


def _pass_hat(runs: TaskRuns, k: int) -> Fraction:
    return Fraction(comb(runs.c, k), comb(runs.n, k))


def _figure(name: str, pairs: Sequence[tuple[TaskRuns, TaskRuns]], k: int, alpha: float) -> Figure:
    values = [[_pass_hat(side, k) for side in pair] for pair in pairs]
    means = [sum((value[place] for value in values), Fraction(0)) / len(values) for place in (0, 1)]
    # Differences lie in [-1, 1]; the intervals are for values in [0, 1].
    halves = [(two - one + 1) / 2 for one, two in values]
    distinct = sorted(set(halves))
    paired = GroupTypes(tuple(distinct), np.array([[halves.count(value) for value in distinct]], dtype=np.int64))
    own = [_interval([pair[place] for pair in pairs], k, 1 - alpha) for place in (0, 1)]
    change = tuple(_stretched(mean_interval(paired, sides="two", confidence=1 - alpha, method=m)) for m in _METHODS)
    return Figure(name, float(means[0]), float(means[1]), float(means[1] - means[0]), own[0], own[1], change)


def _interval(runs: Sequence[TaskRuns], k: int, confidence: float) -> Interval:
    n, c = [each.n for each in runs], [each.c for each in runs]
    if all(each == k for each in n):  # each task's value is 0 or 1
        return share_interval(sum(each == k for each in c), len(c), sides="two", confidence=confidence)
    types = yield_types(n, c) if k == 1 else pass_hat_types(n, c, k)
    return mean_interval(types, sides="two", confidence=confidence)


def _stretched(interval: Interval) -> Interval:
    low, high = (None if bound is None else 2 * bound - 1 for bound in (interval.low, interval.high))
    return Interval(
        interval.method,
        interval.confidence,
        interval.sides,
        low,
        high,
        "task, paired",
        gate=interval.gate,
        note=interval.note,
    )


def _paired_tests(
    before: Mapping[str, list[Attempt]],
    after: Mapping[str, list[Attempt]],
    compared: Sequence[str],
    enough: Sequence[str],
    k: int,
) -> tuple[PairedTest, ...]:
    whole = [(_all_pass(before[task], k), _all_pass(after[task], k)) for task in enough]
    short = len(compared) - len(enough)
    runs = [pair for task in compared for pair in _paired_runs(before[task], after[task])]
    found = [
        ("tasks, all of k runs", whole, "k runs are as often all acceptable", _left_out(short, k)),
        ("runs of equal task, repetition and seed", runs, "no task's share of acceptable runs changed", ""),
    ]
    p_values = [mcnemar_exact(*_discordant(pairs)) for _, pairs, _, _ in found if pairs]
    adjusted = iter(zip(p_values, holm(p_values), strict=True))
    tests = []
    for name, pairs, null, why in found:
        fell, rose = _discordant(pairs)
        p, p_holm = next(adjusted) if pairs else (None, None)
        missing = "" if pairs else "the runs do not pair: no task, repetition and seed in common"
        tests.append(PairedTest(name, len(pairs), fell, rose, p, p_holm, null, missing or why))
    return tuple(tests)


def _left_out(short: int, k: int) -> str:
    return f"{short} tasks left out: fewer than {k} judged runs" if short else ""


def _discordant(pairs: Sequence[tuple[bool, bool]]) -> tuple[int, int]:
    return sum(one and not two for one, two in pairs), sum(two and not one for one, two in pairs)


def _all_pass(attempts: list[Attempt], k: int) -> bool:
    """Whether the first k judged attempts are acceptable: of as many on both sides, however many there are."""
    return all(attempt.acceptable for attempt in [each for each in in_order(attempts) if judged(each)][:k])


def _paired_runs(before: list[Attempt], after: list[Attempt]) -> list[tuple[bool, bool]]:
    # A number alone pairs nothing: without a seed in common, the third runs of two sides have nothing in common.
    one, two = (
        {(each.repetition, each.seed): bool(each.acceptable) for each in side if judged(each) and each.seed is not None}
        for side in (before, after)
    )
    return [(one[key], two[key]) for key in sorted(one.keys() & two.keys())]


def _differences(baseline: Mapping[str, Any], candidate: Mapping[str, Any]) -> list[Difference]:
    one, two = _flat(baseline), _flat(candidate)
    keys = sorted(one.keys() | two.keys())
    return [Difference(key, one.get(key, "–"), two.get(key, "–")) for key in keys if one.get(key) != two.get(key)]


def _flat(data: Mapping[str, Any], path: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in data.items():
        if key in _NOT_VERSIONS:
            continue
        name = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping):
            found |= _flat(value, name)
        elif value is not None:
            found[name] = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    return found


def _warnings(
    baseline: Side, candidate: Side, pairs: Sequence[tuple[TaskRuns, TaskRuns]], k: int, short: int, asked: bool
) -> list[str]:
    said: list[str] = []
    numbers = sorted({side.n for pair in pairs for side in pair})
    if len(numbers) > 1:
        said.append(
            f"tasks have {numbers[0]} to {numbers[-1]} judged runs; Pass^{k} is unbiased for each of them"
            + ("" if asked else f", and k = {k} is the most that all reach")
        )
    if short:
        said.append(f"{short} tasks have fewer than {k} judged runs on a side: in the mean, not in Pass^{k}")
    if k == 1:
        said.append("k = 1: Pass^1 is the mean, and says nothing about doing it again")
    said += [text for side in (baseline, candidate) for text in _not_judged(side)]
    changed = [task for task, text in baseline.tasks.items() if candidate.tasks.get(task, text) != text]
    if changed:
        said.append(f"the question changed, not only the answer: {', '.join(changed[:20])} are defined differently")
    return said


def _not_judged(side: Side) -> list[str]:
    counts: dict[str, Callable[[TaskRuns], int]] = {
        "nobody judged": lambda runs: runs.unjudged,
        "the infrastructure ended": lambda runs: runs.infrastructure,
    }
    runs = [task_runs(attempts) for attempts in _by_task(side).values()]
    told = [f"{number} that {what}" for what, of in counts.items() if (number := sum(map(of, runs)))]
    if side.lost:
        told.append(f"{side.lost} that never ended")
    said = [f"{side.name} has attempts that count nowhere: {', '.join(told)}"] if told else []
    twice = len(side.attempts) - len({(each.task_id, each.repetition, each.seed) for each in side.attempts})
    if twice:
        said.append(f"{side.name} has {twice} attempts of a task and repetition that are there already; all count")
    if side.conditions > 1:
        said.append(f"{side.name} was made under {side.conditions} different conditions; the last ones are shown")
    return said
