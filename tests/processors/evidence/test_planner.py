"""Plans: the number they give is the first that clears, and what cannot be cleared is said."""

from __future__ import annotations

import pyarrow as pa
import pytest

from surefoot.processors.evidence.betting import betting_lower
from surefoot.processors.evidence.groups import GroupTable
from surefoot.processors.evidence.intervals import share_interval
from surefoot.processors.evidence.planner import Price, groups_for_mean, groups_for_share, observed_price
from surefoot.processors.evidence.types import EvidenceInputError, yield_types


def test_the_next_lower_number_of_groups_does_not_clear() -> None:
    groups = groups_for_share(0, 0.01, side="ceiling", confidence=0.95).groups
    assert groups == 299

    def high(number: int) -> float:
        found = share_interval(0, number, sides="upper").high
        assert found is not None
        return found

    assert high(299) <= 0.01 < high(298)


def test_a_floor_is_a_ceiling_for_what_fails() -> None:
    for method in ("clopper_pearson", "wilson", "jeffreys"):
        floor = groups_for_share(0.97, 0.95, side="floor", method=method).groups
        assert floor == groups_for_share(0.03, 0.05, side="ceiling", method=method).groups


def test_planned_groups_clear_when_they_come_in_as_planned() -> None:
    groups = groups_for_share(0.04, 0.05, side="ceiling", method="clopper_pearson").groups
    assert groups is not None
    high = share_interval(groups // 25, groups // 25 * 25, sides="upper").high
    assert high == pytest.approx(0.05, abs=2e-4)


def test_a_mean_is_planned_with_its_own_types() -> None:
    types = yield_types([3] * 100, [3] * 90 + [2] * 8 + [0] * 2)
    plan = groups_for_mean(types, 0.9, confidence=0.95)
    assert plan.groups is not None
    shares = types.counts / types.groups
    assert betting_lower(types.values, shares * plan.groups, 0.05) >= 0.9
    assert betting_lower(types.values, shares * (plan.groups - 1), 0.05) < 0.9
    normal = groups_for_mean(types, 0.9, confidence=0.95, method="normal").groups
    assert normal is not None
    assert normal < plan.groups
    ceiling = groups_for_mean(yield_types([3] * 100, [0] * 90 + [1] * 8 + [3] * 2), 0.1, side="ceiling").groups
    assert ceiling == plan.groups


def test_what_it_costs() -> None:
    plan = groups_for_share(0, 0.01, side="ceiling", price=Price(5, cost_per_run=0.02, seconds_per_run=30))
    assert (plan.groups, plan.runs, plan.seconds) == (299, 1495, 44_850)
    assert plan.cost == pytest.approx(29.9)
    unknown = groups_for_share(0, 0.01, side="ceiling", price=Price(5))
    assert (unknown.runs, unknown.cost, unknown.seconds) == (1495, None, None)


def test_the_price_of_the_groups_at_hand() -> None:
    runs = pa.table(
        {
            "group_id": ["a", "a", "b", "b", "b"],
            "acceptable": [True, None, True, False, True],
            "cost_usd": [0.1, None, 0.3, None, None],
            "duration_ns": [1e9, 3e9, None, None, None],
        }
    )
    found = observed_price(GroupTable.from_runs(runs))
    assert found.runs_per_group == 3
    assert (found.cost_per_run, found.seconds_per_run) == pytest.approx((0.2, 2.0))
    assert observed_price(GroupTable.from_counts([4, 4], [1, 2])) == Price(4)


def test_a_rate_on_the_wrong_side_needs_another_agent_not_more_groups() -> None:
    plan = groups_for_share(0.006, 0.005, side="ceiling")
    assert plan.groups is None
    assert "no number of groups" in (plan.reason or "")
    mean = groups_for_mean(yield_types([3], [2]), 0.9)
    assert mean.groups is None
    assert "not above the floor 0.9" in (mean.reason or "")


def test_a_margin_that_no_sample_can_show_says_what_to_do() -> None:
    plan = groups_for_share(0.004999999, 0.005, side="ceiling")
    assert plan.groups is None
    assert "enforce it" in (plan.reason or "")


def test_impossible_plans_are_refused() -> None:
    with pytest.raises(EvidenceInputError):
        groups_for_share(0.5, 1.0, side="floor")
