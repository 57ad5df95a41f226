"""What a tier's two windows and the newest events say, with every missing label good or with every one bad.

Rule: nothing is overstated. Weighted events are tested as the fewer plain ones that they are worth, rounded down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaln, gammaln

from surefoot.processors.slo.burn import PAGE, Tier
from surefoot.processors.slo.definition import Alerting, error_budget
from surefoot.processors.slo.report import Counts, Mass
from surefoot.processors.slo.windows import seconds

# The streak rule's window, and the span from which its traffic is learnt: the longest window of the default tiers.
HOUR: Final = 3600
QUIET_WINDOW_SECONDS: Final = 6 * HOUR
TRAFFIC_SECONDS: Final = 3 * 86_400
_QUIET: Final = 4


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


@lru_cache(maxsize=4096)
def streak_to_page(alerting: Alerting, objective: float, pages: int) -> int | None:
    """How many bad events in a row page: the fewest with budget^n <= alpha / pages. None: the rule is off.

    For alpha 1e-5: 8, 5, 4, 3, 2 at .80, .90, .95, .99, .999.
    """
    if alerting.consecutive is not None:
        return alerting.consecutive or None
    exact = math.log(alerting.alpha / pages) / math.log(float(error_budget(objective)))
    return max(math.ceil(exact - 1e-9), alerting.min_bad_events, 1)


def is_quiet(expected: ArrayLike, streak: int) -> NDArray[np.bool_]:
    """Whether so few events come in 6 h that a streak pages: fewer than four times as many as it takes.

    A window of 6 h that expects as many as it takes holds them only half of the time; with good events from before the
    outage among them the test asks for more.
    """
    return np.asarray(expected) < _QUIET * streak


def p_value(bad: int, events: int, budget: float, correlation: float = 0.0, hours: float = 1.0) -> float:
    """P(at least ``bad`` of ``events`` are bad) were each bad with probability ``budget``; exact.

    With a ``correlation`` of the failures of an hour, by a beta-binomial distribution: exact for one hour, and over
    more ``hours`` the one with the variance that so many independent hours have.
    """
    if not bad:
        return 1.0
    spread = correlation * (events / max(hours, 1.0) - 1) / (events - 1) if events > 1 else 0.0
    if spread <= 0:
        return float(tail_probability(bad, events, budget))
    a, b = (share * (1 - spread) / spread for share in (budget, 1 - budget))
    k = np.arange(bad, events + 1)
    ways = gammaln(events + 1) - gammaln(k + 1) - gammaln(events - k + 1)
    return min(1.0, float(np.exp(ways + betaln(k + a, events - k + b) - betaln(a, b)).sum()))


def tail_probability(bad: ArrayLike, events: ArrayLike, budget: float) -> NDArray[np.float64]:
    """The binomial tail for one or more bad events, as the incomplete beta function that it is."""
    failed = np.asarray(bad)
    return np.asarray(betainc(failed, np.asarray(events) - failed + 1.0, budget))


@dataclass(frozen=True, slots=True)
class Window:
    """One window at one extreme of its missing labels. Numbers are whole unless events have weights."""

    bad: float
    total: float
    bad_events: int
    tested_bad: int
    tested: int

    def burn(self, objective: float) -> float | None:
        """As ``burn.burn_rate``: divided once, so that equality at a factor is equality."""
        share, whole = error_budget(objective).as_integer_ratio()
        return self.bad * whole / (self.total * share) if self.total > 0 else None


def at_extreme(sample: Sample, unlabelled_are_bad: bool) -> Window:
    """The window with its unlabelled events good, or bad."""
    counts, mass = sample.counts, sample.mass
    bad_events = counts.bad + counts.unlabelled * unlabelled_are_bad
    events = counts.good + counts.bad + counts.unlabelled
    if mass is None:
        return Window(bad_events, events, bad_events, bad_events, events)
    bad = mass.bad + mass.unlabelled * unlabelled_are_bad
    labelled = mass.good + mass.bad
    total = labelled + mass.unlabelled
    if total <= 0:
        return Window(0, 0, 0, 0, 0)
    # The unlabelled ones are taken to be as unevenly weighted as the others. Both numbers are rounded down, so that the
    # test never claims evidence that is not there.
    tested = math.floor(mass.effective_n * total / labelled if labelled > 0 else min(mass.unlabelled, events))
    return Window(bad, total, bad_events, math.floor(tested * min(bad / total, 1)), tested)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one extreme of the missing labels says."""

    long: Window
    short: Window
    burns: tuple[float | None, float | None]
    p: float
    long_burns: bool  # rate, test and least number of bad events
    short_burns: bool
    streak: int  # of bad events up to now that page; 0: they do not

    @property
    def burning(self) -> bool:
        """Both windows burn, or the streak is long enough."""
        return (self.long_burns and self.short_burns) or self.streak > 0


@dataclass(frozen=True, slots=True)
class Question:
    """All that a decision depends on, in the terms of the definition."""

    tier: Tier
    long: Sample
    short: Sample
    alerting: Alerting
    objective: float
    pages: int
    tail: Tail

    @property
    def needed(self) -> int | None:
        """Bad events in a row that page where traffic is quiet; None: it is not, or the rule is off."""
        needed = streak_to_page(self.alerting, self.objective, self.pages)
        quiet = needed is not None and is_quiet(self.tail.expected, needed)
        return needed if quiet and self.tail.age_seconds <= TRAFFIC_SECONDS else None

    @property
    def may_become_a_page(self) -> bool:
        """A ticket waits while the newest events are bad and in a row, yet too few to page: it may be an outage."""
        return self.tier.severity != PAGE and self.needed is not None and 0 < self.tail.bad < self.needed

    @property
    def limit(self) -> float:
        """A smaller p is no chance."""
        return self.alerting.alpha / self.pages

    @property
    def something_is_missing(self) -> bool:
        """Whether the extremes differ."""
        unlabelled = self.long.counts.unlabelled + self.short.counts.unlabelled
        return unlabelled > 0 or at_extreme(self.short, False).total <= 0 or self.tail.bad != self.tail.bad_at_most

    def answer(self, worst: bool) -> Answer:
        """The answer with every missing label good, or bad."""
        long, short = at_extreme(self.long, worst), at_extreme(self.short, worst)
        burns = long.burn(self.objective), short.burn(self.objective)
        hours = seconds(self.tier.long_window) / HOUR
        budget = float(error_budget(self.objective))
        p = p_value(long.tested_bad, long.tested, budget, self.alerting.correlation, hours)
        above = [burn is not None and burn > self.tier.factor for burn in burns]
        return Answer(
            long,
            short,
            burns,
            p,
            long_burns=above[0] and p < self.limit and long.bad_events >= self.alerting.min_bad_events,
            short_burns=above[1] or (worst and burns[1] is None),
            streak=self._streak(self.tail.bad_at_most if worst else self.tail.bad),
        )

    def _streak(self, in_a_row: int) -> int:
        needed = self.needed if self.tier.severity == PAGE else None
        return in_a_row if needed is not None and needed <= in_a_row else 0
