"""How often would an SLO page by chance, and how soon would it see an outage? Asked of simulated years.

Streams of events by the minute, judged every minute by the rule of decide.py, whole years at a time. A test proves this
vectorised form equal to ``decide`` minute by minute; so what holds here holds for the engine.

Rule: reproducible. The same seed gives the same years.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from surefoot.processors.slo import answer
from surefoot.processors.slo.burn import PAGE, TICKET, Tier, tiers_for
from surefoot.processors.slo.definition import Alerting, error_budget
from surefoot.processors.slo.windows import DAY, MINUTE, seconds

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_DAY: Final = DAY // MINUTE
_HOUR: Final = 60
_YEAR: Final = 365 * _DAY
_WARM_UP: Final = 3 * _DAY  # fills the longest window
_ONE_INCIDENT: Final = 60  # minutes; what fires again sooner is the same page


@dataclass(frozen=True, slots=True)
class Traffic:
    """Events of one SLO. ``correlation``: of the failures of an hour. ``office``: only on weekdays from 9 to 17."""

    per_day: float
    correlation: float = 0.0
    office: bool = False


@dataclass(frozen=True, slots=True)
class Detection:
    """Of one simulated outage: minutes from its beginning until the first page and the first ticket, None: never."""

    page: int | None
    ticket: int | None


def burning(good: Ints, bad: Ints, tiers: Sequence[Tier], alerting: Alerting, objective: float, pages: int) -> Bools:
    """Whether a tier burns: a row per tier, a column per bucket of a minute, at its end."""
    events = good + bad
    bads, totals = _Windows(bad), _Windows(events)
    streak = answer.streak_to_page(alerting, objective, pages)
    quiet = _quiet(good, bad, totals, streak)
    rows = []
    for tier in tiers:
        fires = _exceeds(bads, totals, tier.short_window, tier.factor, objective)
        fires &= _exceeds(bads, totals, tier.long_window, tier.factor, objective)
        at = np.flatnonzero(fires)
        minutes = seconds(tier.long_window) // MINUTE
        failed, total = bads.over(minutes)[at], totals.over(minutes)[at]
        chance = answer.tail_probability(failed, total, float(error_budget(objective)))
        fires[at] = (chance < alerting.alpha / pages) & (failed >= alerting.min_bad_events)
        rows.append(fires | quiet if tier.severity == PAGE else fires)
    return np.array(rows)


def false_pages(
    objective: float, traffic: Traffic, years: int, strata: int = 1, alerting: Alerting | None = None, seed: int = 0
) -> dict[str, int]:
    """Incidents by severity over simulated years in which failures are exactly as frequent as the budget allows.

    With more than one of the ``strata`` each has its share of the traffic, the roll-up pages, too, and all count.
    """
    alerting = alerting or Alerting()
    tiers = tiers_for("28d", objective, alerting)
    rng = np.random.default_rng(seed)
    incidents = {PAGE: 0, TICKET: 0}
    share = Traffic(traffic.per_day / strata, traffic.correlation, traffic.office)
    for _ in range(years):
        streams = [_stream(rng, share, objective, _WARM_UP + _YEAR) for _ in range(strata)]
        if strata > 1:
            streams.append((np.sum([good for good, _ in streams], axis=0), np.sum([bad for _, bad in streams], axis=0)))
        for good, bad in streams:
            rows = burning(good, bad, tiers, alerting, objective, len(streams))[:, _WARM_UP:]
            for severity in incidents:
                incidents[severity] += _incidents(_any(rows, tiers, severity))
    return incidents


def outages(
    objective: float,
    traffic: Traffic,
    error_ratio: float,
    count: int,
    days: int = 3,
    alerting: Alerting | None = None,
    seed: int = 0,
    before: float = 0.5,
) -> Iterator[Detection]:
    """Outages of ``days`` after three days in which the burn rate was ``before``.

    An outage that begins while something burns by chance is left out: nobody could say what it was that was detected.
    """
    alerting = alerting or Alerting()
    tiers = tiers_for("28d", objective, alerting)
    rng = np.random.default_rng(seed)
    start = _WARM_UP
    for _ in range(count):
        good, bad = _stream(rng, traffic, objective, start + days * _DAY, before)
        events = (good + bad)[start:]
        bad[start:] = rng.binomial(events, error_ratio)
        good[start:] = events - bad[start:]
        rows = burning(good, bad, tiers, alerting, objective, 1)[:, start - 1 :]
        if rows[:, 0].any():
            continue
        first = {}
        for severity in (PAGE, TICKET):
            at = np.flatnonzero(_any(rows, tiers, severity))
            first[severity] = int(at[0]) if len(at) else None
        yield Detection(first[PAGE], first[TICKET])


class _Windows:
    """Sums over the last minutes, at every minute."""

    def __init__(self, values: Ints) -> None:
        self._sums = np.concatenate([[0], np.cumsum(values)])
        self._over: dict[int, Ints] = {}

    def over(self, minutes: int) -> Ints:
        if minutes not in self._over:
            over = self._sums[1:].copy()
            over[minutes:] -= self._sums[1:-minutes]
            self._over[minutes] = over
        return self._over[minutes]


def _exceeds(bads: _Windows, totals: _Windows, window: str, factor: float, objective: float) -> Bools:
    """Burn rate above the factor, divided once as ``burn.burn_rate`` does."""
    share, whole = error_budget(objective).as_integer_ratio()
    minutes = seconds(window) // MINUTE
    bad, total = bads.over(minutes), totals.over(minutes)
    above: Bools = (bad * whole) / (np.maximum(total, 1) * share) > factor
    return above


def _quiet(good: Ints, bad: Ints, totals: _Windows, streak: int | None) -> Bools:
    """The streak rule at every minute."""
    traffic = totals.over(answer.TRAFFIC_SECONDS // MINUTE)
    if streak is None:
        return np.zeros(len(good), dtype=bool)
    sums = np.cumsum(bad)
    in_a_row = sums - np.maximum.accumulate(np.where(good > 0, sums, 0))
    expected = traffic * answer.QUIET_WINDOW_SECONDS / answer.TRAFFIC_SECONDS
    return (expected < streak) & (in_a_row >= streak) & (traffic > 0)


def _stream(
    rng: np.random.Generator, traffic: Traffic, objective: float, minutes: int, burn: float = 1.0
) -> tuple[Ints, Ints]:
    """Good and bad events of each minute."""
    rate = traffic.per_day / _DAY
    if traffic.office:
        clock = (np.arange(minutes) + rng.integers(7 * _DAY)) % (7 * _DAY)
        open_ = (clock < 5 * _DAY) & (clock % _DAY >= 9 * _HOUR) & (clock % _DAY < 17 * _HOUR)
        events = rng.poisson(np.where(open_, rate * 21 / 5, 0.0))
    else:
        events = rng.poisson(rate, minutes)
    budget = float(error_budget(objective)) * burn
    ratio: float | NDArray[np.float64] = budget
    if traffic.correlation:
        scale = (1 - traffic.correlation) / traffic.correlation
        hours = rng.beta(budget * scale, (1 - budget) * scale, minutes // _HOUR + 1)
        ratio = np.repeat(hours, _HOUR)[:minutes]
    bad = rng.binomial(events, ratio)
    return events - bad, bad


def _any(rows: Bools, tiers: Sequence[Tier], severity: str) -> Bools:
    """At each minute, whether any tier of the severity burns."""
    return np.asarray(rows[[tier.severity == severity for tier in tiers]].any(axis=0))


def _incidents(fires: Bools) -> int:
    """Stretches of firing, those closer than an hour taken as one."""
    at = np.flatnonzero(fires)
    return int(len(at) > 0) + int((np.diff(at) > _ONE_INCIDENT).sum())
