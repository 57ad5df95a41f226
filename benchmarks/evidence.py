"""A reliability profile's numbers from 1 M runs, 200,000 tasks of 5: ours by stage, and beside agentrel and inspect-ai.

Peers run in an interpreter of their own, with the same outcomes, in turn with ours, and only compute what they have:
agentrel its pass^5 with the fewest resamples that it takes (its default is 2,000, whose time is reckoned from the
difference of two runs), inspect-ai three reducers and the standard error. Nobody's reading of input is timed but ours.

    python benchmarks/evidence.py [--tasks 200000] [--rounds 3] [--peers PYTHON]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from surefoot.processors.evidence import classes, consistency, prediction, repeated, run_rates, safety, variation
from surefoot.processors.evidence.build import grader_of_kind
from surefoot.processors.evidence.counting import sufficient_counts
from surefoot.processors.evidence.groups import GroupTable
from surefoot.processors.evidence.intervals import MeanMethod, ShareMethod, mean_interval, share_interval
from surefoot.processors.evidence.measure import Counted, indicators
from surefoot.processors.evidence.profile import Evidence, Tally
from surefoot.processors.evidence.types import GroupTypes, pass_hat_types, yield_types

K = 5
RESAMPLING: MeanMethod = "cluster_bootstrap_percentile"
CLASSES = ("lookup", "calculation", "mutation", "reconciliation")
PEERS = Path(__file__).with_name("evidence_peers.py")


def make_runs(tasks: int) -> pa.Table:
    """Runs of tasks that are mostly good, some flaky, a few hopeless; canonical columns of a lake's reading."""
    rng = np.random.default_rng(20260916)
    task = np.repeat(np.arange(tasks), K)
    rows = len(task)
    chance = rng.choice([0.995, 0.8, 0.03], size=tasks, p=[0.9, 0.08, 0.02])[task]
    acceptable = rng.random(rows) < chance
    names = pa.array([f"task-{number:07d}" for number in range(tasks)])
    steps = np.array(["search", "read", "write", "verify"], dtype=object)
    lengths = np.arange(rows + 1) * 3
    return pa.table(
        {
            "group_id": names.take(pa.array(task)),
            "repetition": np.tile(np.arange(K), tasks),
            "task_class": pa.array([CLASSES[number % 4] for number in range(tasks)]).take(pa.array(task)),
            "acceptable": acceptable,
            "signature": pa.array(["a", "b", "c"]).take(pa.array(rng.integers(0, 3, rows))),
            "compliant": rng.random(rows) < 0.999,
            "autonomous": rng.random(rows) < 0.9,
            "confidence": np.where(acceptable, 0.9, 0.6) + rng.uniform(-0.1, 0.1, rows),
            "duration_ns": rng.integers(10**9, 10**11, rows).astype(float),
            "cost_usd": rng.uniform(0.01, 0.1, rows),
            "actions": pa.ListArray.from_arrays(
                pa.array(lengths, pa.int32()), pa.array(steps[rng.integers(0, 4, 3 * rows)], pa.string())
            ),
        }
    )


def from_counts(groups: GroupTable) -> None:
    """Every estimator that counts by group are enough for."""
    for k in range(1, K + 1):
        for estimator in (
            repeated.pass_hat_k,
            repeated.pass_at_k,
            repeated.consistency_gap,
            repeated.normalised_consistency,
            repeated.homogeneous_pass_hat_k,
        ):
            estimator(groups, k)
    repeated.outcome_yield(groups)
    repeated.outcome_yield(groups, variant="pooled_runs")
    for share in (
        classes.all_acceptable_rate,
        classes.mixed_outcome_rate,
        classes.consistent_wrong_rate,
        classes.non_equivalent_failure_rate,
        classes.equivalent_outcome_agreement,
    ):
        share(groups)
    classes.suspect_tasks(groups)
    variation.intraclass_correlation(groups)
    variation.standard_errors(groups)
    for variant in get_args(consistency.OutcomeVariant):
        consistency.outcome_consistency(groups, variant=variant)


def from_runs(groups: GroupTable) -> None:
    """The estimators that need each run: rates of runs, trajectories, resources, predictions, safety."""
    for indicator in run_rates.INDICATORS:
        run_rates.run_rate(groups, indicator)
    consistency.trajectory_consistency(groups)
    consistency.resource_consistency(groups)
    prediction.predictions(groups)
    safety.safety(groups)
    safety.severity_rates(groups)


def means(groups: GroupTable) -> tuple[GroupTypes, GroupTypes]:
    """What Yield and Pass^3 are the means of."""
    codes = groups.strata["task_class"].codes
    return yield_types(groups.n, groups.c, codes), pass_hat_types(groups.n, groups.c, 3, codes)


