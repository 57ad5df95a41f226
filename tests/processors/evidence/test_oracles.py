"""Published and independently worked-out figures, reproduced to the digit."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from surefoot.processors.evidence import classes, repeated, variation
from surefoot.processors.evidence.groups import GroupTable

DATA = Path(__file__).parents[4] / "shared" / "data"
EXACT = 1e-12

# Tasks by number of acceptable runs, of n runs each; mean, standard error across tasks, Pass^k and Pass@k.
COUNTS: dict[str, dict[str, Any]] = {
    "tau-bench gpt-4o airline": {
        "n": 4,
        "hist": {0: 14, 1: 12, 2: 10, 3: 4, 4: 10},
        "mean": 0.42,
        "se": 0.05221619109284876,
        "hat": [0.42, 0.2733333333333334, 0.22, 0.2],
        "at": [0.42, 0.5666666666666668, 0.66, 0.72],
        "mixed": 0.52,
    },
    "terminal-bench openhands": {
        "n": 5,
        "hist": {0: 37, 1: 7, 2: 4, 3: 3, 4: 4, 5: 25},
        "mean": 0.4125,
        "se": 0.050232843913070827,
        "hat": [0.4125, 0.35875, 0.33625, 0.3225, 0.3125],
        "at": [0.4125, 0.46625, 0.4975, 0.52, 0.5375],
        "mixed": 0.225,
        "icc": 0.7805,
    },
    "terminal-bench orchestrator sonnet 4": {
        "n": 5,
        "hist": {0: 34, 1: 11, 2: 5, 3: 9, 4: 9, 5: 12},
        "mean": 0.36,
        "se": 0.04334144682239193,
        "hat": [0.36, 0.2575, 0.20625, 0.1725, 0.15],
        "at": [0.36, 0.4625, 0.51375, 0.5475, 0.575],
        "mixed": 0.425,
        "icc": 0.5587,
    },
    "hotpot claude": {
        "n": 10,
        "hist": {0: 13, 1: 2, 2: 2, 4: 1, 6: 3, 7: 1, 8: 1, 9: 3, 10: 74},
        "mean": 0.81,
        "se": 0.036639108100829126,
        "hat": [
            0.81,
            0.7866666666666666,
            0.7739166666666667,
            0.7651904761904761,
            0.7587698412698413,
            0.7538095238095239,
            0.7497499999999999,
            0.7462222222222223,
            0.7430000000000001,
            0.74,
        ],
        "at": [
            0.81,
            0.8333333333333333,
            0.8439166666666668,
            0.8504761904761904,
            0.8553174603174603,
            0.8592857142857143,
            0.8626666666666667,
            0.8655555555555555,
            0.868,
            0.87,
        ],
        "mixed": 0.13,
    },
}


def of_histogram(n: int, histogram: dict[int, int]) -> GroupTable:
    return GroupTable.from_counts(n, [c for c, tasks in histogram.items() for _ in range(tasks)])


def section_13() -> GroupTable:
    good = [3] * 968 + [2] * 21 + [1] * 6 + [0] * 5
    return GroupTable.from_counts(3, good, equivalent=[-1] * 995 + [1] * 4 + [0])


@pytest.mark.parametrize("name", COUNTS)
def test_published_counts(name: str) -> None:
    told = COUNTS[name]
    groups = of_histogram(told["n"], told["hist"])
    assert repeated.outcome_yield(groups).value == pytest.approx(told["mean"], abs=EXACT)
    assert variation.task_level_error(groups).value == pytest.approx(told["se"], abs=EXACT)
    for k, (hat, at) in enumerate(zip(told["hat"], told["at"], strict=True), start=1):
        assert repeated.pass_hat_k(groups, k).value == pytest.approx(hat, abs=EXACT)
        assert repeated.pass_at_k(groups, k).value == pytest.approx(at, abs=EXACT)
    assert classes.mixed_outcome_rate(groups).value == pytest.approx(told["mixed"], abs=EXACT)
    if "icc" in told:
        assert variation.intraclass_correlation(groups).value == pytest.approx(told["icc"], abs=5e-5)


def test_section_13_points() -> None:
    groups = section_13()
    assert (len(groups), groups.c.sum()) == (1000, 2952)
    value = {
        "yield": repeated.outcome_yield(groups).value,
        "pass3": repeated.pass_hat_k(groups, 3).value,
        "pass_at_3": repeated.pass_at_k(groups, 3).value,
        "gap": repeated.consistency_gap(groups, 3).value,
        "normalised": repeated.normalised_consistency(groups, 3).value,
        "mixed": classes.mixed_outcome_rate(groups).value,
        "mixed_at_3": classes.mixed_outcome_rate_at(groups, 3).value,
        "consistent_wrong": classes.consistent_wrong_rate(groups).value,
        "non_equivalent": classes.non_equivalent_failure_rate(groups).value,
        "agreement": classes.equivalent_outcome_agreement(groups).value,
    }
    assert value == pytest.approx(
        {
            "yield": 0.984,
            "pass3": 0.968,
            "pass_at_3": 0.995,
            "gap": 0.016,
            "normalised": 0.983739837398374,
            "mixed": 0.027,
            "mixed_at_3": 0.027,
            "consistent_wrong": 0.004,
            "non_equivalent": 0.001,
            "agreement": 0.972,
        },
        abs=EXACT,
    )
    errors = variation.standard_errors(groups)
    assert errors.naive.value == pytest.approx(0.0022908513701242177, abs=EXACT)
    assert errors.design_effect.value == pytest.approx(1.8567073170731692, abs=1e-10)
    # The published figure divides by the number of groups; ours by one less.
    assert errors.task_level.value == pytest.approx(0.0031215380824202677 * np.sqrt(1000 / 999), abs=EXACT)


@pytest.mark.parametrize(
    ("ok", "mixed", "wrong", "other"),
    [(74, 13, 5, 8), (64, 16, 1, 19), (58, 31, 3, 8)],
    ids=["claude", "gpt-4o", "llama"],
)
def test_hotpot_classes(ok: int, mixed: int, wrong: int, other: int) -> None:
    # Ten runs of 100 questions each; equivalent means the same normalised answer.
    good = [10] * ok + [5] * mixed + [0] * (wrong + other)
    groups = GroupTable.from_counts(10, good, equivalent=[-1] * (ok + mixed) + [1] * wrong + [0] * other)
    assert classes.class_counts(groups) == {
        "all_acceptable": ok,
        "mixed": mixed,
        "consistent_wrong": wrong,
        "non_equivalent_repeated_failure": other,
        "unknown_equivalence": 0,
        "too_few_runs": 0,
    }
    assert classes.consistent_wrong_rate(groups).value == pytest.approx(wrong / 100, abs=EXACT)


def test_ibm_figures() -> None:
    assert repeated.gap(0.774, 0.530) == pytest.approx(0.244, abs=EXACT)
    assert repeated.normalised(0.774, 0.530) == pytest.approx(0.6847545219638244, abs=EXACT)
    assert repeated.gap(0.810, 0.690) == pytest.approx(0.120, abs=EXACT)
    assert repeated.step_chain(0.774, 5).value == pytest.approx(0.27778244962262405, abs=EXACT)
    assert "= 0.2778" in repeated.heterogeneity(0.774, 0.530, 5)


def test_ibm_integers() -> None:
    # 168 tasks, 89 with five of five, 650 acceptable runs of 840: one way to fill in the rest.
    good = [5] * 89 + [3] * 47 + [2] * 32
    groups = GroupTable.from_counts(5, good)
    assert groups.c.sum() == 650
    assert round(repeated.outcome_yield(groups).value or 0, 3) == 0.774
    assert round(repeated.pass_hat_k(groups, 5).value or 0, 3) == 0.530
    assert round(repeated.consistency_gap(groups, 5).value or 0, 3) == 0.244


@pytest.mark.parametrize(
    ("before", "after", "points"),
    [
        ({"easy": 44, "medium": 25, "hard": 20}, {"easy": 51, "medium": 36, "hard": 29}, [12.28, 22.92, 14.29]),
    ],
)
def test_ibm_tiers(before: dict[str, int], after: dict[str, int], points: list[float]) -> None:
    tasks = {"easy": 57, "medium": 48, "hard": 63}
    tiers = [name for name, size in tasks.items() for _ in range(size)]

    def strict(passed: dict[str, int]) -> tuple[float | None, dict[str, float]]:
        # Whoever did not pass all five passed three, say: Pass^5 does not ask.
        good = [5 if place < passed[name] else 3 for name, size in tasks.items() for place in range(size)]
        groups = GroupTable.from_counts(5, good, task_class=tiers)
        codes = groups.strata["task_class"]
        by_tier = {
            name: repeated.pass_hat_k(groups.select(codes.codes == place), 5).value or 0.0
            for place, name in enumerate(codes.names)
        }
        return repeated.pass_hat_k(groups, 5).value, by_tier

    (whole, old), (later, new) = strict(before), strict(after)
    assert [round(one or 0, 3) for one in (whole, later)] == [0.530, 0.690]
    assert [round(100 * (new[name] - old[name]), 2) for name in tasks] == points
    assert [round(100 * (new[name] / old[name] - 1)) for name in ("medium", "hard")] == [44, 45]


def test_ibm_other_agent() -> None:
    def strict(passed: int) -> float:
        return repeated.pass_hat_k(GroupTable.from_counts(5, [5] * passed + [3] * (168 - passed)), 5).value or 0.0

    assert [round(strict(passed), 3) for passed in (17, 27)] == [0.101, 0.161]
    assert repeated.gap(0.339, strict(17)) == pytest.approx(0.238, abs=5e-4)


@pytest.mark.parametrize(
    ("p", "n", "chance"),
    [
        (0.9, 3, 0.729),
        (0.9, 5, 0.59049),
        (0.9, 8, 0.430467),
        (0.9, 10, 0.348678),
        (0.98, 10, 0.817073),
        (0.99, 5, 0.950990),
        (0.99, 10, 0.904382),
        (0.99, 20, 0.817907),
        (0.99, 50, 0.605006),
        (0.99, 100, 0.366032),
        (0.99, 200, 0.133980),
    ],
)
def test_step_chain(p: float, n: int, chance: float) -> None:
    chain = repeated.step_chain(p, n)
    assert chain.value == pytest.approx(chance, abs=5e-7)
    assert len(chain.assumptions) == 3
    assert "not a measurement" in chain.label


def test_peers_fixture() -> None:
    groups = GroupTable.from_counts(5, [5, 4, 2, 0])
    hat = [repeated.pass_hat_k(groups, k).value for k in (1, 2, 3, 5)]
    at = [repeated.pass_at_k(groups, k).value for k in (1, 2, 3, 5)]
    assert hat == pytest.approx([0.55, 0.425, 0.35, 0.25], abs=EXACT)
    assert at == pytest.approx([0.55, 0.675, 0.725, 0.75], abs=EXACT)


def published(path: str) -> Any:
    file = DATA / path
    if not file.exists():
        pytest.skip(f"{path} is not here: it may not enter the project")
    return json.loads(file.read_bytes())


def test_tau_bench_file() -> None:
    runs = published("taubench/gpt-4o-airline.json")
    groups = GroupTable.from_runs(
        pa.table(
            {
                "group_id": [f"{run['task_id']:03d}" for run in runs],
                "repetition": [run["trial"] for run in runs],
                "acceptable": [abs(run["reward"] - 1) <= 1e-6 for run in runs],
            }
        )
    )
    assert len(groups) == 50
    readme = [round(repeated.pass_hat_k(groups, k).value or 0, 3) for k in (1, 2, 3, 4)]
    assert readme == [0.420, 0.273, 0.220, 0.200]
    assert repeated.pass_hat_k(groups, 5).value is None
    clean = {0, 1, 2, 5, 7, 12, 13, 18, 20, 24, 28, 29, 30, *range(35, 46), 48, 49}
    chosen = groups.select(np.array([int(name) in clean for name in groups.group_id]))
    assert len(chosen) == 26
    values = [repeated.pass_hat_k(chosen, k).value for k in (1, 2, 3, 4)]
    assert values == pytest.approx([0.605769, 0.455128, 0.403846, 0.384615], abs=5e-7)


def test_terminal_bench_file() -> None:
    told = published("terminal-bench/orchestrator_claude-4-sonnet_results.json")
    runs = told["results"]
    groups = GroupTable.from_runs(
        pa.table(
            {
                "group_id": [run["task_id"] for run in runs],
                "repetition": [int(run["trial_name"].rsplit(".", 1)[1].split("-")[0]) for run in runs],
                # The harness counts a run without a result as not resolved, and so do its published figures.
                "acceptable": [run["is_resolved"] is True for run in runs],
            }
        )
    )
    for k, value in told["pass_at_k"].items():
        assert repeated.pass_at_k(groups, int(k)).value == pytest.approx(value, abs=EXACT)
    assert repeated.outcome_yield(groups).value == pytest.approx(told["accuracy"], abs=EXACT)
    # Both standard errors of the one figure, by hand from the file.
    by_repetition: dict[str, list[bool]] = defaultdict(list)
    for run in runs:
        by_repetition[run["trial_name"].rsplit(".", 1)[1]].append(run["is_resolved"] is True)
    means = [np.mean(one) for one in by_repetition.values()]
    errors = variation.standard_errors(groups)
    assert errors.run_level.variant == "run_level_across_repetitions"
    assert errors.run_level.value == pytest.approx(np.std(means, ddof=1) / np.sqrt(5), abs=EXACT)
    assert errors.task_level.value == pytest.approx(0.04334144682239193, abs=EXACT)


def test_inspect_file() -> None:
    samples = published("inspect/demo.json")["samples"]
    groups = GroupTable.from_runs(
        pa.table(
            {
                "group_id": [str(sample["id"]) for sample in samples],
                "repetition": [sample["epoch"] for sample in samples],
                "acceptable": [sample["scores"]["match"]["value"] == "C" for sample in samples],
            }
        )
    )
    assert repeated.outcome_yield(groups).value == pytest.approx(0.55, abs=EXACT)
    assert repeated.pass_at_k(groups, 3).value == pytest.approx(0.725, abs=EXACT)
    assert repeated.pass_hat_k(groups, 3).value == pytest.approx(0.35, abs=EXACT)
