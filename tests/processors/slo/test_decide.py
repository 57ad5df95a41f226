"""When a tier burns, when it is frozen, and what it says about it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import betabinom, binom

from surefoot.processors.slo.answer import p_value, streak_to_page
from surefoot.processors.slo.burn import tiers_for
from surefoot.processors.slo.decide import Sample, Tail, decide, expected_events, streaks
from surefoot.processors.slo.definition import Alerting, TierSpec
from surefoot.processors.slo.report import Counts, Mass, TierReport
from surefoot.processors.slo.simulate import burning
from surefoot.processors.slo.windows import MINUTE, seconds

NEVER = Tail(expected=math.inf)
ASKED = (TierSpec("mine", "page", "2h", "10m", 14.4), TierSpec("slow", "ticket", "1d", "2h", 0.5))


def page(
    long: Counts,
    short: Counts,
    objective: float = 0.99,
    tail: Tail = NEVER,
    alerting: Alerting | None = None,
    pages: int = 1,
    tier: int = 0,
) -> TierReport:
    alerting = alerting or Alerting()
    tiers = tiers_for("28d", objective, alerting)
    return decide(tiers[tier], Sample(long), Sample(short), alerting, objective, pages, tail)


def test_what_is_no_chance_burns_and_says_with_which_numbers() -> None:
    report = page(Counts(good=2, bad=4), Counts(bad=2))
    assert (report.burning, report.frozen) == (True, False)
    assert report.p_value == pytest.approx(1.476e-7, rel=1e-3)
    assert report.reason == (
        "4 of 6 events bad in the last 1h and 2 of 2 events bad in the last 5m: burn 66.67 and 100 above 13.44; "
        "chance under the budget 1.5e-07 < 1e-05"
    )


def test_alpha_is_divided_by_the_strata_that_page() -> None:
    counts = Counts(good=7, bad=4)  # p = 3.1e-6
    assert page(counts, Counts(bad=1)).burning
    assert not page(counts, Counts(bad=1), pages=6).burning
    assert "not < 1.7e-06" in page(counts, Counts(bad=1), pages=6).reason


def test_equality_with_the_factor_does_not_burn() -> None:
    """Of 90 %, reach .5: the factor is 5, and half of all events bad is a burn of 5."""
    assert not page(Counts(good=50, bad=50), Counts(good=1, bad=2), 0.9).burning
    assert page(Counts(good=49, bad=51), Counts(good=1, bad=2), 0.9).burning
    assert not page(Counts(good=49, bad=51), Counts(good=1, bad=1), 0.9).burning


@pytest.mark.parametrize(
    ("long", "short", "words"),
    [
        (Counts(), Counts(), "no event in the last 1h"),
        (Counts(good=98, bad=2), Counts(good=1), "2 of 100 events bad in the last 1h: burn 2 is not above 13.44"),
        (
            Counts(good=1, bad=1),
            Counts(bad=1),
            "burn 50 is above 13.44, but chance under the budget is 0.02, not < 1e-05",
        ),
        (Counts(good=2, bad=4), Counts(good=3), "but in the last 5m 0 of 3 events bad: burn 0"),
    ],
)
def test_what_does_not_burn_says_why(long: Counts, short: Counts, words: str) -> None:
    report = page(long, short)
    assert (report.burning, report.frozen) == (False, False)
    assert words in report.reason


def test_missing_labels_freeze_only_if_they_could_change_the_answer() -> None:
    open_ = page(Counts(good=50, bad=5, unlabelled=20), Counts(bad=2))
    assert (open_.burning, open_.frozen) == (False, True)
    assert open_.reason == (
        "20 of 75 events in the last 1h have no label yet: were they good, burn would be 6.667, were they bad 33.33; "
        "the factor is 13.44"
    )
    outage = page(Counts(good=2, bad=30, unlabelled=50), Counts(bad=2, unlabelled=1))
    assert (outage.burning, outage.frozen) == (True, False)  # a floor of 50 % coverage would have muted it
    fine = page(Counts(good=500, unlabelled=20), Counts(good=2))
    assert (fine.burning, fine.frozen) == (False, False)
    assert fine.reason.endswith("; were the 20 unlabelled ones bad, it would not burn either")


def test_an_empty_short_window_cannot_tell_that_the_trouble_is_over() -> None:
    report = page(Counts(good=2, bad=4), Counts())
    assert (report.burning, report.frozen) == (False, True)
    assert report.reason.endswith("but no event in the last 5m says whether it goes on")
    assert not page(Counts(good=600, bad=4), Counts()).frozen


def test_a_streak_pages_where_six_hours_bring_little_and_only_there() -> None:
    streak = Tail(bad=3, bad_at_most=3, expected=0.75)
    report = page(Counts(bad=1), Counts(), tail=streak)
    assert (report.burning, report.frozen) == (True, False)
    assert report.reason == "the last 3 events were bad; at about 0.75 events in 6h, 3 in a row page"
    assert not page(Counts(bad=1), Counts(), tail=Tail(2, 2, 0.75)).burning
    assert not page(Counts(bad=1), Counts(), tail=Tail(3, 3, 12.0)).burning
    assert not page(Counts(bad=1), Counts(), tail=Tail(3, 3, 0.75, age_seconds=4 * 86_400)).burning
    assert not page(Counts(bad=1), Counts(), tail=streak, alerting=Alerting(consecutive=0)).burning
    assert not page(Counts(bad=1), Counts(), tail=streak, tier=2).burning  # a ticket


def test_a_streak_that_may_be_longer_freezes() -> None:
    report = page(Counts(bad=1), Counts(), tail=Tail(1, 3, 0.75))
    assert (report.burning, report.frozen) == (False, True)


def test_a_ticket_waits_for_the_streak_that_may_become_a_page() -> None:
    burnt, now = Counts(good=20, bad=9), Counts(bad=2)
    report = page(burnt, now, tail=Tail(2, 2, 0.75), tier=3)
    assert (report.burning, report.frozen) == (False, True)
    assert report.reason == "3 bad events in a row page, 2 are there; until then no ticket begins"
    assert page(burnt, now, tail=Tail(0, 0, 0.75), tier=3).burning
    assert page(burnt, now, tail=Tail(3, 3, 0.75), tier=3).burning
    assert page(burnt, now, tail=Tail(2, 2, 75), tier=3).burning


def test_how_many_in_a_row_page_follows_from_alpha() -> None:
    targets = (0.8, 0.9, 0.95, 0.99, 0.999)
    assert [streak_to_page(Alerting(), target, 1) for target in targets] == [8, 5, 4, 3, 2]
    assert [streak_to_page(Alerting(), target, 6) for target in targets] == [9, 6, 5, 3, 2]
    assert streak_to_page(Alerting(), 0.999999, 1) == 2  # never one
    assert streak_to_page(Alerting(consecutive=7), 0.9, 1) == 7


def test_streaks_end_at_a_good_event_and_certain_ones_at_an_unlabelled_one() -> None:
    assert streaks([1, 0, 0], [5, 2, 1], [0, 0, 0]) == (3, 3)
    assert streaks([0, 1, 0], [5, 2, 0], [0, 0, 0]) == (0, 0)
    assert streaks([1, 0, 0], [0, 2, 1], [0, 1, 0]) == (1, 4)
    assert streaks([], [], []) == (0, 0)
    assert expected_events(Counts(good=30, bad=5, unlabelled=1, excluded=99)) == 3.0


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 400), st.integers(0, 400), st.sampled_from([0.001, 0.01, 0.05, 0.1, 0.2, 0.5]))
def test_the_test_is_the_exact_binomial_one(bad: int, good: int, budget: float) -> None:
    assert p_value(bad, bad + good, budget) == pytest.approx(
        binom.sf(bad - 1, bad + good, budget), rel=1e-9, abs=1e-300
    )


def test_correlated_failures_widen_the_test_by_a_beta_binomial_tail() -> None:
    a, b = 0.05 * 49, 0.95 * 49
    assert p_value(9, 40, 0.05, 0.02) == pytest.approx(betabinom.sf(8, 40, a, b), rel=1e-9)
    assert p_value(9, 40, 0.05) < p_value(9, 40, 0.05, 0.02, hours=6) < p_value(9, 40, 0.05, 0.02)
    assert p_value(1, 1, 0.05, 0.02) == pytest.approx(0.05)
    assert p_value(0, 0, 0.05, 0.02) == 1.0
    counts = Counts(good=60, bad=24)
    assert page(counts, Counts(bad=9), 0.95, tier=1).burning
    assert not page(counts, Counts(bad=9), 0.95, tier=1, alerting=Alerting(correlation=0.5)).burning


def test_a_weight_is_no_evidence() -> None:
    """One failure that stands for a hundred is one observation; equal weights cost nothing."""
    tier = tiers_for("28d", 0.99)[0]

    def of(good: int, bad: int, mass: Mass) -> TierReport:
        sample = Sample(Counts(good, bad), mass)
        return decide(tier, sample, sample, Alerting(), 0.99, 1, NEVER)

    heavy = of(10, 1, Mass(good=10, bad=100, effective_n=110**2 / (10 + 100**2)))
    assert not heavy.burning
    even = of(20, 20, Mass(good=2000, bad=2000, effective_n=40))
    assert even.burning
    assert even.reason.startswith("2000.0 of 4000.0 bad by weight (as good as 40 events) in the last 1h")
    unlabelled = Sample(Counts(unlabelled=9), Mass(unlabelled=450.0))
    report = decide(tier, unlabelled, unlabelled, Alerting(), 0.99, 1, NEVER)
    assert (report.burning, report.frozen) == (False, True)


numbers = st.integers(0, 40)


@settings(max_examples=150, deadline=None)
@given(
    st.tuples(numbers, numbers, numbers),
    st.tuples(numbers, numbers, numbers),
    st.sampled_from([0.5, 0.8, 0.95, 0.999]),
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from([0.0, 0.75, 9.0, math.inf])),
    st.booleans(),
    st.integers(0, 3),
)
def test_frozen_means_that_some_labelling_burns_and_some_does_not(
    long: tuple[int, int, int],
    short: tuple[int, int, int],
    objective: float,
    tail: tuple[int, int, float],
    weighted: bool,
    number: int,
) -> None:
    """And nothing that comes out is undefined, infinite or without a reason."""
    newest = Tail(min(tail[:2]), max(tail[:2]), tail[2])
    tier = tiers_for("28d", objective)[number]

    def sample(good: int, bad: int, unlabelled: int) -> Sample:
        mass = Mass(good * 1.5, bad * 0.7, unlabelled * 1.1, (good + bad) * 0.8) if weighted else None
        return Sample(Counts(good, bad, unlabelled), mass)

    report = decide(tier, sample(*long), sample(*short), Alerting(), objective, 3, newest)
    assert not (report.burning and report.frozen)
    assert report.reason
    assert report.p_value is None or 0 <= report.p_value <= 1
    assert "nan" not in report.reason
    assert " inf" not in report.reason
    if weighted or newest.bad != newest.bad_at_most or (number > 1 and newest.bad):
        return
    answers = {
        decide(
            tier,
            Sample(Counts(long[0] + long[2] * good, long[1] + long[2] * (not good))),
            Sample(Counts(short[0] + short[2] * good, short[1] + short[2] * (not good))),
            Alerting(),
            objective,
            3,
            newest,
        ).burning
        for good in (True, False)
    }
    if sum(short):
        assert report.frozen == (len(answers) == 2)
        assert report.frozen or report.burning == answers.pop()


@pytest.mark.parametrize("seed", range(4))
def test_the_simulation_judges_as_the_engine_does(seed: int) -> None:
    """Minute by minute: streams with outages, quiet and busy, weighted towards the edges of the rules."""
    rng = np.random.default_rng(seed)
    objective = float(rng.choice([0.8, 0.9, 0.95, 0.99, 0.999]))
    per_minute = float(rng.choice([3, 10, 30, 100, 3000])) / 1440
    alerting = Alerting(
        alpha=float(rng.choice([1e-5, 1e-2])),
        correlation=float(rng.choice([0, 0.02])),
        tiers=() if seed % 2 else ASKED,
    )
    pages = int(rng.choice([1, 6]))
    tiers = tiers_for("28d", objective, alerting)
    events = rng.poisson(per_minute, 8 * 1440)
    troubled = np.repeat(rng.random(16) < 0.4, 720)
    bad = rng.binomial(events, np.where(troubled, rng.choice([0.3, 0.6, 1.0]), 1 - objective))
    good = events - bad
    rows = burning(good, bad, tiers, alerting, objective, pages)
    seen = set()
    for at in rng.choice(len(events), 300, replace=False):

        def counts(length: int, until: int = int(at) + 1) -> Counts:
            window = slice(max(0, until - length // MINUTE), until)
            return Counts(int(good[window].sum()), int(bad[window].sum()))

        newest = np.flatnonzero(events[: at + 1])
        age = (int(at) - int(newest[-1])) * MINUTE if len(newest) else math.inf
        certain, possible = streaks(good[newest].tolist(), bad[newest].tolist(), [0] * len(newest))
        tail = Tail(certain, possible, expected_events(counts(3 * 86_400)), age)
        for number, tier in enumerate(tiers):
            long, short = (Sample(counts(seconds(window))) for window in (tier.long_window, tier.short_window))
            report = decide(tier, long, short, alerting, objective, pages, tail)
            assert report.burning == rows[number, at], (tier, report)
            seen.add(report.burning)
    assert seen == {True, False}


def test_a_tier_says_why_its_factor_is_another_one() -> None:
    assert [tier.note for tier in tiers_for("28d", 0.99)] == [""] * 4
    fast, slow, *_ = tiers_for("28d", 0.9)
    assert fast.note == (
        "lowered from 13.44, which would take 134% of events to be bad, to 5, which an outage of 50% of them exceeds"
    )
    assert page(Counts(), Counts(), 0.9).note == fast.note
    assert slow.note.startswith("lowered from 5.6, which would take 56% of events to be bad")
    assert tiers_for("7d", 0.99)[3].note == "raised from 0.2333, a burn that the budget of so short a period sustains"


def test_tiers_of_an_alert_policy_replace_the_default_ones_and_are_made_reachable() -> None:
    mine, slow = tiers_for("28d", 0.95, Alerting(tiers=ASKED))
    assert (mine.name, mine.factor, mine.nominal_factor) == ("mine", 10.0, 14.4)
    assert (slow.name, slow.factor, slow.nominal_factor, slow.note) == ("slow", 0.5, 0.5, "")
    assert tiers_for(28 * 86_400, 0.95) == tiers_for("28d", 0.95)
