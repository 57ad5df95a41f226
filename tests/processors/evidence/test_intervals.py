"""Shares of groups by every method against statsmodels; the edges; who may open a gate."""

from __future__ import annotations

import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from surefoot.processors.evidence.intervals import ShareMethod, mean_interval, share_interval
from surefoot.processors.evidence.types import EvidenceInputError, GroupTypes, pass_hat_types, yield_types

OTHER_NAME: dict[ShareMethod, str] = {"clopper_pearson": "beta", "wilson": "wilson", "jeffreys": "jeffreys"}


@pytest.mark.parametrize("method", OTHER_NAME)
@pytest.mark.parametrize(("hits", "groups"), [(1, 3), (8, 10), (4, 1000), (968, 1000), (150_000, 200_000)])
def test_two_sided_bounds_are_those_of_statsmodels(method: ShareMethod, hits: int, groups: int) -> None:
    found = share_interval(hits, groups, sides="two", confidence=0.9, method=method)
    low, high = proportion_confint(hits, groups, alpha=0.1, method=OTHER_NAME[method])
    assert found.low == pytest.approx(low, abs=1e-9)
    assert found.high == pytest.approx(high, abs=1e-9)


@pytest.mark.parametrize("method", OTHER_NAME)
def test_a_one_sided_bound_has_the_whole_error_on_its_side(method: ShareMethod) -> None:
    two = share_interval(7, 50, sides="two", confidence=0.9, method=method)
    lower = share_interval(7, 50, sides="lower", confidence=0.95, method=method)
    upper = share_interval(7, 50, sides="upper", confidence=0.95, method=method)
    assert lower.low == pytest.approx(two.low)
    assert upper.high == pytest.approx(two.high)
    assert lower.high is upper.low is None


@pytest.mark.parametrize("method", OTHER_NAME)
def test_nothing_seen_is_not_nothing_there(method: ShareMethod) -> None:
    none = share_interval(0, 300, sides="upper", method=method).high
    every = share_interval(300, 300, sides="lower", method=method).low
    assert none is not None
    assert every is not None
    assert 0.005 < none < 0.013
    assert none == pytest.approx(1 - every)
    assert share_interval(0, 300, sides="lower", method=method).low == 0
    assert share_interval(300, 300, sides="upper", method=method).high == 1


def test_wilson_of_eight_in_ten_with_the_z_that_people_print() -> None:
    found = share_interval(8, 10, sides="two", confidence=2 * float(stats.norm.cdf(1.96)) - 1, method="wilson")
    assert (found.low, found.high) == pytest.approx((0.49015684672072335, 0.9433190520193067), abs=1e-12)


def test_the_rule_of_three_is_what_clopper_and_pearson_say_of_zero() -> None:
    high = share_interval(0, 1000, sides="upper").high
    assert high == pytest.approx(1 - 0.05 ** (1 / 1000))


def test_no_groups_have_no_bounds_and_open_nothing() -> None:
    found = share_interval(0, 0, sides="two")
    assert (found.low, found.high, found.gate, found.note) == (None, None, False, "no groups")


@pytest.mark.parametrize(("hits", "groups", "confidence"), [(5, 4, 0.95), (-1, 4, 0.95), (1, 4, 95.0), (1, 4, 1.0)])
def test_impossible_questions_are_refused(hits: int, groups: int, confidence: float) -> None:
    with pytest.raises(EvidenceInputError):
        share_interval(hits, groups, sides="two", confidence=confidence)


def test_a_method_that_does_not_exist_is_named() -> None:
    with pytest.raises(EvidenceInputError, match="wald"):
        share_interval(1, 4, sides="two", method="wald")  # type: ignore[arg-type]  # the point of it
    with pytest.raises(EvidenceInputError, match="bca"):
        mean_interval(yield_types([3], [3]), sides="two", method="bca")  # type: ignore[arg-type]  # same


def test_methods_that_undercover_say_so_and_open_nothing() -> None:
    types = yield_types([3] * 100, [3] * 95 + [1] * 5)
    assert mean_interval(types, sides="lower").gate
    assert share_interval(95, 100, sides="lower").gate
    boot = mean_interval(types, sides="lower", method="cluster_bootstrap_percentile_exact")
    assert not boot.gate
    assert "100 groups it covered" in boot.note
    assert not share_interval(95, 100, sides="lower", method="wilson").gate


def test_an_upper_bound_is_the_lower_one_of_the_mirror_image() -> None:
    types = yield_types([3, 3, 3, 3], [0, 0, 1, 3])
    mirror = yield_types([3, 3, 3, 3], [3, 3, 2, 0])
    for method in ("betting", "empirical_bernstein", "clopper_pearson_floor", "cluster_bootstrap_percentile_exact"):
        high = mean_interval(types, sides="upper", method=method).high
        low = mean_interval(mirror, sides="lower", method=method).low
        assert high is not None
        assert low is not None
        assert high == pytest.approx(1 - low)


def test_the_floor_of_the_yield_is_clopper_and_pearson_on_groups_without_a_failure() -> None:
    floor = mean_interval(
        yield_types([3, 4, 5] * 20, [3, 4, 4] * 20),
        sides="lower",
        method="clopper_pearson_floor",
    )
    assert floor.low == share_interval(40, 60, sides="lower").low
    none = mean_interval(yield_types([3], [2]), sides="lower", method="clopper_pearson_floor")
    assert none.low == 0


def test_types_of_unequal_groups_and_strata() -> None:
    types = yield_types([2, 4, 4, 3], [1, 2, 4, 0], [0, 1, 1, 0])
    assert [str(value) for value in types.fractions] == ["0", "1/2", "1"]
    assert types.by_stratum.tolist() == [[1, 1, 0], [0, 1, 1]]
    assert types.mean == pytest.approx(0.5)
    unbiased = pass_hat_types([5, 5, 4], [4, 2, 4], 3)
    assert [str(value) for value in unbiased.fractions] == ["0", "2/5", "1"]


@pytest.mark.parametrize(
    ("n", "c", "strata"), [([], [], None), ([0], [0], None), ([2], [3], None), ([3, 3], [1, 1], [0]), ([3], [1], [-1])]
)
def test_what_cannot_be_groups_is_refused(n: list[int], c: list[int], strata: list[int] | None) -> None:
    with pytest.raises(EvidenceInputError):
        yield_types(n, c, strata)


def test_pass_hat_wants_k_runs_of_every_group() -> None:
    with pytest.raises(EvidenceInputError, match="n >= 4"):
        pass_hat_types([3, 5], [3, 5], 4)


def test_types_keep_what_the_groups_say() -> None:
    types = yield_types([5] * 6, [5, 5, 4, 0, 5, 4])
    assert isinstance(types, GroupTypes)
    assert types.groups == 6
    assert types.counts.tolist() == [1, 2, 3]