def resampled(groups: GroupTable) -> None:
    """Yield and Pass^3 by the published bootstrap, 200,000 resamples each; its exact form is among all methods."""
    for types in means(groups):
        mean_interval(types, sides="two", method=RESAMPLING)


def all_intervals(groups: GroupTable) -> None:
    """Yield and Pass^3 by every other method for means, consistent-wrong and Pass^5 by every method for shares."""
    for types in means(groups):
        for mean_method in get_args(MeanMethod):
            if mean_method != RESAMPLING:
                mean_interval(types, sides="two", method=mean_method)
    found = classes.class_counts(groups)
    for name in ("all_acceptable", "consistent_wrong"):
        for share_method in get_args(ShareMethod):
            share_interval(found[name], len(groups), sides="two", method=share_method)


def profile(groups: GroupTable) -> None:
    """What ``surefoot profile build`` computes: counts by stratum, indicators with intervals, whole and by stratum."""
    counts = sufficient_counts(groups, ("task_class",))
    # Only what the numbers are computed from; who ran what, where and when is left out.
    evidence = Evidence.model_construct(
        counts=counts,
        equivalence_rule=groups.equivalence_rule,
        tally=Tally.model_construct(production=0),
        block_unit=None,
        first_run=None,
    )
    grader = grader_of_kind("executable")
    for part in (None, *([one] for one in counts)):
        indicators(Counted.of(evidence, K, part), grader, 0.95)


def timed(work: Callable[[], Any]) -> float:
    """Processor seconds that it takes: the machine may have others to serve."""
    began = time.process_time()
    work()
    return time.process_time() - began


def ours(runs: pa.Table) -> dict[str, float]:
    """Processor seconds by stage."""
    groups = GroupTable.from_runs(runs)
    found = {
        "group the runs": timed(lambda: GroupTable.from_runs(runs)),
        "profile with intervals, whole and by stratum": timed(lambda: profile(groups)),
        "estimators from counts": timed(lambda: from_counts(groups)),
        "estimators from runs": timed(lambda: from_runs(groups)),
    }
    found["all of these"] = sum(found.values())
    found["intervals, every method but resampling"] = timed(lambda: all_intervals(groups))
    found["2 times 200,000 resamples"] = timed(lambda: resampled(groups))
    found["pass^5 with its interval"] = timed(
        lambda: (
            repeated.pass_hat_k(groups, K),
            share_interval(int((groups.c == groups.n).sum()), len(groups), sides="two"),
        )
    )
    found["mean, pass@3, pass^3, standard error"] = timed(
        lambda: (
            repeated.outcome_yield(groups),
            repeated.pass_at_k(groups, 3),
            repeated.pass_hat_k(groups, 3),
            variation.task_level_error(groups),
        )
    )
    return found


def theirs(python: str, outcomes: Path) -> dict[str, float]:
    """Processor seconds by peer and work, from their interpreter."""
    done = subprocess.run([python, str(PEERS), str(outcomes)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the peers' program failed: {done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure in turn and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", help="a Python with agentrel and inspect-ai")
    chosen = parser.parse_args()
    runs = make_runs(chosen.tasks)
    rounds: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        outcomes = Path(folder) / "outcomes.npy"
        np.save(outcomes, np.asarray(runs["acceptable"]).reshape(-1, K))
        rounds += [ours(runs) | (theirs(chosen.peers, outcomes) if chosen.peers else {}) for _ in range(chosen.rounds)]
    print(f"{runs.num_rows:,} runs, {chosen.tasks:,} tasks, {chosen.rounds} rounds in turn\n")
    print("| work | processor seconds, median | lowest to highest |\n|---|---|---|")
    for name in rounds[0]:
        seconds = [found[name] for found in rounds]
        print(f"| {name} | {statistics.median(seconds):.3f} | {min(seconds):.3f} to {max(seconds):.3f} |")
    if not chosen.peers:
        return
    print("\n| peer and work | peer / ours: median (lowest to highest) |\n|---|---|")
    for name, own in (
        ("agentrel: pass^5 with 1 resample", "pass^5 with its interval"),
        ("agentrel: pass^5 with its 2,000 resamples, reckoned", "pass^5 with its interval"),
        ("inspect-ai: mean, pass@3, pass^3, standard error", "mean, pass@3, pass^3, standard error"),
    ):
        ratios = [found[name] / found[own] for found in rounds]
        print(f"| {name} | {statistics.median(ratios):,.0f} ({min(ratios):,.0f} to {max(ratios):,.0f}) |")


if __name__ == "__main__":
    main()
