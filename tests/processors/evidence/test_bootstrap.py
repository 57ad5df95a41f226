"""The exact bootstrap is the distribution that resampling samples; strata, unequal groups, edges."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from surefoot.processors.evidence.bootstrap import exact_quantile, resampled_bounds
from surefoot.processors.evidence.types import GroupTypes, pass_hat_types, yield_types


def every_resample(types: GroupTypes) -> Iterator[tuple[Fraction, Fraction]]:
    """Mean and probability of each possible resample, by enumeration."""
    pools = []
    for counts in types.by_stratum:
        size = int(counts.sum())
        shares = [(value, Fraction(int(count), size)) for value, count in zip(types.fractions, counts, strict=True)]
        pools += [shares] * size
    for draw in product(*pools):
        chance = Fraction(1)
        for _, share in draw:
            chance *= share
        yield sum((value for value, _ in draw), Fraction(0)) / types.groups, chance


def enumerated_quantile(types: GroupTypes, alpha: float) -> float:
    chances: dict[Fraction, Fraction] = {}
    for mean, chance in every_resample(types):
        chances[mean] = chances.get(mean, Fraction(0)) + chance
    total = Fraction(0)
    for mean in sorted(chances):
        total += chances[mean]
        if total >= alpha:
            return float(mean)
    raise AssertionError


groups = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 4), st.integers(0, 1)).map(lambda g: (g[0], min(g[0], g[1]), g[2])),
    min_size=1,
    max_size=5,
)


@given(groups, st.sampled_from([0.0173, 0.051, 0.31, 0.9513]))
@settings(max_examples=60, deadline=None)
def test_the_exact_quantile_is_that_of_all_resamples(drawn: list[tuple[int, int, int]], alpha: float) -> None:
    types = yield_types(*zip(*drawn, strict=True))
    assert exact_quantile(types, alpha) == pytest.approx(enumerated_quantile(types, alpha), abs=1e-12)


def test_pass_hat_of_exactly_k_runs_is_a_binomial_quantile() -> None:
    types = pass_hat_types([3] * 200, [3] * 170 + [2] * 30, 3)
    assert exact_quantile(types, 0.05) == stats.binom.ppf(0.05, 200, 0.85) / 200


def test_resampling_agrees_and_a_seed_is_the_whole_of_its_chance() -> None:
    types = yield_types([5] * 80, [5] * 60 + [3] * 15 + [0] * 5, [0, 1] * 40)
    low, high = resampled_bounds(types, 0.05, seed=7, resamples=50_000)
    assert low == pytest.approx(exact_quantile(types, 0.05), abs=0.003)
    assert high == pytest.approx(1 - exact_quantile(types.mirrored(), 0.05), abs=0.003)
    assert (low, high) == resampled_bounds(types, 0.05, seed=7, resamples=50_000)


def test_strata_take_their_difference_out_of_the_spread() -> None:
    c = [5] * 50 + [1] * 50
    strata = [0] * 50 + [1] * 50
    assert exact_quantile(yield_types([5] * 100, c, strata), 0.05) == pytest.approx(0.6)
    assert exact_quantile(yield_types([5] * 100, c), 0.05) < 0.56


@pytest.mark.parametrize("good", [0, 5])
def test_groups_that_are_all_alike_give_a_bound_that_knows_nothing(good: int) -> None:
    assert exact_quantile(yield_types([5] * 30, [good] * 30), 0.0167) == good / 5


def test_one_task_and_a_stratum_of_two_groups() -> None:
    assert exact_quantile(yield_types([5], [3]), 0.05) == pytest.approx(0.6)
    types = yield_types([2, 2, 2, 2], [2, 0, 2, 2], [0, 0, 1, 1])
    assert exact_quantile(types, 0.2) == pytest.approx(0.5)
    assert exact_quantile(types, 0.26) == pytest.approx(0.75)


def test_values_off_every_small_lattice_are_rounded_down_only() -> None:
    n = np.array([97, 89, 83, 79, 73, 71] * 10)
    types = yield_types(n, n - 5)
    exact, (resampled, _) = exact_quantile(types, 0.05), resampled_bounds(types, 0.05, resamples=50_000)
    assert resampled - 3e-4 < exact < resampled + 2e-4
