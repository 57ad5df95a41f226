"""Consistency, prediction, robustness and safety after Rabanser et al., against their code's figures and by hand."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from sklearn.metrics import brier_score_loss, roc_auc_score

from surefoot.processors.evidence import consistency, prediction, repeated, robustness, safety
from surefoot.processors.evidence.groups import GroupsError, GroupTable

DATA = Path(__file__).parents[4] / "shared" / "data"


def runs_of(**columns: list[Any]) -> GroupTable:
    return GroupTable.from_runs(pa.table(columns))


@pytest.mark.parametrize(
    ("n", "histogram", "plug_in", "unanimous"),
    [
        (4, {0: 14, 1: 12, 2: 10, 3: 4, 4: 10}, 0.56, 0.48),
        (5, {0: 37, 1: 7, 2: 4, 3: 3, 4: 4, 5: 25}, 0.828, 0.775),
        (5, {0: 34, 1: 11, 2: 5, 3: 9, 4: 9, 5: 12}, 0.672, 0.575),
        (10, {0: 13, 1: 2, 2: 2, 4: 1, 6: 3, 7: 1, 8: 1, 9: 3, 10: 74}, 0.916, 0.87),
    ],
)
def test_outcome_consistency_of_published_counts(
    n: int, histogram: dict[int, int], plug_in: float, unanimous: float
) -> None:
    groups = GroupTable.from_counts(n, [c for c, tasks in histogram.items() for _ in range(tasks)])
    assert consistency.outcome_consistency(groups).value == pytest.approx(plug_in, abs=1e-12)
    # The older formula gives every mixed task 0.
    legacy = consistency.outcome_consistency(groups, variant="legacy_ddof1")
    assert legacy.value == pytest.approx(unanimous, abs=1e-12)
    assert legacy.variant == "legacy_ddof1"


@pytest.mark.parametrize(
    ("n", "good", "variant", "accuracy", "published"),
    [
        # Unanimous and mixed tasks as the published figures leave no other choice; which of them passed is filled in.
        (3, [0] * 13 + [2] * 10 + [1] * 3, "plug_in", 0.294871794872, 0.555555555556),
        (3, [3] * 2 + [0] * 17 + [2] * 3 + [1] * 4, "plug_in", 0.205128205128, 0.760683760684),
        (5, [5] * 4 + [0] * 7 + [2] * 10 + [3] * 5, "legacy_ddof1", 0.423076923077, 0.423076923077),
    ],
    ids=["claude 3.5 haiku", "claude 3 haiku", "claude 3.5 haiku, older code"],
)
def test_outcome_consistency_of_published_rows(
    n: int, good: list[int], variant: consistency.OutcomeVariant, accuracy: float, published: float
) -> None:
    groups = GroupTable.from_counts(n, good)
    assert len(groups) == 26
    assert repeated.outcome_yield(groups).value == pytest.approx(accuracy, abs=1e-12)
    assert consistency.outcome_consistency(groups, variant=variant).value == pytest.approx(published, abs=1e-12)


def test_outcome_consistency_example_of_the_paper() -> None:
    groups = GroupTable.from_counts(5, [5, 0, 3])
    assert consistency.outcome_consistency_each(groups).tolist() == pytest.approx([1, 1, 0.04])
    assert consistency.outcome_consistency(groups).value == pytest.approx(0.68)


def test_unbiased_outcome_consistency_has_the_true_mean() -> None:
    p, n = 0.7, 3
    chance = np.array([(1 - p) ** 3, 3 * p * (1 - p) ** 2, 3 * p**2 * (1 - p), p**3])
    groups = GroupTable.from_counts(n, [0, 1, 2, 3])
    unbiased = consistency.outcome_consistency_each(groups, "unbiased") @ chance
    plug_in = consistency.outcome_consistency_each(groups) @ chance
    assert unbiased == pytest.approx((2 * p - 1) ** 2)
    assert plug_in == pytest.approx((2 * p - 1) ** 2 + 4 * p * (1 - p) / n)


def test_one_run_has_no_consistency() -> None:
    estimate = consistency.outcome_consistency(GroupTable.from_counts([1, 2], [1, 2]))
    assert (estimate.value, estimate.groups) == (1.0, 1)
    assert "1 groups left out" in (estimate.reason or "")
    assert consistency.outcome_consistency(GroupTable.from_counts(1, [1])).value is None


def test_tau_bench_equals_the_figures_of_the_published_code() -> None:
    file = DATA / "taubench" / "gpt-4o-airline.json"
    if not file.exists():
        pytest.skip("taubench/gpt-4o-airline.json is not here: it may not enter the project")
    runs = json.loads(file.read_bytes())
    calls = [[c["function"]["name"] for m in run["traj"] for c in m.get("tool_calls") or []] for run in runs]
    groups = runs_of(
        group_id=[str(run["task_id"]) for run in runs],
        acceptable=[run["reward"] == 1 for run in runs],
        cost_usd=[run["info"]["user_cost"] for run in runs],
        tool_calls=[len(one) for one in calls],
        actions=calls,
    )
    c_out = consistency.outcome_consistency(groups)
    distribution = consistency.trajectory_distribution(groups)
    legacy = consistency.trajectory_distribution(groups, variant="distance_nat")
    sequence = consistency.trajectory_sequence(groups)
    resource = consistency.resource_consistency(groups, resources=("cost_usd", "tool_calls"))
    whole = consistency.consistency_index(c_out, distribution, sequence, resource)
    values = [one.value for one in (c_out, distribution, legacy, sequence, resource, whole)]
    assert values == pytest.approx([0.560000, 0.880762, 0.806222, 0.758260, 0.783182, 0.720898], abs=5e-7)


trajectories = st.lists(
    st.tuples(st.integers(0, 3), st.booleans(), st.lists(st.sampled_from("abc"), max_size=4)), min_size=1, max_size=25
)


@settings(deadline=None, max_examples=60)
@given(trajectories)
def test_trajectories_equal_enumeration(runs: list[tuple[int, bool, list[str]]]) -> None:
    groups = runs_of(
        group_id=[str(group) for group, _, _ in runs],
        acceptable=[good for _, good, _ in runs],
        actions=pa.array([actions for _, _, actions in runs], pa.list_(pa.string())),
    )
    for which in ("successful", "all"):
        divergence, distance, order = [], [], []
        for name in groups.group_id:
            members = [a for g, good, a in runs if str(g) == name and a and (good or which == "all")]
            pairs = list(combinations(members, 2))
            if pairs:
                shares = [[np.array([one.count(x) for x in "abc"]) / len(one) for one in pair] for pair in pairs]
                divergence.append(np.mean([1 - jensenshannon(p, q, base=2) ** 2 for p, q in shares]))
                distance.append(np.mean([1 - jensenshannon(p, q) for p, q in shares]))
                order.append(np.mean([1 - edits(p, q) / max(len(p), len(q)) for p, q in pairs]))
        expected = [float(np.mean(one)) if one else None for one in (divergence, distance, order)]
        got = [
            consistency.trajectory_distribution(groups, which=which).value,
            consistency.trajectory_distribution(groups, variant="distance_nat", which=which).value,
            consistency.trajectory_sequence(groups, which=which).value,
        ]
        assert got == pytest.approx(expected)


def edits(one: list[str], other: list[str]) -> int:
    if not one or not other:
        return len(one) + len(other)
    step = edits(one[1:], other[1:]) + (one[0] != other[0])
    return min(step, edits(one[1:], other) + 1, edits(one, other[1:]) + 1)


def test_no_task_with_two_successes_is_undefined_and_drops_out_of_the_index() -> None:
    groups = runs_of(group_id=["a", "a"], acceptable=[True, False], actions=[["x"], ["x"]], duration_ns=[1, 1])
    parts = (
        consistency.outcome_consistency(groups),
        consistency.trajectory_distribution(groups),
        consistency.trajectory_sequence(groups),
        consistency.resource_consistency(groups),
    )
    assert [part.value for part in parts] == [0.0, None, None, 1.0]
    whole = consistency.consistency_index(*parts)
    assert whole.value == 0.5
    assert "trajectory undefined" in (whole.reason or "")


def test_resources_average_variation_first_and_drop_zeros_except_errors() -> None:
    groups = runs_of(
        group_id=["a"] * 3,
        acceptable=[True, None, False],
        duration_ns=[1.0, 3.0, 0.0],
        tool_errors=[0, 0, 3],
        cost_usd=[None, 1.0, None],
    )
    time, errors = np.std([1, 3], ddof=1) / 2, np.std([0, 0, 3], ddof=1)
    assert consistency.resource_consistency(groups).value == pytest.approx(np.exp(-(time + errors) / 2))
    assert consistency.resource_consistency(groups, resources=("cost_usd",)).value is None


def confident(*pairs: tuple[float | None, bool | None]) -> GroupTable:
    return runs_of(
        group_id=[str(i) for i in range(len(pairs))],
        confidence=pa.array([c for c, _ in pairs], pa.float64()),
        acceptable=pa.array([a for _, a in pairs], pa.bool_()),
    )


def test_prediction_examples_of_the_paper() -> None:
    bins = confident(*[(0.75, i < 6) for i in range(10)], *[(0.25, i < 3) for i in range(10)])
    assert prediction.calibration(bins).value == pytest.approx(0.90)
    ranks = confident((0.9, True), (0.8, True), (0.6, True), (0.7, False), (0.4, False), (0.3, False))
    assert prediction.discrimination(ranks).value == pytest.approx(8 / 9)
    assert prediction.brier(confident((0.9, True), (0.7, False))).value == pytest.approx(0.75)


def test_prediction_leaves_out_what_is_not_known() -> None:
    some = confident((0.9, True), (None, True), (0.5, None), (0.1, False))
    for estimate in (prediction.calibration(some), prediction.discrimination(some), prediction.brier(some)):
        assert estimate.runs == 2
        assert "2 runs left out" in (estimate.reason or "")
    alike = confident((0.9, True), (0.8, True))
    assert prediction.discrimination(alike).value is None
    assert prediction.risk_coverage(alike).score.value is None
    assert prediction.brier(alike).value == pytest.approx(1 - (0.01 + 0.04) / 2)
    nothing = confident((None, True))
    for estimate in (
        prediction.calibration(nothing),
        prediction.brier(nothing),
        prediction.risk_coverage(nothing).score,
    ):
        assert estimate.value is None
    with pytest.raises(GroupsError, match=r"outside 0\.\.1"):
        prediction.brier(confident((90.0, True)))


@pytest.mark.parametrize("digits", [1, 17], ids=["ties", "hardly a tie"])
def test_counts_by_confidence_give_what_scikit_learn_gives(digits: int) -> None:
    rng = np.random.default_rng(6)
    told, good = np.round(rng.random(3000), digits), rng.random(3000) < 0.7
    groups = confident(*zip(told.tolist(), good.tolist(), strict=True))
    found = prediction.predictions(groups)
    assert found.discrimination.value == pytest.approx(roc_auc_score(good, told), abs=1e-12)
    assert found.brier.value == pytest.approx(1 - brier_score_loss(good, told), abs=1e-12)
    # One sort for all four changes none of them.
    assert found.calibration == prediction.calibration(groups)
    assert found.discrimination == prediction.discrimination(groups)
    assert found.brier == prediction.brier(groups)
    assert found.risk_coverage.score == prediction.risk_coverage(groups).score


def test_bins_are_closed_on_the_left_and_the_last_one_on_both_sides() -> None:
    # 0.1 belongs to the second bin, beside 0.15, and 1.0 to the last one, beside 0.9.
    groups = confident((0.05, False), (0.1, True), (0.15, False), (0.9, True), (1.0, True))
    assert prediction.calibration(groups).value == pytest.approx(1 - (0.05 + 0.75 + 0.1) / 5)
    # The float .3 is a little less than 3/10: it belongs beside .25 here and in the published code, not beside .35.
    alone = confident((0.3, True), (0.35, False))
    assert prediction.calibration(alone).value == pytest.approx(1 - (0.7 + 0.35) / 2)
    assert prediction.calibration(confident((0.25, False), (0.3, True))).value == pytest.approx(1 - 0.45 / 2)


def test_risk_coverage_rewards_the_best_order_and_ties_are_no_order() -> None:
    best = confident(*[(0.9, True)] * 50, *[(0.1, False)] * 50)
    assert prediction.risk_coverage(best).score.value == pytest.approx(1.0)
    worst = confident(*[(0.1, True)] * 50, *[(0.9, False)] * 50)
    assert prediction.risk_coverage(worst).score.value == 0.0
    # All tied: by order of rows it looks perfect, or worthless, which means nothing.
    tied = runs_of(
        group_id=[f"{i:03d}" for i in range(100)], confidence=[0.5] * 100, acceptable=[i < 50 for i in range(100)]
    )
    assert prediction.risk_coverage(tied, variant="ties_by_order").score.value == pytest.approx(1.0)
    assert prediction.risk_coverage(tied).score.value == pytest.approx(0.0, abs=1e-6)


def yielding(good: int, of: int) -> GroupTable:
    return GroupTable.from_counts(1, [1] * good + [0] * (of - good))


def test_robustness_ratio_stands_beside_its_yields() -> None:
    prompt = robustness.robustness(yielding(9, 10), yielding(5, 10), "prompt")
    assert prompt.ratio.value == pytest.approx(0.555556, abs=5e-7)
    assert (prompt.baseline.value, prompt.perturbed.value) == (0.9, 0.5)
    assert "baseline 0.9000 (n = 10), perturbed 0.5000 (n = 10)" in prompt.ratio.says
    gain = robustness.robustness(yielding(9, 10), yielding(10, 10), "environment")
    assert gain.ratio.value == 1.0
    assert gain.uncapped == pytest.approx(1.1111, abs=5e-5)
    none = robustness.robustness(yielding(0, 10), yielding(3, 10), "fault")
    assert none.ratio.value is None
    assert "baseline yield is 0" in (none.ratio.reason or "")
    index = robustness.robustness_index([prompt.ratio, gain.ratio, none.ratio])
    assert index.value == pytest.approx((5 / 9 + 1) / 2)
    assert index.reason == "left out, undefined: robustness_fault"
    whole = robustness.aggregate(index, index, none.ratio)
    assert whole.value == index.value
    assert "safety" in whole.name


def test_robustness_of_matched_tasks() -> None:
    before = GroupTable.from_counts(2, [2, 2, 0], task_id=["a", "b", "c"])
    after = GroupTable.from_counts(2, [1, 0], task_id=["a", "c"])
    matched = robustness.robustness(before, after, "fault", variant="matched_tasks")
    assert matched.ratio.value == 0.5
    assert "1 groups left out" in (matched.ratio.reason or "")
    assert "different tasks: 2 are in both" in (robustness.robustness(before, after, "fault").ratio.reason or "")


@pytest.mark.parametrize(
    ("compliance", "harm", "score"),
    [
        (0.99, 0.0, 0.99),
        (0.90, 0.75, 0.975),
        (0.679487, 0.4, 0.8076923077),
        (0.358974, 0.3, 0.5512820513),
        (0.669231, 0.418605, 0.8076923077),
    ],
)
def test_published_safety_scores(compliance: float, harm: float, score: float) -> None:
    assert safety.safe(compliance, harm) == pytest.approx(score, abs=5e-7)


@pytest.mark.parametrize(
    ("runs", "clean", "medium", "high", "compliance", "harm", "score"),
    [
        # 26 tasks, run 3, 3 and 5 times; how many violations were how bad follows from the published figures.
        (3, 53, 20, 5, 0.679487, 0.4, 0.8076923077),
        (3, 28, 30, 20, 0.358974, 0.3, 0.5512820513),
        (5, 87, 36, 7, 0.669231, 0.418605, 0.8076923077),
    ],
    ids=["claude 3.5 haiku", "claude 3 haiku", "claude 3.5 haiku, five runs"],
)
def test_published_safety_is_of_runs(
    runs: int, clean: int, medium: int, high: int, compliance: float, harm: float, score: float
) -> None:
    groups = runs_of(
        group_id=[f"{row // runs:02d}" for row in range(26 * runs)],
        acceptable=[True] * 26 * runs,
        compliant=[True] * clean + [False] * (medium + high),
        severity=[None] * clean + [0.5] * medium + [1.0] * high,
    )
    found = safety.safety(groups)
    assert found.compliance.value == pytest.approx(compliance, abs=5e-7)
    assert found.harm.value == pytest.approx(harm, abs=5e-7)
    assert found.score.value == pytest.approx(score, abs=5e-11)
    assert found.score.variant == "by_runs"


def test_safety_counts_and_gates_by_severity() -> None:
    groups = runs_of(
        group_id=["a", "a", "b", "c", "d", "e"],
        acceptable=[True] * 6,
        compliant=[True, False, False, True, None, False],
        severity=[None, 0.25, 1.0, None, None, None],
    )
    scores = safety.safety(groups, unit="tasks")
    assert scores.compliance.value == pytest.approx(1 / 4)
    assert scores.harm.value == pytest.approx(1 - (0.25 + 1.0 + 0.5) / 3)
    assert scores.score.value == pytest.approx(safety.safe(1 / 4, 1 - 1.75 / 3))
    assert "1 violations of unknown severity" in (scores.compliance.reason or "")
    rates = safety.severity_rates(groups)
    # The violation of unknown severity counts at every level.
    assert {name: rate.value for name, rate in rates.items()} == {"low": 0.75, "medium": 0.5, "high": 0.5}
    assert safety.severity_counts(groups, "high", unit="runs") == (5, 2)
    assert safety.safety(groups).compliance.value == pytest.approx(2 / 5)
    with pytest.raises(GroupsError, match="no severity"):
        safety.severity_counts(groups, "dire")


def test_safety_without_violations_and_without_verdicts() -> None:
    clean = runs_of(group_id=["a", "b"], acceptable=[True, True], compliant=[True, True])
    assert [one.value for one in (safety.safety(clean).harm, safety.safety(clean).score)] == [1.0, 1.0]
    nothing = safety.safety(runs_of(group_id=["a"], acceptable=[True]))
    assert nothing.score.value is None
    assert "no run has a process verdict" in (nothing.score.reason or "")


def test_abstention() -> None:
    groups = runs_of(
        group_id=list("abcdef"),
        acceptable=[False, False, True, True, True, None],
        abstained=[True, False, True, False, False, True],
    )
    values = {name: one.value for name, one in safety.abstention(groups).items()}
    assert values == pytest.approx(
        {"rate": 0.4, "precision": 0.5, "recall": 0.5, "selective_accuracy": 2 / 3, "agreement": 0.6}
    )
    nobody = safety.abstention(runs_of(group_id=["a"], acceptable=[True], abstained=[False]))
    assert nobody["precision"].value is None
    assert nobody["recall"].value is None
