"""Does a tier burn? Two windows, an exact test, the missing labels at both extremes; and one sentence why.

A tier burns when the burn rates of both windows are above its factor and the long window's bad events could not be
chance: the exact binomial test against the error budget gives p < alpha / pages. Where so few events come that six
hours do not hold enough for any test, a page tier burns once that many events in a row were bad.

Missing labels: the question is answered twice, with all of them good and with all of them bad. The same answer is the
answer; else the tier is frozen. A window turns to burning, never back, when one more of its events is bad, so the two
extremes speak for everything between. A short window without events cannot tell whether the trouble is over: while the
long one burns the tier is then frozen, too.

Rule: pure, and the same for engine and simulation; docs/slo-statistics.md measures what it promises.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from scipy.special import betainc

from surefoot.processors.slo.burn import PAGE, Tier
from surefoot.processors.slo.definition import Alerting, error_budget
from surefoot.processors.slo.report import Counts, Mass, TierReport

# The streak rule's window, and the span from which its traffic is learnt: the longest window of the default tiers.
QUIET_WINDOW_SECONDS: Final = 6 * 3600
TRAFFIC_SECONDS: Final = 3 * 86_400


@dataclass(frozen=True, slots=True)
class Sample:
    """A window's events: raw counts, and what ratios come from where an event is not simply one."""

    counts: Counts
    mass: Mass | None = None


@dataclass(frozen=True, slots=True)
class Tail:
    """The newest events up to now, for the streak rule; see :func:`streaks` and :func:`expected_events`."""

    bad: int = 0  # bad events without a good or an unlabelled one after them
    bad_at_most: int = 0  # the same if every unlabelled event is bad; without unlabelled ones equal to `bad`
    expected: float = math.inf  # events (not excluded ones) that 6 h bring
    age_seconds: float = 0.0  # since the newest event that is not excluded; inf without one


def streaks(good: Sequence[int], bad: Sequence[int], unlabelled: Sequence[int]) -> tuple[int, int]:
    """``Tail.bad`` and ``Tail.bad_at_most`` of buckets, oldest first.

    Within a bucket the order is unknown, so one that holds a good event ends the streak and none of it counts.
    """
    certain, possible, open_end = 0, 0, True
    for g, b, u in zip(reversed(good), reversed(bad), reversed(unlabelled), strict=True):
        if g:
            break
        open_end = open_end and not u
        certain += b if open_end else 0
        possible += b + u
    return certain, possible


def expected_events(counts: Counts) -> float:
    """``Tail.expected`` from the counts of the last 3 days."""
    total = counts.good + counts.bad + counts.unlabelled
    return total * QUIET_WINDOW_SECONDS / TRAFFIC_SECONDS


def streak_to_page(alerting: Alerting, objective: float, pages: int) -> int | None:
    """How many bad events in a row page: the fewest with budget^n <= alpha / pages. None: the rule is off.

    For alpha 1e-5: 8, 5, 4, 3, 2 at .80, .90, .95, .99, .999.
    """
    if alerting.consecutive is not None:
        return alerting.consecutive or None
    budget, limit = error_budget(objective), alerting.alpha / pages
    streak = 1
    while float(budget**streak) > limit:
        streak += 1
    return streak


def p_value(bad: float, events: float, budget: float) -> float:
    """P(at least ``bad`` of ``events`` are bad) were every event bad with probability ``budget``; exact."""
    return float(betainc(bad, events - bad + 1, budget)) if bad > 0 else 1.0


@dataclass(frozen=True, slots=True)
class _Window:
    """One window at one extreme of its missing labels."""

    bad: float
    total: float
    bad_events: int
    tested_bad: int
    tested: int


def _at(sample: Sample, unlabelled_are_bad: bool) -> _Window:
    counts, mass = sample.counts, sample.mass
    bad_events = counts.bad + counts.unlabelled * unlabelled_are_bad
    events = counts.good + counts.bad + counts.unlabelled
    if mass is None:
        return _Window(bad_events, events, bad_events, bad_events, events)
    bad = mass.bad + mass.unlabelled * unlabelled_are_bad
    labelled = mass.good + mass.bad
    total = labelled + mass.unlabelled
    # The unlabelled ones are taken to be as unevenly weighted as the others; downwards, so that nothing is overstated.
    effective = mass.effective_n * total / labelled if labelled > 0 else min(mass.unlabelled, float(events))
    tested = math.floor(effective)
    return _Window(bad, total, bad_events, math.floor(tested * bad / total) if total > 0 else 0, tested)


def decide(
    tier: Tier, long: Sample, short: Sample, alerting: Alerting, objective: float, pages: int, tail: Tail
) -> TierReport:
    """Whether ``tier`` burns. ``pages``: the strata, the roll-up among them, that alert from this view."""
    budget = float(error_budget(objective))
    limit = alerting.alpha / pages
    streak = streak_to_page(alerting, objective, pages) if tier.severity == PAGE else None
    answers = []
    for worst in (False, True):
        window, recent = _at(long, worst), _at(short, worst)
        p = p_value(window.tested_bad, window.tested, budget)
        long_burns = (
            window.total > 0
            and window.bad / (window.total * budget) > tier.factor
            and p < limit
            and window.bad_events >= alerting.min_bad_events
        )
        short_burns = recent.bad / (recent.total * budget) > tier.factor if recent.total > 0 else worst
        in_a_row = tail.bad_at_most if worst else tail.bad
        fresh = tail.age_seconds <= TRAFFIC_SECONDS
        quiet = streak is not None and tail.expected < streak <= in_a_row and fresh
        answers.append((long_burns and short_burns) or quiet)
    low = _at(long, False)
    return TierReport(
        name=tier.name,
        severity=tier.severity,
        long_window=tier.long_window,
        short_window=tier.short_window,
        factor=tier.factor,
        nominal_factor=tier.nominal_factor,
        burning=answers[0],
        frozen=answers[0] != answers[1],
        p_value=p_value(low.tested_bad, low.tested, budget) if low.total > 0 else None,
    )
