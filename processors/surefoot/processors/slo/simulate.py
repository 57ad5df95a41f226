"""How often would an SLO page by chance, and how soon would it see an outage? Asked of simulated years.

Streams of events by the minute, judged every minute by the rule of decide.py, whole years at a time. A test proves this
vectorised form equal to ``decide`` minute by minute; so what holds here holds for the engine.

Rule: reproducible. The same seed gives the same years.
"""

from __future__ import annotations

from collections.abc import Sequence
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
_TRAFFIC: Final = answer.TRAFFIC_SECONDS // MINUTE
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
    at = _changes(good + bad, tiers)
    bads, totals = _Sums(bad, at), _Sums(good + bad, at)
    pages_now, may_page = _streaks(good, bad, totals, answer.streak_to_page(alerting, objective, pages))
    rows = []
    for tier in tiers:
        # The short window first: it burns seldom, so there is little left to look at.
        burn = np.flatnonzero(_exceeds(bads, totals, tier.short_window, tier.factor, objective))
        burn = burn[_exceeds(bads, totals, tier.long_window, tier.factor, objective, burn)]
        failed, total = (sums.over(tier.long_window, burn) for sums in (bads, totals))
        chance = _chance(failed, total, tier, alerting, objective)
        fires = np.zeros(len(at), dtype=bool)
        fires[burn] = (chance < alerting.alpha / pages) & (failed >= alerting.min_bad_events)
        rows.append(fires | pages_now if tier.severity == PAGE else fires & ~may_page)
    return np.repeat(np.array(rows), np.diff(np.append(at, len(good))), axis=1)


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
) -> list[Detection]:
    """Outages of ``days`` after three days in which the burn rate was ``before``.

    An outage that begins while something burns by chance is left out: nobody could say what it was that was detected.
    """
    alerting = alerting or Alerting()
    tiers = tiers_for("28d", objective, alerting)
    rng = np.random.default_rng(seed)
    length = _WARM_UP + days * _DAY
    found = []
    while count > 0:
        several = min(count, max(1, _YEAR // length))
        count -= several
        good, bad = _stream(rng, traffic, objective, several * length, before)
        in_outage = np.tile(np.arange(length) >= _WARM_UP, several)
        events = (good + bad)[in_outage]
        bad[in_outage] = rng.binomial(events, error_ratio)
        good[in_outage] = events - bad[in_outage]
        good[::length] += 1  # no streak of one outage reaches into the next
        rows = burning(good, bad, tiers, alerting, objective, 1)
        shape = (several, length)
        pages, tickets = (_any(rows, tiers, severity).reshape(shape)[:, _WARM_UP - 1 :] for severity in (PAGE, TICKET))
        found += [
            Detection(_first(page), _first(ticket))
            for page, ticket in zip(pages, tickets, strict=True)
            if not (page[0] or ticket[0])
        ]
    return found


def _first(fires: Bools) -> int | None:
    at = int(fires.argmax())
    return at if fires[at] else None


def _changes(events: Ints, tiers: Sequence[Tier]) -> Ints:
    """The minutes at which an event enters or leaves a window; between them nothing changes."""
    changed = np.zeros(len(events), dtype=bool)
    changed[0] = True
    there = np.flatnonzero(events)
    windows = {seconds(window) // MINUTE for tier in tiers for window in (tier.long_window, tier.short_window)}
    for minutes in {0, _TRAFFIC, *windows}:
        changed[there[: np.searchsorted(there, len(events) - minutes)] + minutes] = True
    return np.flatnonzero(changed)


class _Sums:
    """Sums of the last minutes, at some minutes."""

    def __init__(self, values: Ints, at: Ints) -> None:
        self._sums = np.concatenate([[0], np.cumsum(values)])
        self.at = at

    def over(self, window: str | int, which: Ints | slice = slice(None)) -> Ints:
        minutes = window if isinstance(window, int) else seconds(window) // MINUTE
        end = self.at[which] + 1
        over: Ints = self._sums[end] - self._sums[np.maximum(end - minutes, 0)]
        return over


def _exceeds(
    bads: _Sums, totals: _Sums, window: str, factor: float, objective: float, which: Ints | slice = slice(None)
) -> Bools:
    """Burn rate above the factor, divided once as ``burn.burn_rate`` does."""
    share, whole = error_budget(objective).as_integer_ratio()
    above: Bools = bads.over(window, which) * whole / (np.maximum(totals.over(window, which), 1) * share) > factor
    return above


def _chance(bad: Ints, events: Ints, tier: Tier, alerting: Alerting, objective: float) -> NDArray[np.float64]:
    budget = float(error_budget(objective))
    if not alerting.correlation:
        return answer.tail_probability(bad, events, budget)
    hours = seconds(tier.long_window) / answer.HOUR
    pairs, which = np.unique(np.stack([bad, events]), axis=1, return_inverse=True)
    chances = [answer.p_value(int(k), int(n), budget, alerting.correlation, hours) for k, n in pairs.T]
    return np.array(chances, dtype=float)[which]


def _streaks(good: Ints, bad: Ints, totals: _Sums, needed: int | None) -> tuple[Bools, Bools]:
    """Where a streak of bad events pages, and where one that is too short yet keeps tickets from beginning."""
    if needed is None:
        return np.zeros(len(totals.at), dtype=bool), np.zeros(len(totals.at), dtype=bool)
    traffic = totals.over(_TRAFFIC)
    sums = np.cumsum(bad)
    in_a_row = (sums - np.maximum.accumulate(np.where(good > 0, sums, 0)))[totals.at]
    expected = traffic * answer.QUIET_WINDOW_SECONDS / answer.TRAFFIC_SECONDS
    quiet = answer.is_quiet(expected, needed) & (traffic > 0)
    return quiet & (in_a_row >= needed), quiet & (in_a_row > 0) & (in_a_row < needed)


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
