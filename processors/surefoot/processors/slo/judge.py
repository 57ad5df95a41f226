"""The buckets of one view of an SLO to its report: windows, burn rates, budget, state, history.

Rule: a pure function of the buckets, the definition, what is known of the labels' delay, and ``now``; every number is
computed from counts that the report shows beside it, and what is undefined is None.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final

from surefoot.processors.slo import burn
from surefoot.processors.slo.answer import Sample
from surefoot.processors.slo.count import dimensions_of, views_of
from surefoot.processors.slo.decide import decide
from surefoot.processors.slo.definition import FAST, MATURED, Slo, error_budget
from surefoot.processors.slo.delay import LabelDelay
from surefoot.processors.slo.minutes import OTHER, ROLL_UP, Minutes
from surefoot.processors.slo.periods import window_at
from surefoot.processors.slo.report import BudgetPoint, Counts, SloReport, StratumReport, TierReport, WindowReport
from surefoot.processors.slo.series import Amounts, Series
from surefoot.processors.slo.windows import DAY, seconds, window_seconds, windows_within


@dataclass(frozen=True, slots=True)
class _Times:
    """Of one view: windows end at ``until``; the period is the buckets with after < start <= until."""

    now: float
    until: float
    after: float
    scale: float
    calendar: tuple[int, int] | None  # first second of the period, and of the next one

    @property
    def period_seconds(self) -> float:
        return self.until - self.after if self.calendar is None else self.calendar[1] - self.calendar[0]


def judge(
    slo: Slo,
    minutes: Minutes,
    now: float,
    scale: float,
    view: str = FAST,
    delay: LabelDelay | None = None,
    failed: str | None = None,
) -> SloReport:
    """The report on one view of ``slo``: its roll-up, then its strata with events in the period by key, ``other`` last.

    ``delay`` is what the watermark of the view ``matured`` lags behind ``now``. ``failed`` says why the events cannot
    be counted now; what was counted before is shown, and frozen.
    """
    lag = delay.seconds if delay is not None and view == MATURED else 0.0
    stale = delay.stale if delay is not None and view == MATURED else None
    times = _times(slo, now, now - lag, scale)
    severities = _severities(slo, view)
    keys = [key for key in minutes.strata(view) if key == ROLL_UP or _has_events(minutes.series(key, view), times)]
    tiers = [tier for tier in tiers_of(slo) if tier.severity in severities]
    strata = [_stratum(slo, key, minutes.series(key, view), times, tiers, len(keys), failed or stale) for key in keys]
    return SloReport(
        slo=slo.name,
        service=slo.service,
        display_name=slo.display_name or slo.name,
        description=slo.description,
        indicator=slo.indicator,
        objective=slo.objective,
        period=slo.period,
        view=view,
        generation=slo.generation,
        strata=strata,
        history=list(_history(slo, minutes.series(ROLL_UP, view), times)),
        views=views_of(slo),
        severities=severities,
        budgeting=slo.budgeting,
        period_start=times.after if times.calendar is None else float(times.calendar[0]),
        evaluated_at=times.until,
        label_delay_seconds=lag if view == MATURED else None,
        label_delay_n=delay.n if delay is not None and view == MATURED else 0,
        watermark_stale=stale,
        problem=failed or _problem(slo, strata[0].windows[-1].counts, times),
    )


def tiers_of(slo: Slo) -> list[burn.Tier]:
    """Its tiers. The longest day of a calendar lasts 25 hours, and yet it has no tier of a day."""
    tiers = burn.tiers_for(slo.period_seconds, slo.objective, slo.alerting)
    known = windows_within(slo.period)
    return [tier for tier in tiers if slo.alerting.tiers or tier.long_window in known]


def period_bounds(slo: Slo, until: float, scale: float) -> tuple[float, float]:
    """The period that ``until`` lies in, as the buckets with after < start <= until."""
    times = _times(slo, until, until, scale)
    return times.after, times.until


def _times(slo: Slo, now: float, until: float, scale: float) -> _Times:
    if slo.calendar is None:
        return _Times(now, until, until - window_seconds(slo.period_seconds, scale), scale, None)
    window = window_at(slo.calendar, until)
    # A bucket that begins with the period is in it.
    return _Times(now, until, window.start - 0.5, scale, (window.start, window.end))


def _severities(slo: Slo, view: str) -> tuple[str, ...]:
    """Who is known to be bad at once pages; what took its time to be judged is a ticket."""
    if len(views_of(slo)) == 1:
        return (burn.PAGE, burn.TICKET)
    return (burn.PAGE,) if view == FAST else (burn.TICKET,)


def _has_events(series: Series, times: _Times) -> bool:
    return series.between(times.after, times.until) != Counts()


def _problem(slo: Slo, period: Counts, times: _Times) -> str | None:
    when = f"the last {slo.period}" if slo.calendar is None else "this period of the calendar"
    if period == Counts() and times.until < times.now:
        return f"no event of {when} ended before its numbers end; it counts {slo.population}"
    if period == Counts():
        return f"no event of {when} is about it; it counts {slo.population}"
    if period.good + period.bad == 0:
        return f"none of {when}'s events is good or bad: {period.unlabelled} unlabelled, {period.excluded} excluded"
    return None


def _stratum(
    slo: Slo, key: str, series: Series, times: _Times, tiers: Sequence[burn.Tier], strata: int, stale: str | None
) -> StratumReport:
    budget = error_budget(slo.objective)
    asked = {name for tier in tiers for name in (tier.long_window, tier.short_window)}
    amounts = {
        name: _amounts(series, name, times) for name in sorted({*windows_within(slo.period), *asked}, key=seconds)
    }
    period = series.amounts(times.after, times.until, whole_slices=times.calendar is not None)
    windows = [_window(name, found, budget) for name, found in [*amounts.items(), (slo.period, period)]]
    last = series.last_event(times.until)
    frozen_by = stale or _too_old(slo, last, times)
    tail = series.tail(times.until, times.scale)
    decided = [
        decide(tier, _sample(amounts[tier.long_window]), _sample(amounts[tier.short_window]), slo.alerting,
               slo.objective, strata, tail)
        for tier in tiers
    ]  # fmt: skip
    if frozen_by is not None:
        decided = [replace(tier, burning=False, frozen=True, reason=frozen_by) for tier in decided]
    low, high = burn.wilson(period.counts.good, period.counts.good + period.counts.bad)
    remaining = _remaining(period.good, period.bad, budget)
    hourly = series.hourly(times.after, times.until, times.scale)
    return StratumReport(
        key=key,
        dimensions=_dimensions(slo, key),
        windows=windows,
        tiers=decided,
        error_budget_remaining_ratio=remaining,
        interval_low=low,
        interval_high=high,
        state=_state(period, budget, decided, frozen_by is not None),
        budget_remaining_low=_remaining(period.good, period.bad + period.unlabelled, budget),
        time_to_exhaustion_seconds=_exhaustion(period, _amounts(series, "1d", times), budget, times.scale),
        overdispersion=hourly.dispersion.correlation,
        overdispersion_n=hourly.dispersion.hours,
        consecutive_bad=tail.bad,
        last_event_at=last,
        silence_limit_seconds=hourly.silence_limit,
    )


def _amounts(series: Series, name: str, times: _Times) -> Amounts:
    length = max(window_seconds(seconds(name), times.scale), float(series.slice_length or 0))
    return series.amounts(times.until - length, times.until)


def _sample(amounts: Amounts) -> Sample:
    return Sample(amounts.counts, amounts.mass)


def _too_old(slo: Slo, last: float | None, times: _Times) -> str | None:
    if slo.max_age_seconds is None or last is None or times.now - last <= slo.max_age_seconds * times.scale:
        return None
    age, limit = ((seconds_ / 86_400) for seconds_ in (times.now - last, slo.max_age_seconds * times.scale))
    return f"the newest event is {age:.1f} days old, and after {limit:.1f} days nobody can tell: repeat the runs"


def _state(period: Amounts, budget: Decimal, tiers: Sequence[TierReport], frozen: bool) -> str:
    best = _remaining(period.good + period.unlabelled, period.bad, budget) if period.good + period.bad else None
    burning = {tier.severity for tier in tiers if tier.burning}
    return burn.state(best, burning, frozen or any(tier.frozen for tier in tiers))


def _dimensions(slo: Slo, key: str) -> dict[str, str]:
    """Never an empty value: to Prometheus an empty label is none, and the stratum would be taken for the roll-up.

    Nor one value for two strata: a value that reads like our own words is put in one more pair of brackets.
    """
    if key == OTHER:
        return dict.fromkeys(slo.by, f"({OTHER})")
    return {
        name: f"({value})" if _OWN_WORD.fullmatch(value) else value or "(none)"
        for name, value in dimensions_of(key).items()
    }


_OWN_WORD: Final = re.compile(r"\(+(none|other)\)+")


def _window(name: str, amounts: Amounts, budget: Decimal) -> WindowReport:
    labelled = amounts.good + amounts.bad
    total = labelled + amounts.unlabelled
    return WindowReport(
        window=name,
        counts=amounts.counts,
        error_ratio=amounts.bad / labelled if labelled else None,
        error_ratio_low=amounts.bad / total if total else None,
        error_ratio_high=(amounts.bad + amounts.unlabelled) / total if total else None,
        burn_rate=burn_of(amounts, budget),
        label_coverage_ratio=labelled / total if total else None,
        mass=amounts.mass,
    )


def burn_of(amounts: Amounts, budget: Decimal) -> float | None:
    """Error ratio over the budget; None without labelled events."""
    return burn.burn_rate(Counts(amounts.good, amounts.bad), budget)


def _remaining(good: int, bad: int, budget: Decimal) -> float | None:
    return burn.budget_remaining(bad, good + bad, budget)


def _exhaustion(period: Amounts, day: Amounts, budget: Decimal, scale: float) -> float | None:
    """How many days like the last one use up the bad events that are still allowed.

    Never by way of the period's length: a calendar's has just begun, and a service may be younger than its period.
    """
    left = (period.good + period.bad) * budget / period.unit - Decimal(period.bad) / period.unit
    if left <= 0 or not day.bad:
        return None
    return float(left * day.unit / day.bad) * window_seconds(DAY, scale)


def _history(slo: Slo, series: Series, times: _Times) -> Iterator[BudgetPoint]:
    """The burn-down of the period's budget, a point per UTC date; the last one is what remains now."""
    by_calendar = times.calendar is not None
    whole = series.amounts(times.after, times.until, whole_slices=by_calendar)
    budget = error_budget(slo.objective)
    after = times.after
    for day in _dates(times.after if times.calendar is None else times.calendar[0], times.until):
        midnight = datetime.combine(day + timedelta(days=1), datetime.min.time(), UTC).timestamp()
        # A bucket that starts at midnight is the next date's, and `between` includes its upper edge.
        until = min(times.until, midnight - 0.5)
        # A slice that ends at midnight is this date's.
        edge = until if series.slice_length is None else min(times.until, midnight)
        spent = series.amounts(times.after, edge, whole_slices=by_calendar)
        left = burn.budget_remaining(spent.bad, whole.good + whole.bad, budget)
        yield BudgetPoint(day.isoformat(), left, series.between(after, until))
        after = until


def _dates(start: float, now: float) -> Iterator[date]:
    day, last = (datetime.fromtimestamp(time, UTC).date() for time in (start, now))
    while day <= last:
        yield day
        day += timedelta(days=1)
