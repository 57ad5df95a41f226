"""An agent whose chances are known: what a repeated run estimates covers the truth as often as it says."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
from scipy import stats

from surefoot.evaluation import AttemptContext, Checker, Protocol, Suite, Task
from surefoot.evaluation.results import group_table, strict_interval
from surefoot.evaluation.runner import Plan, repeat
from surefoot.processors.evidence.repeated import outcome_yield, pass_hat_k

RUNS, TASKS, K = 30, 8, 4
CHANCES = (0.0, 0.5, 0.9, 1.0)  # a task's is one of these, all as likely
TRUE_MEAN = float(np.mean(CHANCES))
TRUE_STRICT = float(np.mean([chance**K for chance in CHANCES]))


def agent(chance: float, ctx: AttemptContext) -> str:
    return "yes" if random.Random(ctx.seed).random() < chance else "no"


def populations() -> Suite:
    """RUNS samples of TASKS tasks each, in one suite: an fsync for each attempt is enough."""
    draw = random.Random(1)
    right = (Checker(type="exact", expected="yes"),)
    names = [f"{sample:02d}-{n}" for sample in range(RUNS) for n in range(TASKS)]
    tasks = tuple(Task(id=name, input=draw.choice(CHANCES), checkers=right) for name in names)
    return Suite(name="flaky", agent=agent, protocol=Protocol(k=K, effects="none", isolation="inline"), tasks=tasks)


def test_estimates_cover_the_known_truth_at_the_stated_rate(tmp_path: Path) -> None:
    covered, of_tasks, means, stricts = 0, [], [], []
    suite = populations()
    attempts = repeat(Plan(suite=suite, folder=tmp_path)).attempts
    for sample in range(RUNS):
        groups = group_table(attempt for attempt in attempts if attempt.task_id.startswith(f"{sample:02d}-"))
        assert len(groups) == TASKS
        interval = strict_interval(groups, K)
        assert interval is not None
        assert interval.low is not None
        assert interval.high is not None
        covered += interval.low <= TRUE_STRICT <= interval.high
        means.append(outcome_yield(groups).value)
        stricts.append(pass_hat_k(groups, K).value)
        for task, n, c in zip(groups.task_id, groups.n, groups.c, strict=True):
            assert n == K
            exact = stats.binomtest(int(c), int(n)).proportion_ci(0.95, "exact")
            of_tasks.append(exact.low <= suite.task(task).input <= exact.high)
    # At .95 fewer than 26 of 30 come about three times in 1,000; the exact interval is wider than it promises.
    assert covered >= 26
    assert np.mean(of_tasks) >= 0.95
    for found, truth in ((means, TRUE_MEAN), (stricts, TRUE_STRICT)):
        values = np.array(found, dtype=float)
        assert abs(values.mean() - truth) < 3 * values.std(ddof=1) / np.sqrt(RUNS)
    # A harness that repeats one luck would not vary.
    assert len(set(means)) > 5
