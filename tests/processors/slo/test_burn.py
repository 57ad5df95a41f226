"""The numbers that people know by heart."""

from __future__ import annotations

import pytest
from statsmodels.stats.proportion import proportion_confint

from surefoot.processors.slo import burn, error_budget, tiers_for
from surefoot.processors.slo.report import Counts


def factors(period: str, objective: float) -> list[float]:
    return [tier.factor for tier in tiers_for(period, objective)]


def test_the_tiers_of_28_and_30_days() -> None:
    tiers = tiers_for("28d", 0.99)
    assert [(tier.name, tier.severity, tier.long_window, tier.short_window) for tier in tiers] == [
        ("page_fast", "page", "1h", "5m"),
        ("page_slow", "page", "6h", "30m"),
        ("ticket_fast", "ticket", "1d", "2h"),
        ("ticket_slow", "ticket", "3d", "6h"),
    ]
    assert [tier.factor for tier in tiers] == [13.44, 5.6, 2.8, pytest.approx(0.93333333333)]
    assert [tier.nominal_factor for tier in tiers] == [tier.factor for tier in tiers]
    assert factors("30d", 0.999) == [14.4, 6.0, 3.0, 1.0]
    assert factors("4w", 0.99) == factors("28d", 0.99)


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        (0.50, [1.0, 1.0, 1.0, 0.933]),  # twice the budget is all there is
        (0.80, [2.5, 2.5, 2.5, 0.933]),
        (0.90, [5.0, 5.0, 2.8, 0.933]),
        (0.95, [10.0, 5.6, 2.8, 0.933]),
        (0.20, [1.0, 1.0, 1.0, 0.933]),
    ],
)
def test_a_factor_that_no_outage_could_reach_is_lowered(objective: float, expected: list[float]) -> None:
    tiers = tiers_for("28d", objective)
    assert [tier.factor for tier in tiers] == pytest.approx(expected, abs=0.001)
    assert [tier.nominal_factor for tier in tiers] == pytest.approx([13.44, 5.6, 2.8, 0.933], abs=0.001)
    total_outage = 1 / (1 - objective)
    assert all(tier.factor < total_outage for tier in tiers)


def test_a_short_period_does_not_alert_on_burn_that_its_budget_sustains() -> None:
    assert factors("7d", 0.99) == pytest.approx([3.36, 1.4, 28 / 30, 28 / 30])


def test_the_budget_is_what_was_written() -> None:
    assert [float(error_budget(objective)) for objective in (0.9, 0.99, 0.999, 0.9999)] == [0.1, 0.01, 0.001, 0.0001]


def test_one_bad_of_a_hundred_at_99_percent_burns_at_1_and_spends_the_budget() -> None:
    budget = error_budget(0.99)
    assert burn.burn_rate(Counts(good=99, bad=1), budget) == 1.0
    assert burn.budget_remaining(1, 100, budget) == 0.0
    assert burn.burn_rate(Counts(good=93, bad=7), error_budget(0.93)) == 1.0
    assert burn.budget_remaining(7, 100, error_budget(0.93)) == 0.0


def test_one_failure_in_ten_thousand_leaves_99_percent_of_the_budget() -> None:
    """A count taken for a share would call this budget exhausted."""
    left = burn.budget_remaining(1, 10_001, error_budget(0.99))
    assert left == pytest.approx(1 - 1 / 100.01)
    assert burn.state(left, set()) == "ok"


def test_a_budget_is_signed_and_not_clamped() -> None:
    assert burn.budget_remaining(100, 100, error_budget(0.99)) == -99.0
    assert burn.burn_rate(Counts(bad=5), error_budget(0.99)) == 100.0


def test_without_labelled_events_nothing_is_defined() -> None:
    nothing = Counts(unlabelled=7, excluded=3)
    assert burn.error_ratio(nothing) is None
    assert burn.burn_rate(nothing, error_budget(0.99)) is None
    assert burn.budget_remaining(0, 0, error_budget(0.99)) is None
    assert burn.wilson(0, 0) == (None, None)


@pytest.mark.parametrize(
    ("good", "labelled", "low", "high"),
    [(8, 10, 0.4902, 0.9433), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (81, 263, 0.2553, 0.3662)],
)
def test_wilson_intervals_are_those_of_the_books(good: int, labelled: int, low: float, high: float) -> None:
    """The last one is Newcombe's example (Statistics in Medicine 17, 1998, table I)."""
    assert list(burn.wilson(good, labelled)) == pytest.approx([low, high], abs=5e-5)


@pytest.mark.parametrize("labelled", [1, 2, 7, 1000, 10**9])
def test_wilson_intervals_are_those_of_statsmodels(labelled: int) -> None:
    for good in {0, 1, labelled // 3, labelled - 1, labelled}:
        low, high = proportion_confint(good, labelled, alpha=0.05, method="wilson")
        assert burn.wilson(good, labelled) == pytest.approx((low, high), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(
    ("left", "burning", "expected"),
    [
        (None, {"page"}, "no_data"),
        (-3.0, {"page", "ticket"}, "burning_page"),
        (0.5, {"page"}, "burning_page"),
        (0.0, {"ticket"}, "exhausted"),
        (-3.0, set(), "exhausted"),
        (0.1, {"ticket"}, "burning_ticket"),
        (0.1, set(), "ok"),
    ],
)
def test_the_most_urgent_state_wins(left: float | None, burning: set[str], expected: str) -> None:
    assert burn.state(left, burning) == expected
