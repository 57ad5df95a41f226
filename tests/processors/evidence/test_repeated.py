"""Estimators of repeated success against enumeration, and at their edges."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.processors.evidence import classes, repeated, run_rates, variation
from surefoot.processors.evidence.groups import GroupsError, GroupTable

groups_of = st.lists(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), min_size=1)


def table(pairs: list[tuple[int, int]]) -> GroupTable:
    return GroupTable.from_counts([n for n, _ in pairs], [c for _, c in pairs])


@settings(deadline=None)
@given(groups_of, st.integers(1, 5))
def test_pass_estimators_are_the_mean_over_all_subsets(pairs: list[tuple[int, int]], k: int) -> None:
    every, some = [], []
    for n, c in pairs:
        if n >= k:
            subsets = list(combinations([True] * c + [False] * (n - c), k))
            every.append(np.mean([all(one) for one in subsets]))
            some.append(np.mean([any(one) for one in subsets]))
    hat, at = repeated.pass_hat_k(table(pairs), k), repeated.pass_at_k(table(pairs), k)
    assert hat.groups == at.groups == len(every)
    if not every:
        assert hat.value is None
        assert at.value is None
        assert f"no group has {k}" in (hat.reason or "")
        return
    assert hat.value == pytest.approx(np.mean(every), abs=1e-12)
    assert at.value == pytest.approx(np.mean(some), abs=1e-12)
    gap, mixed = repeated.consistency_gap(table(pairs), k), classes.mixed_outcome_rate_at(table(pairs), k)
    assert gap.value is not None
    assert gap.value >= -1e-12
    if k >= 2:
        assert mixed.value == pytest.approx(np.mean(some) - np.mean(every), abs=1e-12)


def test_k_above_n_is_undefined_not_zero() -> None:
    groups = table([(5, 5), (5, 3), (2, 2)])
    assert repeated.pass_hat_k(groups, 6).value is None
    some = repeated.pass_hat_k(groups, 3)
    assert some.value == pytest.approx(0.55)
    assert (some.groups, some.runs) == (2, 10)
    assert some.reason == "1 group left out: fewer than 3 judged runs"
    whole = repeated.pass_hat_k(groups, 3, variant="unbiased_complete")
    assert whole.value is None
    assert "1 of 3 groups" in (whole.reason or "")
    with pytest.raises(GroupsError, match="k = 0"):
        repeated.pass_hat_k(groups, 0)


def test_many_runs_of_one_task_stay_exact() -> None:
    one = table([(2000, 1999)])
    assert repeated.pass_hat_k(one, 1500).value == pytest.approx(0.25, abs=1e-15)


def test_one_task() -> None:
    one = table([(3, 2)])
    assert repeated.pass_hat_k(one, 3).value == 0.0
    assert variation.task_level_error(one).value is None
    assert variation.intraclass_correlation(one).value is None
    assert variation.run_level_error(one).value == pytest.approx(np.sqrt(2 / 9 / 2))


def test_one_run_each_says_nothing_about_repetition() -> None:
    once = table([(1, 1), (1, 0)])
    assert repeated.outcome_yield(once).value == 0.5
    assert repeated.pass_hat_k(once, 1).value == 0.5
    for estimate in (
        repeated.pass_hat_k(once, 2),
        classes.mixed_outcome_rate(once),
        classes.mixed_outcome_rate_at(once, 1),
        classes.consistent_wrong_rate(once),
        classes.all_acceptable_rate(once),
        variation.intraclass_correlation(once),
        variation.run_level_error(once),
    ):
        assert estimate.value is None
        assert estimate.reason


def test_all_pass_and_all_fail() -> None:
    passed = table([(3, 3), (3, 3)])
    assert repeated.normalised_consistency(passed, 3).value == 1.0
    assert classes.consistent_wrong_rate(passed).value == 0.0
    assert variation.intraclass_correlation(passed).value is None
    assert variation.standard_errors(passed).design_effect.value is None
    assert variation.task_level_error(passed).value == 0.0
    failed = GroupTable.from_counts(3, [0, 0], equivalent=[1, 0])
    assert repeated.normalised_consistency(failed, 3).value is None
    assert repeated.normalised_consistency(failed, 3).reason == "no run was acceptable: 0/0"
    assert classes.consistent_wrong_rate(failed).value == 0.5
    assert classes.equivalent_outcome_agreement(failed).value == 0.5
    assert [one.why for one in classes.suspect_tasks(failed)] == ["none_passed", "none_passed"]


def test_nothing_at_all() -> None:
    nothing = GroupTable.from_counts(3, [])
    assert repeated.outcome_yield(nothing).value is None
    assert classes.mixed_outcome_rate(nothing).value is None
    assert variation.task_level_error(nothing).value is None
    assert classes.suspect_tasks(nothing) == ()


def test_unequal_n_pools_and_means_differ() -> None:
    groups = table([(1, 1), (9, 0)])
    assert repeated.outcome_yield(groups).value == 0.5
    assert repeated.outcome_yield(groups, variant="pooled_runs").value == 0.1
    assert repeated.outcome_yield(groups).k is None


def test_groups_without_a_verdict_are_left_out_and_counted() -> None:
    groups = GroupTable.from_counts([2, 0], [2, 0], missing=[0, 3])
    answer = repeated.outcome_yield(groups)
    assert (answer.value, answer.groups) == (1.0, 1)
    assert "1 group left out" in (answer.reason or "")


def test_unknown_equivalence_gives_bounds_or_the_worse_case() -> None:
    groups = GroupTable.from_counts(2, [2, 0, 0, 0], equivalent=[-1, 1, 0, -1])
    unknown = classes.consistent_wrong_rate(groups)
    assert unknown.value is None
    assert "between 0.25 and 0.5" in (unknown.reason or "")
    assert classes.consistent_wrong_rate(groups, variant="unknown_as_equivalent").value == 0.5
    assert classes.non_equivalent_failure_rate(groups).value is None
    assert classes.non_equivalent_failure_rate(groups, variant="unknown_as_equivalent").value == 0.25
    # What needs no equivalence stays defined.
    assert classes.mixed_outcome_rate(groups).value == 0.0


@given(groups_of, st.data())
def test_the_four_shares_add_up_to_one(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    same = data.draw(st.lists(st.sampled_from([0, 1]), min_size=len(pairs), max_size=len(pairs)))
    groups = GroupTable.from_counts([n for n, _ in pairs], [c for _, c in pairs], equivalent=same)
    shares = [
        classes.all_acceptable_rate(groups).value,
        classes.mixed_outcome_rate(groups).value,
        classes.consistent_wrong_rate(groups).value,
        classes.non_equivalent_failure_rate(groups).value,
    ]
    if all(n < 2 for n, _ in pairs):
        assert shares == [None] * 4
    else:
        assert sum(share or 0.0 for share in shares) == pytest.approx(1.0)
    assert sum(classes.class_counts(groups).values()) == len(groups)


def test_icc_is_that_of_analysis_of_variance() -> None:
    pairs = [(2, 1), (5, 5), (4, 0), (3, 2), (6, 5)]
    rows = [np.array([1.0] * c + [0.0] * (n - c)) for n, c in pairs]
    total, grand = sum(len(row) for row in rows), np.concatenate(rows).mean()
    between = sum(len(row) * (row.mean() - grand) ** 2 for row in rows) / (len(rows) - 1)
    within = sum(((row - row.mean()) ** 2).sum() for row in rows) / (total - len(rows))
    size = (total - sum(len(row) ** 2 for row in rows) / total) / (len(rows) - 1)
    expected = (between - within) / (between + (size - 1) * within)
    icc = variation.intraclass_correlation(table(pairs))
    assert icc.value == pytest.approx(expected, abs=1e-12)
    assert "between tasks" in icc.says


def test_what_p_to_the_k_says() -> None:
    differs = repeated.homogeneous_pass_hat_k(table([(4, 4), (4, 0)]), 4)
    assert differs.value == pytest.approx(0.0625)
    assert "Tasks differ" in differs.says
    same = repeated.homogeneous_pass_hat_k(table([(4, 2), (4, 2)]), 4)
    assert "no sign" in same.says
    assert "by construction" in repeated.homogeneous_pass_hat_k(table([(4, 2)]), 1).says


def test_suspects_are_judged_by_their_stratum() -> None:
    groups = GroupTable.from_counts(
        10, [10] * 20 + [3] + [5] * 20 + [3], task_class=["easy"] * 21 + ["hard"] * 21, equivalent=[-1] * 42
    )
    (suspect,) = classes.suspect_tasks(groups)
    assert (suspect.task_id, suspect.why, suspect.c) == ("000000020", "unusually_few", 3)


def test_step_chain_refuses_what_is_no_chance() -> None:
    with pytest.raises(GroupsError, match="p must be"):
        repeated.step_chain(1.2, 3)


RUNS = pa.table(
    {
        "group_id": ["a", "a", "a", "b", "b"],
        "acceptable": [True, False, True, True, None],
        "available": [True, True, False, None, True],
        "compliant": [True, None, False, True, True],
        "disturbed": [True, True, False, False, True],
        "autonomous": [True, False, True, True, True],
        "intervened": [False, True, False, False, False],
    }
)


def test_run_rates_leave_out_what_nobody_judged() -> None:
    groups = GroupTable.from_runs(RUNS)
    availability = run_rates.run_rate(groups, "availability")
    assert (availability.value, availability.runs) == (0.75, 4)
    assert availability.reason == "1 runs left out: nobody judged them"
    assert run_rates.run_rate(groups, "policy_compliance").value == 0.75
    recovery = run_rates.run_rate(groups, "recovery_success")
    assert (recovery.value, recovery.runs) == (0.5, 2)
    assert run_rates.run_rate(groups, "autonomous_coverage").value == 0.8
    assert run_rates.run_rate(groups, "intervention_success").value == 0.0
    n, good = run_rates.counts(groups, "policy_compliance")
    assert (n.tolist(), good.tolist()) == ([2, 2], [1, 2])


def test_run_rates_of_nothing() -> None:
    groups = GroupTable.from_runs(RUNS.select(["group_id", "acceptable"]))
    for indicator in ("availability", "recovery_success", "intervention_success"):
        estimate = run_rates.run_rate(groups, indicator)
        assert estimate.value is None
        assert "no run was asked and judged" in (estimate.reason or "")
    with pytest.raises(GroupsError, match="counts only"):
        run_rates.run_rate(GroupTable.from_counts(2, [1]), "availability")


def test_repetitions_that_are_not_complete_fall_back_to_the_variation_within_tasks() -> None:
    rows = {"group_id": ["a", "a", "b", "b"], "acceptable": [True, False, True, True]}
    complete = variation.run_level_error(GroupTable.from_runs(pa.table(rows | {"repetition": [1, 2, 1, 2]})))
    assert complete.variant == "run_level_across_repetitions"
    assert complete.value == pytest.approx(np.std([1.0, 0.5], ddof=1) / np.sqrt(2))
    # Without a number, with a number that stands twice, with numbers so far apart that no table of them fits.
    for numbers in ([1, 2, 1, None], [1, 1, 1, 2], [1, 2, 3, 2**62]):
        partial = variation.run_level_error(GroupTable.from_runs(pa.table(rows | {"repetition": numbers})))
        assert partial.variant == "run_level_within_tasks"
        assert partial.value == pytest.approx(np.sqrt(0.25) / 2)
