"""Bug reports of other tools about burn alerts, each as a test of what must not happen here."""

from __future__ import annotations

import pytest

from surefoot.processors.slo.burn import tiers_for
from surefoot.processors.slo.decide import Sample, Tail, decide
from surefoot.processors.slo.definition import Alerting
from surefoot.processors.slo.report import Counts, TierReport

OBJECTIVES = (0.5, 0.8, 0.9, 0.93, 0.95, 0.99, 0.999, 0.9999, 0.999999)
QUIET = Tail(expected=0.1)


def every_tier(counts: Counts, objective: float, tail: Tail = QUIET) -> list[TierReport]:
    """All windows hold the same events."""
    sample = Sample(counts)
    return [decide(tier, sample, sample, Alerting(), objective, 1, tail) for tier in tiers_for("28d", objective)]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_pyrra_1259_1925_a_single_error_after_a_restart_does_not_alert(objective: float) -> None:
    tail = Tail(bad=1, bad_at_most=1, expected=0.1)
    for good in (0, 1, 5, 50):
        assert not any(tier.burning for tier in every_tier(Counts(good=good, bad=1), objective, tail))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_kibana_190143_one_bad_of_one_event_does_not_alert(objective: float) -> None:
    (*tiers,) = every_tier(Counts(bad=1), objective, Tail(1, 1, 0.1))
    assert not any(tier.burning for tier in tiers)
    assert all(tier.p_value == pytest.approx(1 - objective) for tier in tiers)


def test_fifty_minutes_of_history_with_one_bad_of_three_do_not_page_the_six_hour_pair() -> None:
    """The least number of events must hold for every pair, not for the fast one alone."""
    for objective in OBJECTIVES:
        tiers = every_tier(Counts(good=2, bad=1), objective)
        assert [tier.burning or tier.frozen for tier in tiers] == [False] * 4
    slow = every_tier(Counts(good=2, bad=1), 0.99)[1]
    assert slow.reason.startswith("1 of 3 events bad in the last 6h: burn 33.33 is above 5.6, but chance")


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("period", ["4d", "7d", "28d", "30d", "90d", "366d"])
def test_kcp_287_kibana_142521_no_tier_is_out_of_reach(objective: float, period: str) -> None:
    """A total outage burns in every tier, at every target and period."""
    outage = Sample(Counts(bad=5_000))
    for tier in tiers_for(period, objective):
        report = decide(tier, outage, outage, Alerting(), objective, 51, Tail(expected=1e9))
        assert report.burning, report
        assert (tier.note != "") == (tier.factor != tier.nominal_factor)
