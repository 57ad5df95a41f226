"""Bounds that hold for every distribution: on two-point populations exactly, at the edges, with weights and strata."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from surefoot.processors.evidence.betting import betting_lower, empirical_bernstein_lower, refuted
from surefoot.processors.evidence.intervals import share_interval


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 3])
@pytest.mark.parametrize("groups", [1, 5, 30, 300])
def test_on_success_and_failure_the_bound_is_never_wrong_too_often(groups: int, alpha: float) -> None:
    """Hits are binomial, so that coverage is a sum; it is least just below each bound."""
    hits = np.arange(groups + 1)
    bounds = np.array([betting_lower([0.0, 1.0], [groups - good, good], alpha) for good in hits])
    assert (np.diff(bounds) >= 0).all()
    for rate in bounds[bounds > 0] - 1e-9:
        assert stats.binom.pmf(hits, groups, rate) @ (bounds > rate) <= alpha


def test_no_bound_is_below_0_or_above_the_mean() -> None:
    for counts in ([0, 0, 40], [1, 1, 38], [40, 0, 0], [0, 1, 0], [1, 0, 0]):
        mean = float(np.array(counts) @ [0, 0.5, 1]) / sum(counts)
        for bound in (betting_lower, empirical_bernstein_lower):
            assert 0 <= bound([0, 0.5, 1], counts, 0.05) <= mean


def test_all_acceptable_groups_leave_room_for_failures_not_seen() -> None:
    low = betting_lower([1.0], [30], 0.05)
    exact = share_interval(30, 30, sides="lower").low
    assert exact is not None
    assert exact - 0.04 < low < exact


def test_partial_values_are_worth_more_than_counting_them_as_failures() -> None:
    low = betting_lower([1 / 3, 2 / 3, 1], [6, 21, 973], 0.05)
    floor = share_interval(973, 1000, sides="lower").low
    assert floor is not None
    assert low > floor


def test_a_mean_is_refuted_exactly_below_the_bound() -> None:
    values, counts = [0, 1 / 3, 2 / 3, 1], [5, 6, 21, 968]
    low = betting_lower(values, counts, 0.05)
    assert refuted(low - 1e-6, values, counts, 0.05)
    assert not refuted(low + 1e-6, values, counts, 0.05)


def test_the_order_of_the_groups_and_equal_weights_change_nothing() -> None:
    low = betting_lower([0, 0.5, 1], [3, 5, 92], 0.05)
    assert betting_lower([1, 0, 0.5], [92, 3, 5], 0.05) == pytest.approx(low, abs=1e-10)
    assert betting_lower([0, 0.5, 1], [3, 5, 92], 0.05, weights=[1, 1, 1]) == low


def test_weights_make_it_the_weighted_mean() -> None:
    heavy = betting_lower([0.5, 1.0], [50, 50], 0.05, weights=[1.0, 0.1])
    light = betting_lower([0.5, 1.0], [50, 50], 0.05, weights=[0.1, 1.0])
    assert heavy < (0.5 + 0.1) / 1.1
    assert light > heavy + 0.2


def test_strata_of_fixed_sizes_are_covered_too() -> None:
    """Half of the groups from a stratum that always passes, half from one at .6: 2,000 samples of 60 groups."""
    rng = np.random.default_rng(5)
    hits = rng.binomial(30, 0.6, 2000) + 30
    wrong = np.mean([betting_lower([0.0, 1.0], [60 - good, good], 0.05) > 0.8 for good in hits])
    assert wrong <= 0.05


def test_empirical_bernstein_depends_on_the_counts_alone_and_tightens() -> None:
    few = empirical_bernstein_lower([0, 1], [20, 980], 0.05)
    assert few == empirical_bernstein_lower([0, 1], [20, 980], 0.05)
    assert few < empirical_bernstein_lower([0, 1], [2000, 98_000], 0.05) < 0.98
